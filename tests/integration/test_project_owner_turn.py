from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial

import pytest

from graph.identity import owner_of
from graph.metrics import Metrics
from graph.model.factory import ChatModels
from graph.project.context_manager import ContextManager
from graph.service import ChatService
from graph.spending import Spending
from graph.worker.project_roll_up import RollUps
from tests.fake.chat import Chat, question
from tests.fake.front import fronts, memory_of
from tests.fake.openai_reply import ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes
from tests.fake.sign_in import PROVIDER
from tests.fake.store import StoreSet

KIM, LEE = (owner_of(PROVIDER["oidc_issuer"], subject) for subject in ("kim", "lee"))


@pytest.fixture
def service(rooted: Rooted) -> ChatService:
    return rooted.open(**PROVIDER).service


def in_project(service: ChatService, rooted: Rooted, owner: str, said: str) -> Chat:
    """Says something in a new chat of this owner, in the project."""
    chat = Chat(service.for_owner(owner))
    chat.say(said, options=rooted.options())
    assert chat.last_turn.status == "finished"
    wait_for_notes(chat)
    return chat


def test_a_chat_begins_with_what_was_noted_in_its_owners_chats_alone(
    rooted: Rooted, service: ChatService, server: FakeOpenAI
) -> None:
    decision = {"text": "포트는 9090", "said": "포트는 9090으로"}
    call = ScriptedCall("record_decision", json.dumps(decision), "call-1")
    server.script(tools(call), text("기록했습니다."), to="9090")
    in_project(service, rooted, KIM, "좋아요, 포트는 9090으로 하죠.")
    in_project(service, rooted, LEE, "저는 처음 왔습니다.")
    in_project(service, rooted, KIM, "다시 왔습니다.")
    first, lees, kims = (memory_of(body) for body in server.bodies("chat")[-3:])
    assert "9090" in kims
    assert "기록했습니다." in kims
    assert "9090" not in first + lees
    assert "처음 왔습니다" not in "".join(fronts(server))
    dialogs = [ContextManager(rooted.project.memory(owner)).data.conversation.recent_window for owner in (KIM, LEE)]
    assert [[message.role for message in dialog] for dialog in dialogs] == [
        ["user", "assistant"] * 2,
        ["user", "assistant"],
    ]
    assert not (rooted.project.brain / "context.json").exists()


def test_a_program_of_the_servers_own_owner_works_with_the_memory_in_the_folder_itself(
    rooted: Rooted, service: ChatService
) -> None:
    in_project(service, rooted, service.settings.turnfold_owner, "프로그램이 한 말")
    assert rooted.noted()[0] == ("user", "프로그램이 한 말")
    assert not (rooted.project.brain / "user").exists()


def test_a_deleted_chat_takes_nothing_from_the_memory_of_others(rooted: Rooted, service: ChatService) -> None:
    chat = in_project(service, rooted, KIM, "지울 대화")
    in_project(service, rooted, LEE, "남을 대화")
    chat.service.sessions.delete(chat.session_id)
    wait_for_notes(chat)
    (said, _) = ContextManager(rooted.project.memory(LEE)).data.conversation.recent_window
    assert said.content == "남을 대화"


def test_each_owners_dialog_is_summarised_into_his_own_summary(
    rooted: Rooted, service: ChatService, server: FakeOpenAI
) -> None:
    made = {KIM: "서버를 옮기기로 했습니다.", LEE: "포트를 바꾸기로 했습니다."}
    for owner, summary in made.items():
        server.script(text(summary), kind="summary")
        server.script(text("짧은 답"), text("긴 답입니다. " * 500))
        chat = in_project(service, rooted, owner, question(1))
        chat.say(question(2))
        wait_for_notes(chat)
    kept = {owner: ContextManager(rooted.project.memory(owner)).data.conversation.running_summary for owner in made}
    assert kept == made


def test_a_summary_that_waits_for_one_owner_does_not_do_for_another(
    endpoint_models: ChatModels, stores: StoreSet
) -> None:
    roll_ups = RollUps(endpoint_models, Spending(stores.use, Metrics()), deadline_seconds=20)
    may_go_on, is_done, made = threading.Event(), threading.Event(), list[str]()
    steps: list[tuple[str, Callable[[], object]]] = [
        ("first", partial(may_go_on.wait, 20)),
        ("kim", partial(made.append, "kim")),
        ("lee", partial(made.append, "lee")),
        ("kim", partial(made.append, "kim again")),
        ("last", is_done.set),
    ]
    for owner, step in steps:
        roll_ups.soon((owner, "/srv/shop"), step)
    may_go_on.set()
    assert is_done.wait(20)
    roll_ups.close()
    assert made == ["kim", "lee"]
