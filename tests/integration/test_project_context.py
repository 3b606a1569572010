from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.view import TurnOptions
from tests.fake.body import content_of, faults, roles, shape, system_prompt, tokens_of
from tests.fake.caching import is_in_place
from tests.fake.chat import question
from tests.fake.context_source import FRONT, ScriptedContext, volatile_of
from tests.fake.in_project import answer_without_repeating, ask, blocks_of, in_file, opened, stable_part
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.oracle import state_ids

EARLY: dict[str, dict[str, Any]] = {
    "interval": {},
    "rolling": {"app_context_threshold": 500},
    "compaction": {"max_context_tokens": 1_000},
    "window": {"window_turns": 2},
}


@pytest.fixture(autouse=True)
def _answers_repeat_no_block(server: FakeOpenAI) -> None:
    answer_without_repeating(server)


def test_without_a_project_nobody_is_asked_for_a_context(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root)
    chat.ask(1, 4)
    assert source.requests == []
    assert chat.rows("SELECT * FROM context_block") == []
    assert "컨텍스트" not in str(server.bodies("chat"))
    assert (chat.view.project_root, chat.view.has_memory) == ("", True)


@pytest.mark.parametrize("strategy", EARLY)
def test_the_front_is_the_same_bytes_over_twenty_turns_with_a_changing_selection(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path, strategy: str
) -> None:
    chat = opened(open_chat, source, root, context_strategy=strategy, **EARLY[strategy])
    ask(chat, 1, 20, root)
    bodies = server.bodies("chat")
    assert {stable_part(body) for body in bodies} == {stable_part(bodies[0])}
    assert stable_part(bodies[0]).endswith(f"\n\n{FRONT}")
    assert blocks_of(chat, "front") == [FRONT]
    for number, body in enumerate(bodies, start=1):
        told = [content_of(message) for message in body["messages"]]
        words = f"{volatile_of(in_file(number).context)}\n\n[CURRENT MESSAGE]\n{question(number)}"
        assert told[-1].endswith(words)
        assert "".join(told).count("휘발성 컨텍스트") == 1
        assert faults(body["messages"]) == []


def test_a_change_renews_the_front_once(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root)
    ask(chat, 1, 3, root)
    source.front = f"{FRONT}\n    탭은 쓰지 않습니다."
    ask(chat, 4, 8)
    parts = [stable_part(body) for body in server.bodies("chat")]
    assert parts == [parts[0]] * 3 + [parts[3]] * 5
    assert parts[3].endswith("탭은 쓰지 않습니다.")
    assert blocks_of(chat, "front") == [FRONT, source.front]


def test_each_call_of_a_turn_has_its_block_and_no_later_turn(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root)
    calls = [
        ScriptedCall("get_current_time", "{}", "call-1"),
        ScriptedCall("reasoning", '{"question": "얼마야?", "material": "120만 원"}', "call-2"),
    ]
    server.script(tools(*calls), text("120만 원입니다."), to="질문 1번")
    ask(chat, 1, 2, root)
    first, side, again, second = server.bodies("chat")
    assert roles(again)[-4:] == ["user", "assistant", "tool", "tool"]
    assert content_of(first["messages"][1]) == content_of(again["messages"][1])
    assert content_of(first["messages"][1]).startswith(volatile_of(in_file(1).context))
    assert "컨텍스트" not in str(side)
    assert content_of(second["messages"][1]) == question(1)
    assert len(source.requests) == 2


def test_what_was_said_is_kept_without_the_blocks(open_chat: OpenChat, source: ScriptedContext, root: Path) -> None:
    chat = opened(open_chat, source, root)
    ask(chat, 1, 5, root)
    assert [turn.user_text for turn in chat.turns] == [question(number) for number in range(1, 6)]
    assert [row for row in chat.rows("SELECT content FROM message") if "컨텍스트" in row[0]] == []
    assert chat.service.sessions.list(search="file-3.py") == ()
    assert len(state_ids(chat.service.settings, chat.session_id)) == 4
    assert b"file-5.py" not in chat.service.settings.checkpoint_path.read_bytes()


@pytest.mark.parametrize("strategy", EARLY)
def test_every_input_is_rebuilt_from_the_tables_and_checks_its_hash(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path, strategy: str
) -> None:
    chat = opened(open_chat, source, root, context_strategy=strategy, **EARLY[strategy])
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("낮입니다. " * 40), to="질문 2번")
    ask(chat, 1, 5, root)
    source.front = "다른 규칙"
    ask(chat, 6, 9)
    chat.regenerate()
    calls = [call for turn in range(1, 10) for call in chat.service.folds.inputs(chat.session_id, turn)]
    assert len(calls) == 11
    for call in calls:
        assert call.is_verified
        assert ("context", "front") in [(block.kind, block.id) for block in call.blocks]


def test_what_is_counted_is_what_is_sent(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root)
    ask(chat, 1, 5, root)
    rows = chat.rows("SELECT sent_tokens, full_tokens FROM model_call ORDER BY turn")
    for (sent, _), body in zip(rows, server.bodies("chat"), strict=True):
        assert abs(sent - tokens_of(body)) <= 2 + len(body["messages"])
    assert abs(rows[0][1] - rows[0][0]) <= 5
    assert chat.service.folds.gauge(chat.session_id).sent_tokens > 0


def test_folds_are_made_behind_the_chat_though_its_last_message_has_a_block(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root, fold_in_place="always")
    ask(chat, 1, 7, root)
    asked, bodies = server.bodies("summary"), server.bodies("chat")
    assert len(asked) == 2
    for request, before in zip(asked, (bodies[2], bodies[5]), strict=True):
        assert is_in_place(request)
        assert request["messages"][:-2] == before["messages"]
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    assert shape(bodies[-1]) == [(1, 3), (4, 6), 7]


def test_a_quoted_fold_has_nothing_of_the_blocks(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root, fold_in_place="never")
    ask(chat, 1, 4, root)
    assert chat.covered == [(1, 2, 3)]
    assert "컨텍스트" not in str(server.bodies("summary"))


def test_a_new_attempt_has_a_block_of_its_own(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root)
    server.script(failure(400), to="질문 1번")
    chat.say(question(1), options=in_file(1, root))
    for number, again in ((2, chat.service.turns.retry), (3, chat.service.turns.regenerate)):
        again(chat.session_id, options=in_file(number))
        chat.events()
        assert content_of(server.bodies("chat")[-1]["messages"][-1]).startswith(volatile_of(in_file(number).context))
    chat.regenerate()
    assert content_of(server.bodies("chat")[-1]["messages"][-1]) == question(1)
    assert FRONT in system_prompt(server.bodies("chat")[-1])
    assert [request.turn for request in source.requests] == [1] * 4


def test_the_blocks_outlast_a_reset_a_compaction_and_a_restart(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root)
    ask(chat, 1, 6, root)
    chat.service.folds.compact(chat.session_id)
    ask(chat, 7, 7)
    chat.service.folds.reset(chat.session_id)
    ask(chat, 8, 8)
    chat.close()
    with opened(open_chat, source, root, chat.session_id) as again:
        ask(again, 9, 9)
        assert blocks_of(again, "front") == [FRONT]
    assert {stable_part(body) for body in server.bodies("chat")} == {stable_part(server.bodies("chat")[0])}
    assert {request.front for request in source.requests[1:]} == {FRONT}


def test_who_composes_is_told_all_that_a_block_depends_on(
    open_chat: OpenChat, source: ScriptedContext, root: Path
) -> None:
    chat = opened(open_chat, source, root)
    options = TurnOptions(project_root=str(root), has_memory=False, context={"selection": "앞\x00뒤 \ud83d"})
    chat.say("What is left to do?", options=options)
    (asked,) = source.requests
    assert (asked.session_id, asked.owner, asked.root) == (chat.session_id, "local", str(root))
    assert (asked.has_memory, asked.language, asked.turn, asked.front) == (False, "en", 1, "")
    assert asked.context == {"selection": "앞\ufffd뒤 \ufffd"}
    assert (chat.view.project_root, chat.view.has_memory) == (str(root), False)
