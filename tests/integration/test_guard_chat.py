from __future__ import annotations

import time

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from graph.core.token import estimate_tokens
from graph.error import InputError
from graph.event import AnswerRestarted, Folded, TokenDelta, TurnFailed, TurnFinished
from tests.fake.body import content_of, faults, roles, system_prompt, tokens_of
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, chunk, failure, hang, raw, text, tools
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.sent import last_kinds

STRATEGIES = ["interval", "rolling", "compaction", "window"]
FOLDING = ["interval", "rolling", "compaction"]
LONG = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 3일까지 검토합니다. "
# Interval folds as it goes: only a small window is ever nearly full of its records.
WINDOWS = {"interval": 2_500, "rolling": 4_800, "compaction": 4_000, "window": 4_000}
# Rolling sends all that is kept, and folds nothing before the guard does.
UNFOLDED = {"app_context_recent_messages": 100, "app_context_threshold": 1_000_000}
TOO_LONG = failure(400, "maximum context length exceeded", code="context_length_exceeded")


def look_up(result: str) -> BaseTool:
    return StructuredTool.from_function(lambda: result, name="look_up", description="Looks it up.")


def without_usage(body: Body) -> Reply:
    return text(f"{question_of(body)[:60]} 에 대한 답입니다. {LONG * 4}", usage=None)


def question_of(body: Body) -> str:
    return content_of(body["messages"][-1])


def fill(chat: Chat, server: FakeOpenAI, turns: int) -> None:
    server.respond_with(lambda body: answer_body(body) if "<source>" in str(body) else without_usage(body))
    for number in range(1, turns + 1):
        ending = chat.say(question(number))[-1]
        assert isinstance(ending, TurnFinished), ending
        chat.wait_for_folds()


def told(body: Body) -> str:
    return "\n".join(content_of(message) for message in body["messages"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_input_stays_below_75_percent_of_the_window_under_every_strategy(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(**UNFOLDED, context_strategy=strategy, model_window_tokens=WINDOWS[strategy], window_turns=100)
    fill(chat, server, 24)
    sizes = [tokens_of(body) for body in server.bodies("chat")]
    assert 0.6 * WINDOWS[strategy] < max(sizes) < 0.75 * WINDOWS[strategy]
    assert all(faults(body["messages"]) == [] for body in server.bodies("chat"))


@pytest.mark.parametrize(
    ("strategy", "kinds"),
    [("interval", {"merge", "interval"}), ("rolling", {"rolling"}), ("compaction", {"compaction"})],
)
def test_a_small_window_makes_each_strategy_fold_earlier_by_its_own_rule(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str, kinds: set[str]
) -> None:
    chat = open_chat(**UNFOLDED, context_strategy=strategy, model_window_tokens=WINDOWS[strategy])
    fill(chat, server, 24)
    assert {kind for (kind,) in chat.rows("SELECT DISTINCT kind FROM record WHERE adopted_at IS NOT NULL")} == kinds
    ends = [record.turns for record in chat.service.folds.records(chat.session_id)]
    assert [turn for turns in ends for turn in turns] == list(range(1, len([t for x in ends for t in x]) + 1))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_providers_context_length_error_folds_and_retries_once(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(**UNFOLDED, context_strategy=strategy, window_turns=100)
    fill(chat, server, 8)
    server.script(TOO_LONG)
    events = chat.say(question(9))
    assert isinstance(events[-1], TurnFinished)
    refused, taken = server.bodies("chat")[-2:]
    assert tokens_of(taken) < tokens_of(refused)
    assert question(9) in told(taken)
    assert any(isinstance(event, Folded) for event in events) is (strategy != "window")


def test_a_second_context_length_error_fails_the_turn_and_the_next_one_goes_on(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**UNFOLDED)
    fill(chat, server, 8)
    server.script(TOO_LONG, TOO_LONG)
    ending = chat.say(question(9))[-1]
    assert isinstance(ending, TurnFailed)
    assert ending.code == "context_length"
    assert len(server.bodies("chat")) == 10
    assert isinstance(chat.retry()[-1], TurnFinished)
    assert isinstance(chat.say(question(10))[-1], TurnFinished)


def test_a_window_smaller_than_it_was_thought_is_survived(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**UNFOLDED, model_window_tokens=8_000)
    fill(chat, server, 20)
    server.respond_with(
        lambda body: (
            answer_body(body)
            if "<source>" in str(body)
            else (TOO_LONG if tokens_of(body) > 1_800 else without_usage(body))
        )
    )
    endings = [type(chat.say(question(number))[-1]) for number in range(21, 27)]
    assert endings[-3:] == [TurnFinished] * 3


def test_a_word_for_word_record_goes_short_for_the_call_and_the_manifest_says_so(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**UNFOLDED, model_window_tokens=1_600)
    server.script(text("하나.", usage=None), text("둘.", usage=None), text("셋.", usage=None))
    for words in (
        "주소는 서울시 마포구 월드컵북로 396이고 일은 뭐지?",
        "전화는 02-1234-5678이고 이는 뭐지?",
        "삼은 뭐지?",
    ):
        chat.say(words)
        chat.wait_for_folds()
    server.script(text("네.", usage=None))
    chat.say("사는 뭐지?")
    assert chat.service.folds.records(chat.session_id)[0].kind == "verbatim"
    assert "record" in last_kinds(chat)
    server.script(text("네.", usage=None))
    chat.say("오는 뭐지? " + padding_to(server, 1_210))
    assert "shortened" in last_kinds(chat)
    assert "(이번 호출에만 줄임)" in system_prompt(server.bodies("chat")[-1])
    assert chat.service.folds.inputs(chat.session_id, 5)[-1].is_verified
    assert chat.service.folds.records(chat.session_id)[0].kind == "verbatim"


def padding_to(server: FakeOpenAI, limit: int) -> str:
    """Words that bring the next input just over the limit."""
    now = tokens_of(server.bodies("chat")[-1])
    words = ""
    while now + estimate_tokens(words) < limit:
        words += "가 "
    return words


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_tool_result_larger_than_the_window_is_cut_with_a_note(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(**UNFOLDED, context_strategy=strategy, model_window_tokens=4_000, tools=[look_up(LONG * 150)])
    server.script(tools(ScriptedCall("look_up", "{}", "call-1"), usage=None), text("네, 찾았습니다.", usage=None))
    assert isinstance(chat.say("자료를 찾아 줘, 어떤 내용이지?")[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert "characters fit the window / 일부만 표시됨]" in content_of(body["messages"][-1])
    assert tokens_of(body) < 3_000
    assert "cut" in last_kinds(chat)
    assert chat.service.folds.inputs(chat.session_id, 1)[-1].is_verified
    assert roles(body) == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_message_larger_than_the_window_is_refused_with_the_reason(open_chat: OpenChat, strategy: str) -> None:
    chat = open_chat(**UNFOLDED, context_strategy=strategy, model_window_tokens=2_000)
    with pytest.raises(InputError) as caught:
        chat.say("가" * 4_000)
    assert caught.value.reason == "over_window"
    assert chat.service.sessions.list() == ()


@pytest.mark.parametrize("strategy", FOLDING)
def test_a_summary_model_that_hangs_holds_the_guard_no_longer_than_a_fold(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(**UNFOLDED, context_strategy=strategy, fold_wait_seconds=0.1, fold_deadline_seconds=60)
    others = [Chat(chat.service) for _ in range(4)]
    for other in others:
        fill(other, server, 2)
    fill(chat, server, 8)
    silent: list[Reply] = [hang(is_silent=True)] * 8
    server.script(*silent, kind="summary", may_stay=True)
    for stuck in (*others, chat):
        server.script(TOO_LONG)
        began = time.monotonic()
        assert isinstance(stuck.say(question(9))[-1], TurnFinished)
        # The summaries before this one hang all the while, each for a minute.
        assert time.monotonic() - began < 15
    newest = chat.rows(
        "SELECT model FROM record WHERE session_id = ? AND adopted_at IS NOT NULL ORDER BY sequence DESC LIMIT 1",
        chat.session_id,
    )
    assert newest == [("extractive",)]


def test_a_source_larger_than_the_summary_models_window_is_summarised_in_parts_and_whole(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**UNFOLDED, model_window_tokens=2_400, guard_share=0.95)
    server.respond_with(lambda body: answer_body(body) if "<source>" in str(body) else without_usage(body))
    marks = [f"표지-{number}" for number in range(40)]
    chat.say(" ".join(f"{mark} {LONG}" for mark in marks)[:2_400])
    chat.say(question(2))
    chat.say(question(3))
    chat.wait_for_folds()
    asked = "\n".join(content_of(body["messages"][-1]) for body in server.bodies("summary"))
    assert len(server.bodies("summary")) >= 2
    said = [mark for mark in marks if mark + " " in " ".join(f"{m} {LONG}" for m in marks)[:2_400]]
    assert len(said) > 30
    assert all(mark in asked for mark in said)


def test_words_of_an_answer_whose_input_was_then_found_too_long_are_taken_back(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    too_long = '{"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}'
    server.script(raw(chunk({"content": "lost"}), too_long), text("A whole answer."))
    events = chat.say(question(4))
    said = [event for event in events if isinstance(event, TokenDelta | AnswerRestarted)]
    assert said[:2] == [TokenDelta("lost"), AnswerRestarted()]
    assert chat.last_turn.answer_text == "A whole answer."
