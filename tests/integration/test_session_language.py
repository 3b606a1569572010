from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from langchain_core.messages import AnyMessage, SystemMessage

from graph.core.model_input import ModelInput, render_system, stored_system
from graph.core.turn import text_of
from graph.value.event import TurnFinished
from graph.value.record import HistoryEntry, to_entry
from tests.fake.body import content_of, summaries, system_prompt, tool_names
from tests.fake.chat import Chat, question
from tests.fake.draft import korean
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.sent import last_manifest

HANGUL: Final = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
SEED_LINE: Final = "당신은 유용한 AI 어시스턴트입니다."
STRATEGIES: Final[dict[str, dict[str, Any]]] = {
    "interval": {},
    "rolling": {"app_context_threshold": 500},
    "compaction": {"max_context_tokens": 1_000},
    "window": {"window_turns": 2},
}


def english(number: int) -> str:
    return f"Question {number}: the move of the server is set for October {number}. Is anything missing? " * 3


def say(chat: Chat, words: str) -> None:
    assert isinstance(chat.say(words)[-1], TurnFinished)
    chat.wait_for_folds()


def sent_text(body: Body) -> str:
    """All that a request says, its tools included."""
    said = "\n".join(content_of(message) for message in body["messages"])
    return said + json.dumps(body.get("tools"), ensure_ascii=False)


@pytest.mark.parametrize("strategy", ["interval", "rolling", "compaction"])
def test_an_english_session_is_sent_no_korean_of_ours(chat_with: OpenChat, server: FakeOpenAI, strategy: str) -> None:
    chat = chat_with(context_strategy=strategy, tool_result_chars=200, tool_rounds=1, **STRATEGIES[strategy])
    for number in range(1, 4):
        say(chat, english(number))
    server.script(failure(400), to="Question 4")
    chat.say(english(4))
    call = ScriptedCall("a_tool_that_is_not_there_" + "x" * 300, "{}", "call-1")
    server.script(tools(call), text("It is noon there."), to="What time")
    say(chat, "What time is it?")
    for number in range(6, 11 if strategy == "compaction" else 9):
        say(chat, english(number))
    bodies = server.bodies("chat")
    assert all(system_prompt(body).startswith("You are a helpful AI assistant.\n") for body in bodies)
    assert [found for body in bodies for found in HANGUL.findall(sent_text(body))] == []
    everything = "\n".join(map(sent_text, bodies))
    assert "(No answer could be made.)" in everything
    assert "characters are shown]" in everything
    assert "No more tool calls are possible" in everything
    if strategy == "interval":
        assert summaries(bodies[-1]) == [(1, 3), (4, 6)]
        assert "\n\n[Earlier conversation, summarised]\n[Turns 1-3] " in system_prompt(bodies[-1])
    if strategy == "compaction":
        assert "(This is your own summary of turns 1-" in everything


def test_a_block_kept_word_for_word_names_english_speakers(chat: Chat, server: FakeOpenAI) -> None:
    for number in range(1, 5):
        server.script(text("Fine."))
        say(chat, f"Code {number} is red")
    prompt = system_prompt(server.bodies("chat")[-1])
    assert re.search(
        r"\n\[Turns 1-3\] \(\d{4}-\d\d-\d\d\) \(verbatim\)\n  > User: Code 1 is red\n  > AI: Fine.\n", prompt
    )


@pytest.mark.parametrize("is_english", [True, False])
def test_a_user_who_changes_language_changes_nothing_that_was_sent(
    chat: Chat,
    server: FakeOpenAI,
    is_english: bool,  # noqa: FBT001 - from the parameters
) -> None:
    first, second = (english, question) if is_english else (question, english)
    for number in range(1, 5):
        say(chat, first(number))
    server.script(text(f"서버 이전은 10월 5일로 정했습니다. {korean(500)}"), kind="summary")
    for number in range(5, 9):
        say(chat, second(number))
    if not is_english:
        prompt = system_prompt(server.bodies("chat")[3])
        assert prompt.startswith(f"{SEED_LINE}\n사용자가 쓰는 언어로 답하세요.\n")
        assert "\n\n[이전 대화 요약]\n[1-3턴] " in prompt
    fourth, fifth, *_, seventh, eighth = (body["messages"] for body in server.bodies("chat")[3:])
    assert fifth[: len(fourth)] == fourth
    assert eighth[: len(seventh)] == seventh
    # What is kept of the user's word stands behind the records, so it moves with each.
    assert content_of(seventh[0]).startswith(content_of(fourth[0]).partition("\n\n[사용자가 말한")[0])
    labels = re.findall(r"^\[[^\]]*\d-\d[^\]]*\]", content_of(seventh[0]), re.MULTILINE)
    assert labels == (["[Turns 1-3]", "[Turns 4-6]"] if is_english else ["[1-3턴]", "[4-6턴]"])


def test_recall_is_offered_from_the_first_turn_on_and_named_but_where_nothing_is_folded(
    chat: Chat, server: FakeOpenAI
) -> None:
    say(chat, english(0))
    say(chat, "Thank you!")
    for number, strategy in enumerate(STRATEGIES, start=1):
        chat.service.sessions.configure(chat.session_id, strategy=strategy)
        say(chat, english(number))
    bodies = server.bodies("chat")
    is_offered = [True, True, True, True, True, False]
    assert ["recall" in tool_names(body) for body in bodies] == is_offered
    assert ["`recall`" in system_prompt(body) for body in bodies] == is_offered
    assert len({json.dumps(body["tools"]) for body in bodies}) == 2


def test_what_was_sent_is_rebuilt_from_the_tables_and_checks_its_hash(chat: Chat, server: FakeOpenAI) -> None:
    for number in range(1, 9):
        say(chat, english(number))
    stores = chat.service._engine.stores.chat  # noqa: SLF001  # nobody but a test has to know
    history: list[HistoryEntry] = []
    said: list[AnyMessage] = []
    for kind, block_id, version, _ in last_manifest(chat):
        if kind == "system":
            system = stored_system(block_id, version)
        elif kind == "record":
            history.append(to_entry(stores.records.get(chat.session_id, block_id)))
        elif kind == "message":
            said.append(stores.archive.get(chat.session_id, block_id).message)
    assert render_system(system, history) == system_prompt(server.bodies("chat")[-1])
    assert text_of(said[-1]) == english(8)
    rebuilt = ModelInput((SystemMessage(render_system(system, history)), *said), ())
    query = "SELECT input_hash FROM model_call WHERE session_id = ? AND turn = 8 AND kind = 'answer'"
    assert chat.rows(query, chat.session_id) == [(rebuilt.digest(),)]
