"""Titles that a model writes after a chat's second turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from graph.service import ChatService
from graph.value.client import ClientOptions
from graph.value.event import TurnFinished
from graph.value.view import TurnOptions
from tests.fake.chat import Chat, question, text_of
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import Body, Reply, close_early, failure, hang, refusal, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.titled import asked_count, source_of, tries, wait_for_others, wait_for_tries

TITLE = "서버 이전 계획"
OTHERS = "다른 채팅의 제목"


@pytest.fixture(scope="module")
def titling(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("title") / "data", endpoint.url)) as open_chat:
        yield open_chat(auto_titles=True, chat_summary_model="small", user_tokens_per_day=10**9).service


@pytest.fixture
def chat(titling: ChatService, server: FakeOpenAI) -> Iterator[Chat]:
    chat = Chat(titling)
    yield chat
    server.end_hanging()
    chat.wait_for_folds()


def test_chat_is_titled_after_its_second_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(f'제목: "{TITLE}".'), kind="title")
    chat.ask(1, 1)
    assert (chat.view.title, asked_count(server)) == (question(1)[:79] + "…", 0)
    events = chat.say(question(2))
    wait_for_tries(chat, 1)
    assert (chat.view.title, source_of(chat)) == (TITLE, "model")
    assert chat.session_id in {item.session_id for item in chat.service.sessions.list(search=TITLE)}
    assert TITLE not in text_of(events)
    chat.ask(3, 4)
    assert all(call.is_verified for turn in (2, 3, 4) for call in chat.service.inputs.of_turn(chat.session_id, turn))
    assert asked_count(server) == 1
    assert chat.rows("SELECT owner FROM model_call WHERE kind = 'title' AND session_id = ?", chat.session_id) == [
        ("local",)
    ]
    # The title goes along with its session.
    (identifier,) = chat.service.sessions.import_session(chat.service.sessions.export(chat.session_id))
    copy = Chat(chat.service, identifier)
    assert (copy.view.title, source_of(copy), tries(copy)) == (TITLE, "model", tries(chat))


def test_summary_model_is_asked_about_two_turns_and_once_more(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(503), text(TITLE), kind="title")
    long = "예산은 얼마인가요? " * 200
    chat.say(question(1))
    chat.say(long)
    wait_for_tries(chat, 1)
    chat.ask(3, 3)
    wait_for_tries(chat, 2)
    assert (chat.view.title, tries(chat)) == (TITLE, [(None, "provider"), (20, "")])
    first, second = server.bodies("title")
    assert first["messages"] == second["messages"]
    assert (first["model"], [message["role"] for message in first["messages"]]) == ("small", ["system", "user"])
    quoted = first["messages"][1]["content"]
    assert [quoted.count(f'<m turn="{turn}"') for turn in (1, 2, 3)] == [2, 2, 0]
    assert len(quoted) < len(long)
    assert "tools" not in first


def test_endpoint_that_hangs_holds_up_neither_turns_nor_the_end(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(auto_titles=True)
    server.script(hang(is_silent=True), kind="title")
    chat.ask(1, 2)
    server.wait_until(lambda fake: len(fake.bodies("title")) == 1)
    chat.ask(3, 4)
    assert asked_count(server) == 1
    chat.close()
    again = open_chat(chat.session_id, auto_titles=True)
    assert tries(again) == []
    server.script(text(TITLE), kind="title")
    again.ask(5, 5)
    wait_for_tries(again, 1)
    assert again.view.title == TITLE


def test_question_that_is_asked_anew_in_a_branch_has_the_branch_titled(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(TITLE), text(OTHERS), kind="title")
    chat.ask(1, 2)
    wait_for_tries(chat, 1)
    retained = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=2))
    branch = Chat(chat.service, chat.service.turns.edit(chat.session_id, 1, question(7)))
    branch.events()
    branch.say(question(8))
    wait_for_tries(branch, 1)
    retained.say(question(3))
    wait_for_others(retained)
    assert (chat.view.title, branch.view.title, retained.view.title) == (TITLE, OTHERS, TITLE)
    assert (tries(chat), tries(retained)) == ([(20, "")], [])


def test_what_a_title_costs_is_counted_apart_from_turns_and_folds(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(auto_titles=True, user_tokens_per_day=10**9)
    server.script(
        text(TITLE, usage={"prompt_tokens": 70_000, "completion_tokens": 7, "total_tokens": 70_007}), kind="title"
    )
    chat.ask(1, 4)
    wait_for_tries(chat, 1)
    folds, identifier = chat.service.folds, chat.session_id

    def figures() -> list[object]:
        inputs = [
            chat.service.inputs.of_turn(identifier, turn) for turn in chat.service.inputs.called_turns(identifier)
        ]
        seen = (folds.statistics(identifier), folds.savings(identifier), folds.chart(identifier))
        return [*seen, folds.gauge(identifier), chat.service._engine.stores.chat.state(identifier).calls.ratio, inputs]  # noqa: SLF001  # nobody is told it

    (spent,) = chat.rows("SELECT sum(tokens) FROM owner_use")[0]
    (paid,) = chat.rows("SELECT sum(usage_input_tokens + usage_output_tokens) FROM model_call")[0]
    (folded,) = chat.rows("SELECT sum(input_tokens + output_tokens) FROM record")[0]
    assert spent == paid + folded > 70_007
    assert 'turnfold_tokens_total{direction="in",kind="title"} 70000.0' in chat.service.metrics().decode()
    with_title = figures()
    chat.change("DELETE FROM model_call WHERE kind = 'title'")
    assert with_title == figures()


def test_without_the_setting_or_an_endpoint_nothing_is_asked(open_chat: OpenChat, server: FakeOpenAI) -> None:
    nowhere = {"openai_api_key": None, "openai_base_url": None, "chat_model": None}
    for settings in ({"auto_titles": False}, {"auto_titles": True, **nowhere}):
        chat = open_chat(**settings)
        for number in (1, 2):
            chat.say(question(number))
        title = chat.view.title
        chat.close()
        again = open_chat(chat.session_id, auto_titles=False)
        assert (again.view.title, tries(again), asked_count(server)) == (title, [], 0)


def test_name_that_the_user_gives_before_or_while_the_model_is_asked_is_kept(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    chat.service.sessions.rename(chat.session_id, "내 이름")
    chat.ask(2, 3)
    wait_for_others(chat)
    assert (chat.view.title, source_of(chat), tries(chat)) == ("내 이름", "user", [])
    assert asked_count(server, question(1)) == 0
    other = Chat(chat.service)

    def rename(_: Body) -> Reply:
        other.service.sessions.rename(other.session_id, "딴 이름")
        return text(TITLE)

    server.script(rename, kind="title")
    other.ask(1, 2)
    wait_for_tries(other, 1)
    other.ask(3, 3)
    wait_for_others(other)
    assert (other.view.title, source_of(other), tries(other)) == ("딴 이름", "user", [(20, "")])


def test_chat_that_is_deleted_while_the_model_is_asked_leaves_nothing(chat: Chat, server: FakeOpenAI) -> None:
    def delete(_: Body) -> Reply:
        chat.service.sessions.delete(chat.session_id)
        return text(TITLE)

    server.script(delete, kind="title")
    for number in (1, 2):
        chat.say(question(number))
    chat.wait_until(lambda: chat.rows("SELECT 1 FROM session WHERE session_id = ?", chat.session_id) == [])
    wait_for_others(chat)
    assert tries(chat) == []


UNUSABLE = {
    "failing": [failure(500), close_early("서버")],
    "hanging": [hang(is_silent=True), hang("서버")],
    "saying nothing": [text('"".'), refusal("안 됩니다")],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_bad_title_is_tried_once_more_and_never_again(open_chat: OpenChat, server: FakeOpenAI, name: str) -> None:
    chat = open_chat(auto_titles=True, **({"fold_deadline_seconds": 2} if name == "hanging" else {}))
    server.script(*UNUSABLE[name], kind="title")
    chat.say(question(1))
    title = chat.view.title
    for number in (2, 3):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
        wait_for_tries(chat, number - 1)
    assert isinstance(chat.say(question(4))[-1], TurnFinished)
    wait_for_others(chat)
    assert (chat.view.title, source_of(chat), len(tries(chat))) == (title, "", 2)


def by_a_program(chat: Chat) -> None:
    for number in (1, 2, 3):
        chat.say(question(number), options=TurnOptions(client=ClientOptions("editor")))


def as_the_example(chat: Chat) -> None:
    chat.session_id = chat.service.sessions.open_example("ko")
    chat.say(question(1))


def of_old(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.change(f"UPDATE session SET title = 'named before that was noted' WHERE session_id = '{chat.session_id}'")  # noqa: S608  # a name of our own
    chat.ask(2, 3)


@pytest.mark.parametrize("begin", [by_a_program, as_the_example, of_old])
def test_chats_not_begun_on_the_page_keep_their_title(
    chat: Chat, server: FakeOpenAI, begin: Callable[[Chat], None]
) -> None:
    begin(chat)
    title = chat.view.title
    wait_for_others(chat)
    assert (chat.view.title, source_of(chat), tries(chat)) == (title, "", [])
    assert asked_count(server) == 1


def test_day_that_is_used_up_has_no_title_made(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(auto_titles=True, user_tokens_per_day=10**9)

    def use_up(_: Body) -> Reply:
        chat.change("UPDATE owner_use SET tokens = 1000000000 WHERE owner = 'local'")
        return text("네.")

    chat.ask(1, 1)
    server.script(use_up, to=question(2))
    chat.say(question(2))
    wait_for_others(chat, owner="second")
    assert tries(chat) == []
    assert asked_count(server, question(1)) == 0
