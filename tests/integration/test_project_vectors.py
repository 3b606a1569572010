"""The seed's vector cache: filled from the dialog, and read when a session starts with a message that is near to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Literal

import pytest

from graph.project.context_manager import Meaning, RegisterMessage
from graph.project.vector_cache import MOST_NUMBERS
from tests.fake.body import content_of
from tests.fake.chat import Chat
from tests.fake.embedding import meaning_of
from tests.fake.openai_reply import failure
from tests.fake.openai_server import FakeOpenAI
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project
from tests.fake.rooted import Rooted, wait_for_notes

MODEL = "small-embedding"
FILLER = "그 밖의 이야기를 길게 이어 갑니다. " * 8
WAITING = 4_096


@pytest.fixture
def project(rooted: Rooted) -> Project:
    return rooted.project


def register(project: Project, *texts: str) -> None:
    """Adds messages that wait for a summary."""
    roles: Sequence[Literal["user", "assistant"]] = ("user", "assistant")
    memory = project.memory()
    for number, said in enumerate(texts):
        memory.apply(RegisterMessage(at=memory.now(), role=roles[number % 2], content=said, limit_tokens=WAITING))


def cache_of(project: Project) -> dict[str, list[float]]:
    talk = project.stored()["conversation"]
    return {entry["id"]: entry["embedding"] for entry in talk["vector_cache"]}


def embed(project: Project, model: str = MODEL) -> int:
    """Gives each message of the window that lacks one its vector; returns to how many."""
    context = project.context()
    lacking = context.without_vectors(model)
    context.keep_vectors(model, {each.id: meaning_of(each.content) for each in lacking})
    return len(lacking)


def dialog(project: Project, asked: str = "", model: str = MODEL) -> list[str]:
    meant = Meaning(model, meaning_of(asked)) if asked else None
    lines = project.context().primed("ko", meant=meant).lines
    return [line.text for line in lines if line.label == "RECENT DIALOG"]


def test_entries_have_the_form_of_the_seed_and_stand_for_what_is_in_the_window(project: Project) -> None:
    register(project, "경비는 120만 원입니다.", "알겠습니다.", "우산은 안 가져갑니다.")
    assert embed(project) == 3
    assert embed(project) == 0
    found = cache_of(project)
    assert list(found) == ["msg_001", "msg_002", "msg_003"]
    assert found["msg_001"] == [round(value, 4) for value in meaning_of("경비는 120만 원입니다.")]
    assert all(set(entry) == {"id", "embedding"} for entry in project.stored()["conversation"]["vector_cache"])
    register(project, "하나 더")
    assert [each.id for each in project.context().without_vectors(MODEL)] == ["msg_004"]
    embed(project)
    # What leaves the window takes its vector along.
    project.context().forget_dialog()
    assert cache_of(project) == {}
    project.context().keep_vectors(MODEL, {"msg_001": meaning_of("경비")})
    assert cache_of(project) == {}


def test_a_message_that_is_summarised_or_taken_back_has_no_vector_any_more(project: Project) -> None:
    register(project, *(f"{number}번째 말. {FILLER}" for number in range(8)))
    embed(project)
    project.context().roll_up()
    window = [each.id for each in project.context().data.conversation.recent_window]
    assert 0 < len(window) < 8
    assert list(cache_of(project)) == window


def test_vectors_of_another_model_or_size_give_way(project: Project) -> None:
    register(project, "경비는 120만 원입니다.", "알겠습니다.")
    embed(project)
    assert embed(project, "another") == 2
    assert project.stored()["conversation"]["vector_model"] == "another"
    assert dialog(project, "예산", MODEL) == dialog(project)
    register(project, "더", "많이")
    project.context().keep_vectors("another", {"msg_004": [0.5, 0.5]})
    assert cache_of(project) == {"msg_004": [0.5, 0.5]}


def test_the_cache_is_bounded(project: Project) -> None:
    register(project, *(f"{number}번째 말" for number in range(60)))
    size = MOST_NUMBERS // 20
    context = project.context()
    for _ in range(5):
        lacking = context.without_vectors(MODEL)[:8]
        context.keep_vectors(MODEL, {each.id: [0.1] * size for each in lacking})
    assert context.without_vectors(MODEL) == []
    assert list(cache_of(project)) == [f"msg_{number:03}" for number in range(41, 61)]


def test_entries_of_another_program_stay_as_they_are_without_a_model_and_are_replaced_with_one(
    project: Project,
) -> None:
    project.put(SEED_CONTEXT, SEED_WORKFLOW)
    register(project, "경비는 120만 원입니다.")
    project.context().forget_dialog()
    assert project.stored()["conversation"]["vector_cache"] == SEED_CONTEXT["conversation"]["vector_cache"]
    assert dialog(project, "예산") == []
    register(project, "숙소는 서면입니다.")
    embed(project)
    assert list(cache_of(project)) == ["msg_002"]


NO_ENTRIES: Final[list[list[object]]] = [
    ["a", None, 3],
    [{"id": "msg_001"}],
    [{"id": "msg_001", "embedding": "x"}],
    [{"id": "msg_001", "embedding": [1, "b"]}],
]


@pytest.mark.parametrize("entries", NO_ENTRIES)
def test_entries_of_another_shape_are_read_as_none(project: Project, entries: list[object]) -> None:
    register(project, "경비는 120만 원입니다.")
    stored = project.stored()
    stored["conversation"] |= {"vector_cache": entries, "vector_model": MODEL}
    (project.brain / "context.json").write_text(json.dumps(stored), encoding="utf-8")
    assert dialog(project, "예산") == ["경비는 120만 원입니다."]
    assert embed(project) == 1


def test_an_older_message_that_means_the_same_is_told_to_a_new_session(project: Project) -> None:
    old = ["경비는 120만 원으로 잡았어요.", "네, 적었습니다.", "묵을 곳은 서면이에요.", "좋습니다."]
    register(project, *old, *(f"{number}번째 말. {FILLER}" for number in range(10)))
    embed(project)
    newest = dialog(project)
    assert not {*old} & {*newest}
    told = dialog(project, "예산이 얼마였지?")
    assert told[0] == old[0]
    assert told[-3:] == newest[-3:]
    assert len(told) <= len(newest) + 1
    assert old[2] in dialog(project, "호텔 숙소")
    # A message that is told anyway changes nothing, nor does one that would take more than half of the room.
    assert dialog(project, "9번째 8번째")[-3:] == newest[-3:]
    assert dialog(project, "예산", "another") == newest


# In a chat.


def front_of(server: FakeOpenAI) -> str:
    body = server.bodies("chat")[-1]
    return "\n".join(content_of(message) for message in body["messages"][:2])


def filled(chat: Chat, project: Project, count: int) -> None:
    chat.wait_until(lambda: len(cache_of(project)) == count)


def test_turns_fill_the_cache_in_the_background_and_a_new_session_reads_it(
    rooted: Rooted, project: Project, server: FakeOpenAI
) -> None:
    register(project, "경비는 120만 원으로 잡았어요.", "네.", *(f"{number}번째. {FILLER}" for number in range(8)))
    chat = rooted.start(embedding_model=MODEL)
    chat.say("시작합시다.", options=rooted.options())
    filled(chat, project, 12)
    assert "USER: 경비는" not in front_of(server)
    other = Chat(chat.service)
    other.say("예산이 얼마였지?", options=rooted.options())
    assert "USER: 경비는 120만 원으로 잡았어요." in front_of(server)
    filled(chat, project, 14)
    assert b'kind="embedding"' in chat.service.metrics()


def test_without_a_model_or_with_one_that_fails_nothing_changes(
    rooted: Rooted, project: Project, server: FakeOpenAI
) -> None:
    project.put(SEED_CONTEXT, SEED_WORKFLOW)
    before = SEED_CONTEXT["conversation"]["vector_cache"]
    chat = rooted.start()
    chat.say("시작합시다.", options=rooted.options())
    wait_for_notes(chat)
    assert project.stored()["conversation"]["vector_cache"] == before
    assert server.embeddings == []
    chat.close()
    server.embedding_reply = failure(500)
    chat = rooted.start(embedding_model=MODEL)
    chat.say("다시 시작합시다.", options=rooted.options())
    wait_for_notes(chat)
    server.wait_until(lambda server: len(server.embeddings) > 0)
    assert project.stored()["conversation"]["vector_cache"] == before
    assert "시작합시다." in front_of(server)
