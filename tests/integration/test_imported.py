from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from graph.service import ChatService
from graph.value.client import ClientMessage, ClientOptions, ClientRequest
from graph.value.error import DatabaseError, InputError
from graph.value.event import TurnFinished
from tests.fake.body import content_of, faults, raw_turns, shape, tokens_of
from tests.fake.chat import Chat, question
from tests.fake.client_history import HISTORIES, bring
from tests.fake.drawn import at_most
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_server import FakeOpenAI


def history(count: int) -> list[ClientMessage]:
    said = []
    for number in range(1, count + 1):
        said += [ClientMessage("user", question(number)), ClientMessage("assistant", f"{number}번 답입니다. " * 12)]
    return said


def test_imported_history_is_sent_shown_and_found_and_folded_behind_two_blocks_of_own_turns(
    chat: Chat, server: FakeOpenAI
) -> None:
    assert bring(chat, history(5)) == 5
    chat.ask(6, 7)
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3, 4, 5, 6, 7]
    assert server.bodies("summary") == []
    assert [turn.user_text for turn in chat.turns] == [question(number) for number in range(1, 8)]
    (found,) = chat.service.sessions.list(search="2번 답입니다")
    assert (found.session_id, found.found_turn) == (chat.session_id, 2)
    columns = "number, status, client, is_imported, model, history_tokens > 0"
    rows = chat.rows(f"SELECT {columns} FROM turn WHERE session_id = ? ORDER BY number", chat.session_id)  # noqa: S608  # names of our own
    assert rows[:2] == [
        (1, "finished", "editor", 1, "another-model", 0),
        (2, "finished", "editor", 1, "another-model", 1),
    ]
    assert rows[5][2:4] == ("", 0)
    chat.ask(8, 12)
    assert [shape(body) for body in server.bodies("chat")[-2:]] == [
        [*range(1, 12)],
        [(1, 3), (4, 6), (7, 9), 10, 11, 12],
    ]


def test_history_may_follow_turns_that_are_there(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    assert bring(chat, history(5)[6:]) == 5
    chat.ask(6, 6)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5, 6]
    sums = chat.rows("SELECT history_tokens FROM turn WHERE session_id = ? ORDER BY number", chat.session_id)
    assert sums == sorted(set(sums))


@pytest.mark.parametrize(
    "strategy",
    ["interval", "window", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rolling", "compaction"))],
)
def test_history_beyond_the_window_is_reduced_at_once(small: ChatService, server: FakeOpenAI, strategy: str) -> None:
    chat = Chat(small)
    bring(chat, history(150))
    chat.service.sessions.configure(chat.session_id, strategy=strategy)
    assert isinstance(chat.say(question(151))[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert tokens_of(body) <= 6_000 * 0.75
    assert question(151) in content_of(body["messages"][-1])
    assert faults(body["messages"]) == []
    chat.wait_for_folds()
    if strategy == "interval":
        # What is larger than several inputs is left to the schedule.
        query = "SELECT count(*) FROM record WHERE session_id = ? AND kind = 'compaction'"
        assert chat.rows(query, chat.session_id) == [(0,)]
        newest = raw_turns(body)
        assert newest == list(range(newest[0], 152))
        assert len(newest) > 5
        before = len(chat.covered)
        chat.ask(152, 152)
        assert len(chat.covered) > before


def test_too_long_a_history_is_refused_and_stores_nothing(chat: Chat) -> None:
    count = "SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM turn)"
    before = chat.rows(count)
    asked = ClientMessage("user", question(1))
    for messages, reason in (
        (history(1) * 1_001, "too_long"),
        ([*history(1), ClientMessage("assistant", "가" * 3_000_000)], "too_long"),
        ([ClientMessage("user", "가" * 3_000_000)], "message_too_long"),
    ):
        with pytest.raises(InputError) as caught:
            chat.service.completions.begin(ClientRequest((*messages, asked), ClientOptions("editor")))
        assert caught.value.reason == reason
    assert chat.rows(count) == before


def test_import_that_breaks_off_leaves_nothing(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    chat.change("CREATE TRIGGER full BEFORE INSERT ON message WHEN new.turn = 4 BEGIN SELECT RAISE(ABORT, 'full'); END")
    with pytest.raises(DatabaseError):
        bring(chat, history(4))
    assert chat.rows("SELECT max(number), count(*) FROM turn") == [(1, 1)]
    assert chat.rows("SELECT count(*) FROM message") == [(2,)]
    assert chat.service.sessions.list(search="3번 답입니다") == ()


@pytest.fixture(scope="module")
def small(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    """A service whose model has a small window."""
    with chat_opener(settings_maker(tmp_path_factory.mktemp("small"), endpoint.url)) as open_chat:
        yield open_chat(turns_per_minute=10_000, model_window_tokens=6_000).service


@settings(max_examples=at_most(100))
@given(said=HISTORIES)
def test_whatever_is_imported_the_next_turn_is_answered(
    module_service: ChatService, endpoint: FakeOpenAI, said: list[ClientMessage]
) -> None:
    chat = Chat(module_service)
    count = bring(chat, said)
    with endpoint.lent():
        assert isinstance(chat.say("이어서 말씀드립니다. 예산은 그대로 두어도 될까요?")[-1], TurnFinished)
        body = endpoint.bodies("chat")[-1]
    assert faults(body["messages"]) == []
    assert "예산은 그대로" in content_of(body["messages"][-1])
    assert [turn.number for turn in chat.turns] == list(range(1, count + 2))
