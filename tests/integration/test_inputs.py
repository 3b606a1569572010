from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.error import NotFoundError
from graph.event import TurnFinished
from graph.input_view import CallInput
from graph.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI

EARLY: dict[str, dict[str, Any]] = {
    "interval": {},
    "rolling": {"app_context_threshold": 500},
    "compaction": {"max_context_tokens": 1_000},
    "window": {"window_turns": 2},
}
REASONING = json.dumps({"material": "갑은 을보다 크다.", "question": "누가 더 큰가?"})


def inputs(chat: Chat, turns: int) -> list[CallInput]:
    return [call for turn in range(1, turns + 1) for call in chat.service.folds.inputs(chat.session_id, turn)]


def sent(server: FakeOpenAI) -> list[str]:
    """All words of each request, in order."""
    return [json.dumps(body["messages"], ensure_ascii=False) for body in server.bodies("chat")]


@pytest.mark.parametrize("strategy", EARLY)
def test_every_block_of_every_call_stands_in_what_was_sent(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(context_strategy=strategy, **EARLY[strategy])
    noon = " ".join(["낮입니다."] * 40)
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text(noon), to="질문 2번")
    chat.ask(1, 7)
    chat.regenerate()
    calls = inputs(chat, 7)
    assert len(calls) == len(sent(server)) == 9
    assert all(call.is_verified for call in calls)
    for call, words in zip(calls, sent(server), strict=True):
        assert sum(block.tokens for block in call.blocks) == call.sent_tokens
        for block in call.blocks:
            if block.kind in ("tools", "note"):
                assert block.text is None
            elif "(tool call: " not in (told := block.text or ""):
                assert all(json.dumps(line, ensure_ascii=False)[1:-1] in words for line in told.splitlines())
    assert (calls[-1].attempt, calls[-1].ordinal, calls[-1].blocks[-2].role) == (2, 1, "user")


def test_a_switched_strategy_is_told_by_the_hash(open_chat: OpenChat) -> None:
    chat = open_chat(app_context_threshold=500)
    chat.ask(1, 5)
    for strategy in ("rolling", "window", "compaction"):
        chat.service.sessions.configure(chat.session_id, strategy=strategy)
        chat.ask(len(chat.turns) + 1, len(chat.turns) + 2)
    assert all(call.is_verified for call in inputs(chat, 11))


def test_the_note_of_the_last_round_of_tools_is_found_again(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(tool_rounds=2)

    def calls_while_it_may(body: Body) -> Reply:
        may_call = body.get("tool_choice") != "none"
        return tools(ScriptedCall("get_current_time", "{}", "call-1")) if may_call else text("낮입니다.")

    server.respond_with(calls_while_it_may)
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert [call.is_verified for call in inputs(chat, 1)] == [True] * 3


def test_the_call_of_a_tool_shows_what_it_asked(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("reasoning", REASONING, "call-1")), text("갑이다."), text("갑입니다."))
    chat.say(question(1))
    _, side, _ = inputs(chat, 1)
    assert (side.kind, side.ordinal, side.is_verified) == ("reasoning", 2, True)
    assert [block.kind for block in side.blocks] == ["system", "call"]
    assert "갑은 을보다 크다." in (side.blocks[1].text or "")


def test_a_call_that_failed_and_its_attempt_stay_readable(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(401), text("이제 됩니다."))
    chat.say(question(1))
    chat.retry()
    failed, answered = inputs(chat, 1)
    assert (failed.error_code, failed.attempt, failed.is_verified) == ("authentication", 1, True)
    assert (answered.error_code, answered.attempt, answered.is_verified) == ("", 2, True)


def test_what_was_changed_in_the_tables_is_said_not_to_be_what_was_sent(chat: Chat) -> None:
    chat.ask(1, 2)
    chat.change("UPDATE message SET content = replace(content, '김민수', '이영희')")
    assert [call.is_verified for call in inputs(chat, 2)] == [False, False]
    assert "이영희" in (inputs(chat, 1)[0].blocks[1].text or "")


def test_a_block_that_is_gone_has_no_text(chat: Chat) -> None:
    chat.ask(1, 4)
    chat.change("DELETE FROM record")
    (call,) = chat.service.folds.inputs(chat.session_id, 4)
    assert not call.is_verified
    assert [block.text for block in call.blocks if block.kind == "record"] == [None]


def test_the_context_of_a_project_is_among_the_blocks(open_chat: OpenChat, tmp_path: Path) -> None:
    chat = open_chat(context=lambda _: ("규칙: 짧게", "지금 파일: a.py"), project_roots=(tmp_path,))
    chat.say(question(1), options=TurnOptions(project_root=str(tmp_path)))
    (call,) = inputs(chat, 1)
    assert call.is_verified
    assert [block.text for block in call.blocks if block.kind == "context"] == ["규칙: 짧게", "지금 파일: a.py"]


def test_a_turn_that_never_was_is_not_found(chat: Chat) -> None:
    chat.ask(1, 1)
    with pytest.raises(NotFoundError):
        chat.service.folds.inputs(chat.session_id, 2)
