"""What a turn has done by tools stays done in its later attempts, in branches and in edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from graph.value.event import ToolAsked, TurnFailed, TurnFinished, TurnStopped
from graph.value.mcp import McpResult
from prompt.system.framing import CUT_OFF, DONE_EARLIER
from tests.fake.body import content_of, faults, roles
from tests.fake.chat import Chat, question
from tests.fake.mcp_servers import ERASE, LOOK, WRITE, ScriptedServers, until_stopped
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, chunk, failure, hang, raw, text, tools
from tests.fake.openai_server import FakeOpenAI

WRITES = ScriptedCall(WRITE.offered, '{"text": "송금 100만 원"}', "call-write")
AGAIN = ScriptedCall(WRITE.offered, '{"text": "송금 100만 원"}', "call-again")
OTHER = ScriptedCall(WRITE.offered, '{"text": "송금 200만 원"}', "call-other")
ERASES = ScriptedCall(ERASE.offered, "{}", "call-erase")
LOOKS = ScriptedCall(LOOK.offered, "{}", "call-look")
MADE = ("write_note", {"text": "송금 100만 원"})
TOLD = f"{DONE_EARLIER['ko']}\nwrite_note is done."


@pytest.fixture
def servers() -> ScriptedServers:
    return ScriptedServers()


@pytest.fixture
def chat(open_chat: OpenChat, servers: ScriptedServers, server: FakeOpenAI) -> Chat:
    """A chat that has said "always" to one tool, in a turn of its own."""
    chat = open_chat(mcp=servers, model_attempts=1)
    server.script(text("첫 답입니다."))
    chat.say(question(1))
    chat.service.mcp.choose(chat.session_id, [WRITE.offered, LOOK.offered, ERASE.offered])
    server.script(tools(ScriptedCall(WRITE.offered, '{"text": "우유"}', "call-milk")), text("적었습니다."))
    chat.say(question(2))
    chat.service.mcp.answer(chat.session_id, {"call-milk": "always"})
    assert isinstance(chat.events()[-1], TurnFinished)
    servers.calls.clear()
    return chat


class Way(NamedTuple):
    """How a turn ends behind its calls, and how it is run again; returns the session that goes on."""

    ends: Reply
    again: Callable[[Chat], str]


def _retry(chat: Chat) -> str:
    chat.service.turns.retry(chat.session_id)
    return chat.session_id


def _regenerate(chat: Chat) -> str:
    return chat.service.turns.regenerate(chat.session_id).session_id


def _regenerate_earlier(chat: Chat) -> str:
    chat.say(question(4))
    return chat.service.turns.regenerate(chat.session_id, turn=3).session_id


def _edit(chat: Chat) -> str:
    return chat.service.turns.edit(chat.session_id, 3, "보낸 다음 알려 줘.")


SENT = text("보냈습니다.")
WAYS = {
    "failed": Way(failure(500), _retry),
    "stopped": Way(hang("보냈"), _retry),
    "finished": Way(SENT, _regenerate),
    "in a branch": Way(SENT, _regenerate_earlier),
    "edited": Way(SENT, _edit),
}


def run_again(chat: Chat, server: FakeOpenAI, way: str, *then: Reply, calling: Reply | None = None) -> Chat:
    """Has a turn call, end and be run again; `then` are the answers of the later attempt."""
    ends, again = WAYS[way]
    between = [text("네.")] if way == "in a branch" else []
    server.script(calling or tools(LOOKS, WRITES), ends, *between, *then)
    chat.start(question(3))
    if way == "stopped":
        assert isinstance(chat.stop_when(lambda live: live.text.endswith("보냈"))[-1], TurnStopped)
    else:
        assert isinstance(chat.events()[-1], TurnFailed if way == "failed" else TurnFinished)
    return Chat(chat.service, again(chat))


def results(body: Body) -> list[str]:
    return [content_of(message) for message in body["messages"] if message["role"] == "tool"]


@pytest.mark.parametrize("way", WAYS)
def test_the_next_attempt_goes_on_behind_what_was_made(
    way: str, chat: Chat, server: FakeOpenAI, servers: ScriptedServers
) -> None:
    later = run_again(chat, server, way, text("이미 보냈습니다."))
    assert isinstance(later.events()[-1], TurnFinished)
    assert servers.calls.count(MADE) == 1
    body = server.bodies("chat")[-1]
    assert faults(body["messages"]) == []
    # What only reads is left to the model.
    assert results(body)[-1:] == [TOLD]
    assert roles(body)[-3:] == ["user", "assistant", "tool"]
    (step,) = later.last_turn.steps
    assert (step.name, step.status, step.attempt) == (WRITE.offered, "done", 1)
    assert later.last_turn.answer_text == "이미 보냈습니다."
    call = later.service.inputs.of_turn(later.session_id, later.last_turn.number)[0]
    assert call.is_verified


@pytest.mark.parametrize("way", [way for way in WAYS if way != "in a branch"])  # there its turn has been folded
def test_what_the_provider_wants_back_with_made_calls_goes_back_with_their_copies(
    way: str, chat: Chat, server: FakeOpenAI
) -> None:
    thought = "The transfer was asked for."
    calls = [
        {"index": at, "id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
        for at, each in enumerate((LOOKS, WRITES))
    ]
    calling = [
        chunk({"reasoning_content": thought}),
        chunk({"tool_calls": calls}),
        chunk({}, finish_reason="tool_calls"),
    ]
    later = run_again(chat, server, way, failure(500), calling=raw(*calling))
    assert isinstance(later.events()[-1], TurnFailed)
    server.script(text("이미 보냈습니다."))
    assert isinstance(later.retry()[-1], TurnFinished)
    for body in server.bodies("chat")[-2:]:
        copy, result = body["messages"][-2:]
        assert (copy.get("reasoning_content"), result["content"]) == (thought, TOLD)
    query = "SELECT count(*) FROM message WHERE instr(content, ?)"
    assert chat.rows(query, thought) == [(0,)]


@pytest.mark.parametrize("way", WAYS)
def test_a_later_attempt_asks_before_it_does_the_same_again_whatever_is_allowed(
    way: str, chat: Chat, server: FakeOpenAI, servers: ScriptedServers
) -> None:
    servers.allow = ("notes:*",)
    later = run_again(chat, server, way, tools(LOOKS, AGAIN), text("그만두었습니다."))
    last = later.events()[-1]
    assert isinstance(last, ToolAsked)
    assert [(call.call_id, call.is_repeated) for call in last.calls] == [("call-again", True)]
    assert servers.calls.count(MADE) == 1
    later.service.mcp.answer(later.session_id, {"call-again": "no"})
    assert isinstance(later.events()[-1], TurnFinished)
    assert servers.calls.count(MADE) == 1
    assert [step.attempt for step in later.last_turn.steps] == [1, 0, 0]


def test_other_arguments_and_a_word_of_the_users_are_as_ever(
    chat: Chat, server: FakeOpenAI, servers: ScriptedServers
) -> None:
    later = run_again(chat, server, "failed", tools(OTHER), tools(AGAIN), text("둘 다 보냈습니다."))
    assert isinstance(later.events()[-1], ToolAsked)
    assert servers.calls[-1] == ("write_note", {"text": "송금 200만 원"})
    later.service.mcp.answer(later.session_id, {"call-again": "once"})
    assert isinstance(later.events()[-1], TurnFinished)
    assert servers.calls.count(MADE) == 2


def test_what_any_attempt_has_made_is_told_to_all_later_ones_once(
    chat: Chat, server: FakeOpenAI, servers: ScriptedServers
) -> None:
    later = run_again(chat, server, "finished", tools(OTHER), text("더 보냈습니다."), text("첫 답을 고칩니다."))
    later.events()
    # The first answer is made the one that counts; what the second one has done holds for a third.
    later.service.sessions.choose_attempt(later.session_id, 3, 1)
    later.service.turns.regenerate(later.session_id)
    assert isinstance(later.events()[-1], TurnFinished)
    assert results(server.bodies("chat")[-1])[-2:] == [TOLD, TOLD]
    assert [step.attempt for step in later.last_turn.steps] == [1, 2]
    assert len(servers.calls) == 3


@pytest.mark.parametrize("way", ["in a branch", "edited"])
def test_a_branch_goes_on_telling_what_its_origin_has_made(
    way: str, chat: Chat, server: FakeOpenAI, servers: ScriptedServers
) -> None:
    branch = run_again(chat, server, way, text("이미 보냈습니다."), text("다시 답합니다."), text("또 답합니다."))
    branch.events()
    branch.service.turns.regenerate(branch.session_id)
    assert isinstance(branch.events()[-1], TurnFinished)
    assert results(server.bodies("chat")[-1])[-1] == TOLD
    edited = Chat(branch.service, branch.service.turns.edit(branch.session_id, 3, "한 번 더 고친 질문."))
    edited.events()
    assert results(server.bodies("chat")[-1])[-1] == TOLD
    assert len(edited.last_turn.steps) == 1
    assert servers.calls.count(MADE) == 1


def test_an_attempt_that_only_read_or_was_declined_begins_anew(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(LOOKS, ERASES), text("지우지 않았습니다."), text("다시 답합니다."))
    chat.say(question(3))
    chat.service.mcp.answer(chat.session_id, {"call-erase": "no"})
    chat.events()
    chat.service.turns.regenerate(chat.session_id)
    chat.events()
    assert roles(server.bodies("chat")[-1])[-1] == "user"
    assert chat.last_turn.steps == ()


def test_a_call_that_still_waits_for_a_word_was_not_made(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ERASES), text("다시 답합니다."))
    assert isinstance(chat.say(question(3))[-1], ToolAsked)
    Chat(chat.service, chat.service.turns.edit(chat.session_id, 3, "지우지 말아 줘.")).events()
    assert roles(server.bodies("chat")[-1])[-1] == "user"


def test_a_call_that_was_cut_off_may_have_been_made(chat: Chat, server: FakeOpenAI, servers: ScriptedServers) -> None:
    servers.results["write_note"] = until_stopped
    server.script(tools(WRITES), text("확인해 보겠습니다."))
    chat.start(question(3))
    chat.wait_until(lambda: bool(servers.calls))
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.service.turns.retry(chat.session_id)
    assert isinstance(chat.events()[-1], TurnFinished)
    assert results(server.bodies("chat")[-1])[-1] == f"{DONE_EARLIER['ko']}\n{CUT_OFF['ko']}"


def test_a_long_result_that_was_made_earlier_stays_whole_in_the_archive(
    chat: Chat, server: FakeOpenAI, servers: ScriptedServers
) -> None:
    servers.results["write_note"] = McpResult("줄 " * 40_000)
    later = run_again(chat, server, "edited", text("이미 보냈습니다."))
    later.events()
    turn = later.last_turn
    assert turn.steps[0].result.startswith(DONE_EARLIER["ko"])
    whole = later.service.turns.whole_result(later.session_id, turn.number, turn.attempt, "call-write")
    assert whole == "줄 " * 40_000
