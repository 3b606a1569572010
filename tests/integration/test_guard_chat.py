"""What is sent stays within the model's window, whatever is said and whatever fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from langchain_core.tools import StructuredTool

from graph.core.text import estimate_tokens
from graph.strategy.base import Limits
from graph.value.error import InputError, NotFoundError
from graph.value.event import AnswerRestarted, Folded, FoldWaiting, TokenDelta, TurnFailed, TurnFinished
from graph.value.view import CallInput
from prompt.system.framing import BLOCK_CUT
from tests.fake.body import content_of, faults, raw_turns, roles, summaries, system_prompt, tokens_of
from tests.fake.caching import all_tokens
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, chunk, failure, raw, text, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by
from tests.fake.sent import last_kinds

STRATEGIES = ["interval", "rolling", "compaction", "window"]
SENTENCE = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 3일까지 검토합니다. "
# Interval folds as it goes: only a small window is ever nearly full of its records.
WINDOWS = {"interval": 2_500, "rolling": 4_800, "compaction": 4_000, "window": 4_000}
KINDS = {"interval": {"merge", "interval"}, "rolling": {"rolling"}, "compaction": {"compaction"}, "window": set()}
# Rolling sends all that is kept, and folds nothing before the guard does.
UNFOLDED = {"app_context_recent_messages": 100, "app_context_threshold": 1_000_000}
TOO_LONG = failure(400, "maximum context length exceeded", code="context_length_exceeded")
UNKNOWN_WINDOW = 8_192


def answers(usage_factor: float = 0, chars: int = 220) -> Callable[[Body], Reply]:
    """Answers of so many characters; the usage reported is so many times our estimate, none at all for 0."""

    def reply(body: Body) -> Reply:
        if kind_of(body) == "summary":
            return answer_body(body)
        sent = round(tokens_of(body) * usage_factor)
        usage = {"prompt_tokens": sent, "completion_tokens": 900, "total_tokens": sent + 900}
        return text((SENTENCE * 30)[:chars], usage=usage if usage_factor else None)

    return reply


def talk(chat: Chat, first: int, last: int, *, times: int = 1) -> int:
    """Has these turns, each with its question so many times; returns how many of them waited for a fold."""
    waited = 0
    for number in range(first, last + 1):
        events = chat.say(question(number) * times)
        assert isinstance(events[-1], TurnFinished), events[-1]
        waited += any(isinstance(event, FoldWaiting) for event in events)
        chat.wait_for_folds()
    return waited


def sent_text(body: Body) -> str:
    return "\n".join(content_of(message) for message in body["messages"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_input_stays_below_75_percent_of_the_window_as_each_strategy_folds_earlier_by_its_own_rule(
    chat_with: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    server.respond_with(answers())
    window = WINDOWS[strategy]
    chat = chat_with(**UNFOLDED, context_strategy=strategy, model_window_tokens=window, window_turns=100)
    talk(chat, 1, 20)
    sizes = [tokens_of(body) for body in server.bodies("chat")]
    assert 0.6 * window < max(sizes) < 0.75 * window
    assert all(faults(body["messages"]) == [] for body in server.bodies("chat"))
    adopted = "SELECT DISTINCT kind FROM record WHERE session_id = ? AND adopted_at IS NOT NULL"
    assert {kind for (kind,) in chat.rows(adopted, chat.session_id)} == KINDS[strategy]
    covered = [turn for turns in chat.covered for turn in turns]
    assert covered == list(range(1, len(covered) + 1))


def test_the_limit_holds_in_the_providers_own_count(chat_with: OpenChat, server: FakeOpenAI) -> None:
    server.respond_with(answers(usage_factor=2, chars=1_200))
    chat = chat_with(model_window_tokens=UNKNOWN_WINDOW, context_strategy="rolling", rolling_sends_unsummarised=True)
    talk(chat, 1, 12)
    counted = [2 * tokens_of(body) for body in server.bodies("chat")]
    assert 0.5 * UNKNOWN_WINDOW < max(counted) < 0.75 * UNKNOWN_WINDOW


@pytest.mark.slow
def test_in_an_unknown_window_the_seeds_table_holds_with_merged_records(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(answers(chars=1_200))
    chat = chat_with(model_window_tokens=UNKNOWN_WINDOW)
    waited = talk(chat, 1, 50)
    for turn, body in enumerate(server.bodies("chat"), start=1):
        covered = (turn - 1) // 3 * 3
        folded = summaries(body)
        assert raw_turns(body) == list(range(covered + 1, turn + 1))
        assert [number for first, last in folded for number in range(first, last + 1)] == list(range(1, covered + 1))
        assert tokens_of(body) < 0.75 * UNKNOWN_WINDOW
    assert waited == 0
    made = "SELECT kind, max(level) FROM record WHERE session_id = ? AND adopted_at IS NOT NULL GROUP BY kind"
    assert [kind for kind, _ in chat.rows(made + " ORDER BY kind", chat.session_id)] == ["interval", "merge"]
    assert max(level for _, level in chat.rows(made, chat.session_id)) <= 4
    assert summaries(server.bodies("chat")[-1])[-1] == (46, 48)


@pytest.mark.parametrize(("strategy", "window_tokens"), [("interval", 3_500), ("compaction", 4_096)])
def test_in_a_small_window_no_turn_waits_for_room(
    chat_with: OpenChat, server: FakeOpenAI, strategy: str, window_tokens: int
) -> None:
    server.respond_with(answers(chars=300))
    chat = chat_with(model_window_tokens=window_tokens, context_strategy=strategy)
    assert talk(chat, 1, 13, times=2) == 0
    assert chat.covered
    assert max(tokens_of(body) for body in server.bodies("chat")) < 0.75 * window_tokens


@pytest.mark.parametrize("asked", [question(1) * 2, "When does the server move, and who is in charge of it? " * 4])
def test_the_reserve_holds_the_prompt_the_tools_and_a_question(chat: Chat, server: FakeOpenAI, asked: str) -> None:
    chat.say(asked)
    (body,) = server.bodies("chat")
    assert len(body["tools"]) == 4
    input_tokens = 3_000
    room_tokens = Limits().within(input_tokens).room_tokens
    assert room_tokens is not None
    assert max(tokens_of(body), all_tokens(body)) <= input_tokens - room_tokens


@pytest.mark.parametrize(("sentences", "has_memory"), [(34, True), (42, False)])
def test_a_large_open_turn_leaves_the_memory_what_is_left_and_no_more(
    chat_with: OpenChat, server: FakeOpenAI, sentences: int, *, has_memory: bool
) -> None:
    server.respond_with(answers(chars=1_200))
    chat = chat_with(model_window_tokens=3_000)
    talk(chat, 1, 6)
    chat.say(SENTENCE * sentences)
    body = server.bodies("chat")[-1]
    assert tokens_of(body) < 0.75 * 3_000
    assert bool(summaries(body)) is has_memory
    sent = "SELECT sent_tokens FROM model_call WHERE session_id = ? ORDER BY turn DESC LIMIT 1"
    assert chat.rows(sent, chat.session_id) == [(tokens_of(body),)]


def test_a_word_for_word_record_goes_short_for_the_call_and_the_manifest_says_so(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**UNFOLDED, model_window_tokens=1_600)
    server.script(*(text(answer, usage=None) for answer in ("하나.", "둘.", "셋.", "네.", "네.")))
    for words in (
        "주소는 서울시 마포구 월드컵북로 396이고 일은 뭐지?",
        "전화는 02-1234-5678이고 이는 뭐지?",
        "삼은 뭐지?",
        "사는 뭐지?",
    ):
        chat.say(words)
        chat.wait_for_folds()
    assert chat.service.folds.records(chat.session_id)[0].kind == "verbatim"
    assert "record" in last_kinds(chat)
    room = 1_210 - tokens_of(server.bodies("chat")[-1])
    padding = ""
    while estimate_tokens(padding) < room:  # the next input is just over the limit
        padding += "가 "
    chat.say("오는 뭐지? " + padding)
    assert "shortened" in last_kinds(chat)
    assert "(이번 호출에만 줄임)" in system_prompt(server.bodies("chat")[-1])
    assert chat.service.inputs.of_turn(chat.session_id, 5)[-1].is_verified
    assert chat.service.folds.records(chat.session_id)[0].kind == "verbatim"


def test_a_tool_result_larger_than_the_window_is_cut_with_a_note(open_chat: OpenChat, server: FakeOpenAI) -> None:
    look_up = StructuredTool.from_function(lambda: SENTENCE * 150, name="look_up", description="Looks it up.")
    chat = open_chat(**UNFOLDED, context_strategy="rolling", model_window_tokens=4_000, tools=[look_up])
    server.script(tools(ScriptedCall("look_up", "{}", "call-1"), usage=None), text("네, 찾았습니다.", usage=None))
    assert isinstance(chat.say("자료를 찾아 줘, 어떤 내용이지?")[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert "characters fit the window / 일부만 표시됨]" in content_of(body["messages"][-1])
    assert tokens_of(body) < 3_000
    assert "cut" in last_kinds(chat)
    assert chat.service.inputs.of_turn(chat.session_id, 1)[-1].is_verified
    assert roles(body) == ["system", "user", "assistant", "tool"]


def test_one_message_larger_than_the_window_is_refused_with_the_reason(chat_with: OpenChat) -> None:
    chat = chat_with(model_window_tokens=2_000)
    with pytest.raises(InputError) as caught:
        chat.say("가" * 4_000)
    assert caught.value.reason == "over_window"
    with pytest.raises(NotFoundError):
        _ = chat.view


def test_a_guessed_window_is_told_apart_by_the_gauge_and_by_the_refusal(chat_with: OpenChat) -> None:
    chat = chat_with(model_window_tokens=None, chat_model="unheard-of")
    gauge = chat.service.folds.gauge(None)
    assert (gauge.window_tokens, gauge.is_guess) == (UNKNOWN_WINDOW, True)
    with pytest.raises(InputError) as caught:
        chat.say("가" * 12_000)
    assert caught.value.reason == "over_guessed_window"
    known = chat_with(model_window_tokens=None, chat_model="gpt-4o-mini").service.folds.gauge(None)
    assert (known.window_tokens, known.is_guess) == (128_000, False)


def test_a_source_larger_than_the_summary_models_window_is_summarised_in_parts_and_whole(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**UNFOLDED, model_window_tokens=2_400, guard_share=0.95)
    server.respond_with(answers())
    long = " ".join(f"표지-{number} {SENTENCE}" for number in range(40))[:2_400]
    chat.say(long)
    talk(chat, 2, 3)
    assert len(server.bodies("summary")) >= 2
    asked = "\n".join(content_of(body["messages"][-1]) for body in server.bodies("summary"))
    marks = [f"표지-{number} " for number in range(40) if f"표지-{number} " in long]
    assert len(marks) > 30
    assert all(mark in asked for mark in marks)


# What was made with another window, and what a server reports

LARGE, SMALL = 100_000, 4_096
LISTED: list[str | Body] = [{"id": "large", "max_model_len": LARGE}, {"id": "small", "max_model_len": SMALL}]


def begin_large(open_chat: OpenChat, server: FakeOpenAI, how: str) -> Chat:
    """A chat with a large window, which gets small as `get_small` says."""
    server.models = LISTED
    changes = {"model_window_tokens": None, "chat_model": "large"} if how == "model" else {"model_window_tokens": LARGE}
    return open_chat(**changes)


def get_small(open_chat: OpenChat, chat: Chat, how: str) -> Chat:
    if how == "model":
        chat.service.sessions.configure(chat.session_id, model="small")
        return chat
    exported = chat.service.sessions.export(chat.session_id)
    chat.close()
    small = open_chat(chat.session_id, model_window_tokens=SMALL)
    if how == "import":
        (small.session_id,) = small.service.sessions.import_session(exported)
    return small


BY_SETTING, BY_IMPORT = (pytest.param(how, marks=pytest.mark.slow) for how in ("setting", "import"))


def inputs_of(chat: Chat, first: int, last: int) -> list[CallInput]:
    return [call for turn in range(first, last + 1) for call in chat.service.inputs.of_turn(chat.session_id, turn)]


@pytest.mark.parametrize("how", ["model", BY_SETTING, BY_IMPORT])
def test_pins_made_with_a_large_window_leave_a_small_one_what_it_needs(
    open_chat: OpenChat, server: FakeOpenAI, how: str
) -> None:
    chat = begin_large(open_chat, server, how)
    for number in range(1, 7):
        chat.say(f"{question(number)} {SENTENCE * (0 if number == 4 else 19)}")
        chat.service.folds.pin(chat.session_id, chat.last_turn.user_message_id)
        chat.wait_for_folds()
    assert chat.service.folds.pins(chat.session_id).used_tokens > 3_400
    small = get_small(open_chat, chat, how)
    server.exchanges.clear()
    talk(small, 7, 9)
    assert max(tokens_of(body) for body in server.bodies("chat")) < 0.75 * SMALL
    assert all(call.is_verified for call in inputs_of(small, 7, 9))
    # What isn't sent is named, and what is named as sent is.
    pinned = small.service.folds.pins(small.session_id).messages
    assert [message.turn for message in pinned if message.is_sent] == [4]
    lines = [f"[{message.turn}턴 사용자 원문]" for message in pinned]
    assert [sent_text(server.bodies("chat")[-1]).count(line) for line in lines] == [0, 0, 0, 1, 0, 0]


# An import brings no program's instructions.
@pytest.mark.parametrize("how", ["model", BY_SETTING])
def test_instructions_made_with_a_large_window_are_cut_for_a_small_one_and_whole_again_for_a_large_one(
    open_chat: OpenChat, server: FakeOpenAI, how: str
) -> None:
    chat = begin_large(open_chat, server, how)
    instructions = "\n".join(f"Rule {number}: {SENTENCE}" for number in range(200))
    chat.say(question(1), options=asked_by(system=instructions))
    assert "Rule 199: " in system_prompt(server.bodies("chat")[-1])
    small = get_small(open_chat, chat, how)
    talk(small, 2, 3)
    for body in server.bodies("chat")[1:]:
        assert tokens_of(body) < 0.75 * SMALL
        assert "Rule 0: " in system_prompt(body)
        assert BLOCK_CUT["ko"] in system_prompt(body)
    (call,) = inputs_of(small, 3, 3)
    assert call.is_verified
    (block,) = (block for block in call.blocks if block.kind == "context")
    assert (block.id, (block.text or "").splitlines()[-1]) == ("client", BLOCK_CUT["ko"])
    if how == "model":
        small.service.sessions.configure(small.session_id, model="large")
        talk(small, 4, 4)
        assert "Rule 199: " in system_prompt(server.bodies("chat")[-1])


def test_the_rest_of_a_turn_that_a_compaction_has_cut_is_left_out_before_a_turn_fails(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    look_up = StructuredTool.from_function(lambda: SENTENCE, name="look_up", description="Looks it up.")
    chat = open_chat(model_window_tokens=UNKNOWN_WINDOW, context_strategy="compaction", tools=[look_up])
    calls = [ScriptedCall("look_up", "{}", f"call-{number}") for number in range(3)]
    rounds = [tools(call, answer=SENTENCE * 25, usage=None) for call in calls]
    server.script(*rounds, text(SENTENCE * 20, usage=None))
    chat.say(question(1))
    chat.service.folds.compact(chat.session_id)
    assert isinstance(chat.say(f"{question(2)} {SENTENCE * 180}")[-1], TurnFinished)
    body = server.bodies("chat")[-1]
    assert tokens_of(body) < 0.75 * UNKNOWN_WINDOW
    assert faults(body["messages"]) == []
    assert chat.service.inputs.of_turn(chat.session_id, 2)[-1].is_verified


LITTLE, LESS = (pytest.param(share, marks=pytest.mark.slow) for share in (0.05, 0.4))


@pytest.mark.parametrize("share", [0.0, LITTLE, LESS, 0.6])
def test_a_server_that_reports_less_than_it_was_sent_is_not_believed(
    chat_with: OpenChat, server: FakeOpenAI, share: float
) -> None:
    """Such as one that counts only what it hadn't cached, and cuts a longer input without a word."""

    def reply(body: Body) -> Reply:
        sent = round(tokens_of(body) * share)
        usage = {"prompt_tokens": sent, "completion_tokens": 90, "total_tokens": sent + 90}
        return answer_body(body) if kind_of(body) == "summary" else text(SENTENCE * 12, usage=usage)

    server.respond_with(reply)
    chat = chat_with(context_strategy="window", window_turns=100, model_window_tokens=SMALL)
    talk(chat, 1, 12)
    sizes = [tokens_of(body) for body in server.bodies("chat")]
    assert 0.6 * SMALL < max(sizes) < 0.75 * SMALL
    gauge = chat.service.folds.gauge(chat.session_id)
    assert gauge.reported_tokens == (round(sizes[-1] * share) or None)
    assert 0.6 * SMALL < gauge.sent_tokens < 0.75 * SMALL


@pytest.mark.parametrize("window_tokens", [2_048, 3_000, SMALL])
def test_results_that_are_cut_more_than_once_say_how_long_they_were_and_leave_the_input_within_its_limit(
    open_chat: OpenChat, server: FakeOpenAI, window_tokens: int
) -> None:
    look_up = StructuredTool.from_function(lambda: SENTENCE * 55, name="look_up", description="Looks it up.")
    chat = open_chat(model_window_tokens=window_tokens, tools=[look_up])
    chat.say(question(1) * 2)
    rounds = [
        tools(*(ScriptedCall("look_up", "{}", f"call-{number}-{index}") for index in range(3)), usage=None)
        for number in range(6)
    ]
    server.script(*rounds, text("네, 찾았습니다.", usage=None))
    assert isinstance(chat.say(question(2))[-1], TurnFinished)
    assert all(call.is_verified for call in inputs_of(chat, 2, 2))
    for body in server.bodies("chat"):
        assert tokens_of(body) < 0.75 * window_tokens
        notes = [content_of(message) for message in body["messages"] if message["role"] == "tool"]
        assert all(f" of {len(SENTENCE * 55)} characters fit the window" in note for note in notes if "[cut" in note)


def test_a_question_that_fills_a_window_that_was_told_is_refused_before_its_server_cuts_it(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.models = LISTED
    chat = open_chat(model_window_tokens=None, chat_model="small")
    chat.say(question(1))
    ending = chat.say(SENTENCE * 125)[-1]
    assert isinstance(ending, TurnFailed)
    assert ending.code == "context_length"
    assert ending.detail.endswith(f" ≥ {SMALL}")
    assert len(server.bodies("chat")) == 1
    chat.service.sessions.configure(chat.session_id, model="large")
    assert isinstance(chat.retry()[-1], TurnFinished)


# The provider's own limit


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_providers_context_length_error_folds_and_retries_once(
    chat_with: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = chat_with(**UNFOLDED, context_strategy=strategy, window_turns=100)
    server.respond_with(answers())
    talk(chat, 1, 6)
    server.script(TOO_LONG)
    events = chat.say(question(7))
    assert isinstance(events[-1], TurnFinished)
    refused, taken = server.bodies("chat")[-2:]
    assert tokens_of(taken) < tokens_of(refused)
    assert question(7) in sent_text(taken)
    assert any(isinstance(event, Folded) for event in events) is (strategy != "window")


def test_a_second_context_length_error_fails_the_turn_and_the_next_one_goes_on(chat: Chat, server: FakeOpenAI) -> None:
    talk(chat, 1, 5)
    server.script(TOO_LONG, TOO_LONG)
    ending = chat.say(question(6))[-1]
    assert isinstance(ending, TurnFailed)
    assert ending.code == "context_length"
    assert len(server.bodies("chat")) == 7
    assert isinstance(chat.retry()[-1], TurnFinished)
    talk(chat, 7, 7)


def test_a_window_smaller_than_it_was_thought_is_survived(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**UNFOLDED, model_window_tokens=8_000)
    answer = answers()
    server.respond_with(answer)
    talk(chat, 1, 12)
    is_too_long: Callable[[Body], bool] = lambda body: kind_of(body) == "chat" and tokens_of(body) > 1_500  # noqa: E731
    server.respond_with(lambda body: TOO_LONG if is_too_long(body) else answer(body))
    endings = [type(chat.say(question(number))[-1]) for number in range(13, 18)]
    assert endings[-3:] == [TurnFinished] * 3
    assert len(server.bodies("chat")) > 17  # some were refused


def test_words_of_an_answer_whose_input_was_then_found_too_long_are_taken_back(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    too_long = '{"error": {"message": "maximum context length exceeded", "code": "context_length_exceeded"}}'
    server.script(raw(chunk({"content": "lost"}), too_long), text("A whole answer."))
    events = chat.say(question(4))
    said = [event for event in events if isinstance(event, TokenDelta | AnswerRestarted)]
    assert said[:2] == [TokenDelta("lost"), AnswerRestarted()]
    assert chat.last_turn.answer_text == "A whole answer."
