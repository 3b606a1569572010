"""The real clients run tools of their own: over the real routes, the real service and a scripted endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import openai
import pytest

from tests.fake.body import content_of, faults, roles, tool_names
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.real_client import REAL_CHATS, RealChat, Told
from tests.fake.resending import counts
from tests.fake.served_door import OTHER_OWNER, OTHER_TOKEN, ServedDoor, serve
from tests.fake.store import MovableClock

TOOLS: Final[Any] = [dict(tool("look", path={"type": "string"}, depth={"type": "integer"}))]
# Clients send arguments back as JSON of their own: in another order, with other spaces.
FIRST: Final = ScriptedCall("look", '{"path":"a.py",  "depth":1}', "call-1")
SECOND: Final = ScriptedCall("look", '{"path":"나.py"}', "call-2")
CLOCK: Final = ScriptedCall("get_current_time", "{}", "call-clock")
HALF_AN_HOUR_SECONDS: Final = 30 * 60

both_clients = pytest.mark.parametrize("client", REAL_CHATS)


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedDoor]:
    with serve(chat.service) as door:
        yield door


def program_of(client: type[RealChat], served: ServedDoor) -> RealChat:
    program = client(served.url, token=OTHER_TOKEN)
    program.fields = {"tools": TOOLS}
    return program


def waiting(program: RealChat, server: FakeOpenAI, *calls: ScriptedCall) -> Told:
    server.script(tools(*calls, answer="보겠습니다."))
    return program.ask(question(1))


def last_body(server: FakeOpenAI) -> Body:
    body = server.bodies("chat")[-1]
    assert faults(body["messages"]) == []
    return body


def statuses(chat: Chat) -> list[str]:
    return [status for (status,) in chat.rows("SELECT status FROM turn ORDER BY number")]


@both_clients
def test_parallel_calls_are_answered_in_any_order_within_one_turn(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = program_of(client, served)
    asked = waiting(program, server, FIRST, SECOND)
    assert (asked.text, asked.turn) == ("보겠습니다.", 1)
    assert asked.calls == (
        ("call-1", "look", {"path": "a.py", "depth": 1}),
        ("call-2", "look", {"path": "나.py"}),
    )
    assert statuses(chat) == ["requires_action"]
    server.script(text("끝났습니다."))
    told = program.answer({"call-2": "둘", "call-1": "하나"})
    assert told == Told("끝났습니다.", asked.session_id, 1, "history")
    assert [content_of(message) for message in last_body(server)["messages"][-2:]] == ["하나", "둘"]
    assert program.ask(question(2))[1:4] == (asked.session_id, 2, "history")
    assert roles(last_body(server)) == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert counts(chat)[:2] == [1, 2]


@both_clients
def test_of_a_mixed_round_the_server_runs_its_own(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = program_of(client, served)
    asked = waiting(program, server, CLOCK, FIRST)
    assert [call[0] for call in asked.calls] == ["call-1"]
    assert {"look", "get_current_time", "recall"} <= set(tool_names(last_body(server)))
    told = program.answer({"call-1": "print('hello')"})
    assert (told.turn, told.calls) == (1, ())
    results = [message for message in last_body(server)["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ["call-clock", "call-1"]
    assert counts(chat)[:2] == [1, 1]


@both_clients
def test_what_was_said_around_the_servers_own_tools_is_known_again(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url, token=OTHER_TOKEN)
    server.script(tools(CLOCK, answer="시계를 보겠습니다."), text("정오입니다."))
    first = program.ask(question(1))
    assert first.text == "시계를 보겠습니다.\n\n정오입니다."
    assert program.ask(question(2))[1:4] == (first.session_id, 2, "history")
    assert counts(chat)[:2] == [1, 2]


@both_clients
def test_several_rounds_are_one_turn(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = program_of(client, served)
    waiting(program, server, FIRST)
    server.script(tools(SECOND), text("끝났습니다."))
    assert [call[0] for call in program.answer({"call-1": "하나"}).calls] == ["call-2"]
    told = program.answer({"call-2": "둘"})
    assert (told.text, told.turn) == ("끝났습니다.", 1)
    assert program.ask(question(2)).turn == 2
    assert (counts(chat)[:2], statuses(chat)) == ([1, 2], ["finished", "finished"])


@both_clients
@pytest.mark.parametrize(
    ("results", "code", "named"),
    [
        ({"call-2": "둘"}, "unanswered_call", "call-1"),
        ({"call-1": "하나", "call-2": "둘", "call-9": "아홉"}, "unknown_call", "call-9"),
        ({"call-1": "하나", "call-2": "둘", "call-clock": "열두 시"}, "unknown_call", "call-clock"),
    ],
    ids=["missing", "unknown", "the server's own"],
)
def test_missing_and_unknown_ids_are_refused_and_the_turn_goes_on_waiting(
    chat: Chat,
    served: ServedDoor,
    server: FakeOpenAI,
    client: type[RealChat],
    results: dict[str, str],
    code: str,
    named: str,
) -> None:
    program = program_of(client, served)
    waiting(program, server, CLOCK, FIRST, SECOND)
    kept, before = list(program.messages), counts(chat)
    with pytest.raises(openai.BadRequestError) as refused:
        program.answer(results)
    assert (refused.value.code, named in refused.value.message) == (code, True)
    assert (counts(chat), statuses(chat)) == (before, ["requires_action"])
    program.messages = kept
    assert program.answer({"call-1": "하나", "call-2": "둘"}).turn == 1


@both_clients
def test_results_of_a_turn_that_nobody_knows_are_refused(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program, other = program_of(client, served), client(served.url)
    waiting(program, server, FIRST)
    other.messages, other.fields = program.messages, program.fields
    before = counts(chat)
    with pytest.raises(openai.BadRequestError) as refused:
        other.answer({"call-1": "하나"})
    assert (refused.value.code, counts(chat)) == ("unknown_call", before)


@both_clients
@pytest.mark.parametrize("keeps_results", [False, True], ids=["without results", "with results"])
def test_a_new_message_instead_closes_what_waits(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat], *, keeps_results: bool
) -> None:
    program = program_of(client, served)
    asked = waiting(program, server, FIRST, SECOND)
    program.keep({"call-1": "취소됨", "call-2": "취소됨"} if keeps_results else {})
    told = program.ask(question(2))
    assert told[1:4] == (asked.session_id, 2, "history")
    assert last_body(server)["messages"][-1]["content"] == question(2)
    assert statuses(chat) == ["stopped", "finished"]
    assert program.ask(question(3)).turn == 3
    assert counts(chat)[:2] == [1, 3]


@both_clients
def test_what_waited_for_half_an_hour_is_over(open_chat: OpenChat, server: FakeOpenAI, client: type[RealChat]) -> None:
    clock = MovableClock()
    chat = open_chat(clock=clock)
    with serve(chat.service) as served:
        program = program_of(client, served)
        asked = waiting(program, server, FIRST)
        kept = list(program.messages)
        clock.move(HALF_AN_HOUR_SECONDS)
        with pytest.raises(openai.BadRequestError) as refused:
            program.answer({"call-1": "하나"})
        assert refused.value.code == "unknown_call"
        program.messages = kept
        assert program.ask(question(2))[1:3] == (asked.session_id, 2)
    assert statuses(chat) == ["stopped", "finished"]


@both_clients
def test_what_waits_goes_on_after_a_restart(open_chat: OpenChat, server: FakeOpenAI, client: type[RealChat]) -> None:
    with open_chat() as chat, serve(chat.service) as served:
        before = program_of(client, served)
        asked = waiting(before, server, CLOCK, FIRST)
    with open_chat() as chat, serve(chat.service) as served:
        after = program_of(client, served)
        after.messages = before.messages
        told = after.answer({"call-1": "print('hello')"})
        assert (told.session_id, told.turn) == (asked.session_id, 1)
        assert roles(last_body(server)) == ["system", "user", "assistant", "tool", "tool"]
        (turn,) = Chat(chat.service.for_owner(OTHER_OWNER), told.session_id).turns
        assert [(step.name, step.status) for step in turn.steps] == [("get_current_time", "done"), ("look", "done")]
        assert (turn.attempt, turn.status) == (1, "finished")
