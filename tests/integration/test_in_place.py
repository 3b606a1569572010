from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from graph.event import TurnFinished
from prompt.summary.in_place_generator import BEGINNING
from tests.fake.body import content_of, faults, roles, shape
from tests.fake.caching import CachingResponder, all_tokens, lookup, shared_tokens
from tests.fake.chat import question, text_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, Body, Reply, ScriptedCall, failure, text, tools
from tests.fake.openai_responder import answer_body, instruction_at, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.integration.test_fold_text import DRAFTS, TRIP, fold, summary_of, target_of

ALWAYS = {"fold_in_place": "always"}


@pytest.fixture
def cached(server: FakeOpenAI) -> FakeOpenAI:
    server.respond_with(CachingResponder())
    return server


def is_in_place(body: Body) -> bool:
    return instruction_at(body) is not None


def answer_to(server: FakeOpenAI, body: Body) -> Body:
    """The answer to a chat request, as the next request has it."""
    later = next(other["messages"] for other in server.bodies("chat") if len(other["messages"]) > len(body["messages"]))
    return dict(later[len(body["messages"])])


def before_summaries(server: FakeOpenAI) -> Iterator[tuple[Body, Body]]:
    """Each request for a summary with the chat request before it."""
    last: Body = {}
    for exchange in list(server.exchanges):
        if exchange.kind == "summary":
            yield last, exchange.body
        else:
            last = exchange.body


def test_a_fold_is_the_conversation_as_it_was_last_sent_its_answer_and_one_instruction(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.ask(1, 4)
    third, (asked,) = cached.bodies("chat")[2], cached.bodies("summary")
    assert asked["messages"][:-2] == third["messages"]
    assert asked["messages"][-2] == {"role": "assistant", "content": chat.turns[2].answer_text}
    assert roles(asked)[-1] == "user"
    instruction = content_of(asked["messages"][-1])
    assert instruction.startswith(
        f"{BEGINNING['ko']} 답하거나 도구를 쓰지 말고 위 대화의 1-3턴을 요약하세요: «질문 1번입니다."
    )
    assert "마지막 답까지. " in instruction
    assert '"(1턴) … (2턴) …"' in instruction
    (record,) = chat.service.folds.records(chat.session_id)
    assert (
        f" 공백 포함 {round(record.target_chars * 0.85)}자쯤, 많아도 {round(record.target_chars * 1.25)}자."
        in instruction
    )
    assert asked["tools"] == third["tools"]
    assert asked["tool_choice"] == "none"
    assert "tool_choice" not in third
    assert faults(asked["messages"]) == []
    assert shape(cached.bodies("chat")[3]) == [(1, 3), 4]


def test_the_bytes_before_the_answer_are_those_sent_before(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    chat = open_chat(tools=[lookup(2_000)])
    cached.script(tools(ScriptedCall("look_up", '{"case": "7"}', "call-1")), to="질문 2번")
    chat.ask(1, 3)
    (*_, third), (asked,) = (
        [exchange.sent.decode() for exchange in cached.exchanges if exchange.kind == kind]
        for kind in ("chat", "summary")
    )
    begin = third.index('"messages":[')
    end = third.index(f'{question(3)}"')
    assert asked[begin:].startswith(third[begin:end])
    assert '"tool_calls"' in third[begin:end]
    tools_in = [sent[sent.index('"tools":') :].partition(',"tool_choice"')[0].rstrip("}") for sent in (third, asked)]
    assert tools_in[0] == tools_in[1]


def test_six_in_seven_tokens_of_a_request_in_place_are_a_prefix_of_the_one_before(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(CachingResponder(reply=_looking_up))
    chat = open_chat(tools=[lookup(10_000)])
    chat.ask(1, 13)
    pairs = list(before_summaries(server))
    assert len(pairs) == 4
    for before, asked in pairs:
        assert is_in_place(asked)
        assert shared_tokens(before, asked) / all_tokens(asked) >= 0.85
    for record in chat.service.folds.records(chat.session_id):
        assert record.is_usage
        assert record.outcome == "compressed"


def test_without_tools_a_long_chats_requests_in_place_are_mostly_prefix(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.ask(1, 48)
    pairs = [(before, asked) for before, asked in before_summaries(cached) if is_in_place(asked)]
    assert len(pairs) == 16
    shared = [shared_tokens(before, asked) for before, asked in pairs]
    sent = [all_tokens(asked) for _, asked in pairs]
    assert sum(shared) / sum(sent) >= 0.85


def _looking_up(body: Body) -> Reply | None:
    """Looks something up in the first turn of each block."""
    if kind_of(body) == "summary" or roles(body)[-1] != "user":
        return None
    number = int(content_of(body["messages"][-1]).partition("번")[0].split()[-1])
    call = ScriptedCall("look_up", f'{{"case": "{number}"}}', f"call-{number}")
    return tools(call, usage=CACHED_USAGE) if number % 3 == 1 else None


@pytest.mark.parametrize(
    ("settings", "usage"),
    [
        ({}, None),
        ({}, {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}),
        ({"fold_in_place": "never"}, CACHED_USAGE),
        ({**ALWAYS, "chat_summary_model": "small"}, CACHED_USAGE),
    ],
    ids=["no usage", "no cache", "never", "another model"],
)
def test_a_fold_is_quoted_where_in_place_does_not_serve(
    open_chat: OpenChat, server: FakeOpenAI, settings: dict[str, Any], usage: dict[str, Any] | None
) -> None:
    server.respond_with(
        lambda body: (
            answer_body(body) if kind_of(body) == "summary" else text("그렇게 정리하겠습니다. " * 12, usage=usage)
        )
    )
    chat = open_chat(**settings)
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [False]
    assert chat.covered == [(1, 2, 3)]


def test_always_needs_no_cache_that_is_reported(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [True]
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("window_tokens", "in_place"), [(2_200, False), (3_000, True)])
def test_what_would_not_fit_into_the_window_is_quoted(
    open_chat: OpenChat, server: FakeOpenAI, window_tokens: int, *, in_place: bool
) -> None:
    server.respond_with(CachingResponder(300))
    chat = open_chat(**ALWAYS, model_window_tokens=window_tokens, guard_share=0.95)
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [in_place]
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("mode", "last_in_place"), [("auto", False), ("always", True)])
def test_a_short_block_behind_long_summaries_is_quoted_where_that_is_cheaper(
    open_chat: OpenChat, server: FakeOpenAI, mode: str, *, last_in_place: bool
) -> None:
    server.respond_with(CachingResponder(200))
    chat = open_chat(fold_in_place=mode, compression_rate=0.5)
    for number in range(1, 10):
        chat.say(question(number) * 32)
        chat.wait_for_folds()
    for number in range(10, 14):
        chat.say(f"{question(number)[:60]}?")
        chat.wait_for_folds()
    assert [is_in_place(body) for body in server.bodies("summary")] == [True, True, True, last_in_place]
    assert len(chat.covered) == 4


def test_a_prepared_summary_outlives_a_restart_however_it_was_asked_for(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    first = open_chat()
    first.ask(1, 3)
    first.close()
    later = open_chat(first.session_id)
    later.ask(4, 4)
    assert later.covered == [(1, 2, 3)]
    assert [is_in_place(body) for body in cached.bodies("summary")] == [True]


def test_a_server_that_did_not_send_the_last_input_quotes(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    first = open_chat(context_strategy="compaction")
    first.ask(1, 6)
    first.close()
    later = open_chat(first.session_id, **ALWAYS, context_strategy="compaction")
    later.service.folds.compact(first.session_id)
    later.ask(7, 9)
    later.service.folds.compact(first.session_id)
    assert [is_in_place(body) for body in cached.bodies("summary")] == [False, True]


def test_a_block_that_failed_is_named_by_where_it_ends(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    chat = open_chat()
    cached.script(failure(500), kind="summary")
    chat.ask(1, 5)
    _, second = cached.bodies("summary")
    fourth = cached.bodies("chat")[3]
    assert second["messages"][: len(fourth["messages"])] == fourth["messages"]
    assert "«질문 1번입니다. 서버 이전은 10월…»부터 «질문 3번" in content_of(second["messages"][-1])
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("draft", "said"), DRAFTS.values(), ids=DRAFTS)
def test_a_flawed_draft_is_mended_behind_itself_in_the_chat(
    open_chat: OpenChat, server: FakeOpenAI, draft: str, said: str
) -> None:
    good = summary_of(target_of(TRIP))
    record = fold(open_chat(**ALWAYS), server, TRIP, draft, good)
    assert record is not None
    assert (record.summary, record.outcome) == (good, "compressed")
    first, second = server.bodies("summary")
    assert second["messages"][: len(first["messages"])] == first["messages"]
    behind = second["messages"][len(first["messages"]) :]
    assert [message["role"] for message in behind] == ["assistant", "user"]
    assert said in content_of(behind[1])
    assert "<source>" not in content_of(behind[1])
    assert (first["tools"], first["tool_choice"]) == (second["tools"], second["tool_choice"])
    assert faults(second["messages"]) == []


def test_a_tool_call_in_place_of_a_summary_is_a_failed_draft(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    good = summary_of(target_of(TRIP))
    call = tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="시간을 먼저 보겠습니다.")
    server.script(*(text(answer) for _, answer in TRIP))
    server.script(call, text(good), kind="summary")
    for asked, _ in TRIP:
        chat.say(asked)
    chat.wait_for_folds()
    chat.ask(4, 4)
    _, second = server.bodies("summary")
    assert faults(second["messages"]) == []
    assert content_of(second["messages"][-1]).startswith("답이 비어 있습니다")
    (record,) = chat.service.folds.records(chat.session_id)
    assert (record.summary, record.input_tokens, record.output_tokens) == (good, 200, 40)
    assert all(not turn.steps for turn in chat.turns)


def test_two_tool_calls_in_place_of_a_summary_leave_the_turns_raw(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    call = tools(ScriptedCall("get_current_time", "{}", "call-1"))
    server.script(call, call, kind="summary")
    chat.ask(1, 4)
    assert chat.rows("SELECT error_code FROM record WHERE status = 'FAILED'") == [("summary_empty",)]
    assert shape(server.bodies("chat")[3]) == [1, 2, 3, 4]


def test_an_endpoint_that_refuses_tool_choice_gets_none_for_a_summary_either(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    refusal = failure(400, "Unsupported parameter: 'tool_choice' is not supported with this model.")
    server.respond_with(lambda body: refusal if "tool_choice" in body else answer_body(body))
    chat = open_chat(**ALWAYS)
    chat.ask(1, 3)
    chat.say("고마워요!")
    chat.ask(5, 7)
    asked = server.bodies("summary")
    assert [("tool_choice" in body, bool(body["tools"])) for body in asked] == [
        (True, True),
        (False, True),
        (False, True),
    ]
    assert ["tool_choice" in body for body in server.bodies("chat")] == [False] * 7
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_a_provider_that_finds_it_too_long_gets_the_source_quoted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    server.script(failure(400, code="context_length_exceeded"), kind="summary")
    chat.ask(1, 4)
    assert [is_in_place(body) for body in server.bodies("summary")] == [True, False]
    assert chat.covered == [(1, 2, 3)]


def test_no_word_of_a_summary_is_heard_in_the_turn_that_waits_for_it(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    slow = text(summary_of(target_of(TRIP)), pause_seconds=0.01)
    server.script(*(text(answer) for _, answer in TRIP), text("넷째 답입니다."))
    server.script(slow, kind="summary")
    for asked, _ in TRIP:
        chat.say(asked)
    events = chat.say(question(4))
    assert isinstance(events[-1], TurnFinished)
    assert text_of(events) == events[-1].text == "넷째 답입니다."
    assert chat.covered == [(1, 2, 3)]


def test_what_was_said_before_the_block_is_before_the_next_fold_in_place(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.ask(1, 7)
    first, second = cached.bodies("summary")
    assert shape(second)[:4] == [(1, 3), 4, 5, 6]
    assert second["messages"][:-2] == cached.bodies("chat")[5]["messages"]
    assert "4-6턴" in content_of(second["messages"][-1])
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    assert len(first["messages"]) == len(second["messages"])


def test_a_turn_with_tools_is_remembered_with_its_last_round(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    chat.ask(1, 2)
    server.script(
        tools(ScriptedCall("get_current_time", "{}", "call-1")), text("지금은 낮입니다. " * 20), to="질문 3번"
    )
    chat.ask(3, 4)
    (asked,) = server.bodies("summary")
    assert roles(asked)[-5:] == ["user", "assistant", "tool", "assistant", "user"]
    assert faults(asked["messages"]) == []
    assert chat.covered == [(1, 2, 3)]


def test_an_english_session_is_asked_in_english(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    for number in range(1, 5):
        chat.say(f"Question {number}: the move of the server is set for October {number}. Is anything missing? " * 3)
        chat.wait_for_folds()
    (asked,) = server.bodies("summary")
    instruction = content_of(asked["messages"][-1])
    assert instruction.startswith("[Summary request] Don't answer and use no tools: condense turns 1-3 of")
    assert "from “Question 1: the move…” to the last answer." in instruction
    assert not any("가" <= char <= "힣" for char in instruction)
    assert chat.covered == [(1, 2, 3)]


def test_a_version_that_the_last_input_holds_whole_is_asked_for_in_place(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**ALWAYS, context_strategy="rolling", app_context_threshold=500)
    chat.ask(1, 8)
    asked = server.bodies("summary")
    assert len(asked) >= 2
    assert all(map(is_in_place, asked))
    first, second = (content_of(body["messages"][-1]) for body in asked[:2])
    assert "from “질문 1번입니다. 서버 이전은 10월…” to the answer to “" in first
    assert "Update the previous summary" not in first
    assert "from the earlier summary to the answer to “" in second
    assert "Update the previous summary" in second
    assert len(chat.covered) == 1


@pytest.mark.parametrize(
    ("changes", "times"),
    [({"rolling_sends_unsummarised": False, "app_context_recent_messages": 2}, 1), ({}, 20)],
    ids=["unsent", "cut"],
)
def test_a_version_of_what_the_last_input_lacks_is_quoted(
    open_chat: OpenChat, server: FakeOpenAI, changes: dict[str, Any], times: int
) -> None:
    chat = open_chat(**ALWAYS, context_strategy="rolling", app_context_threshold=500, **changes)
    chat.say("긴 기록입니다. " + question(1) * times)
    chat.wait_for_folds()
    chat.ask(2, 6)
    assert server.bodies("summary")
    assert not is_in_place(server.bodies("summary")[0])


def test_a_compaction_is_asked_for_in_place(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS, context_strategy="compaction")
    chat.ask(1, 6)
    record = chat.service.folds.compact(chat.session_id)
    (asked,) = server.bodies("summary")
    last = server.bodies("chat")[-1]
    assert asked["messages"][: len(last["messages"])] == last["messages"]
    instruction = content_of(asked["messages"][-1])
    assert "1. **Task Overview**" in instruction
    assert "<summary></summary>" in instruction
    assert "to the answer to “질문 4번" in instruction
    assert record.kind == "compaction"
    chat.ask(7, 9)
    chat.service.folds.compact(chat.session_id)
    assert "from the earlier summary" in content_of(server.bodies("summary")[-1]["messages"][-1])


def test_merges_are_quoted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS, records_budget_tokens=500, merged_together=2, newest_records=1, merged_tokens=200)
    chat.ask(1, 13)
    asked = server.bodies("summary")
    merges = [body for body in asked if 'from="summary"' in content_of(body["messages"][-1])]
    assert merges
    assert all(is_in_place(body) for body in asked if body not in merges)
    assert len(asked) > len(merges)


def test_a_deleted_session_is_forgotten(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    chat.ask(1, 1)
    inputs = chat.service._access.fold_worker._last_inputs._inputs  # noqa: SLF001  # nobody but a test has to know
    assert chat.session_id in inputs
    chat.service.sessions.delete(chat.session_id)
    assert chat.session_id not in inputs
    assert server.exchanges
