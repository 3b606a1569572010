from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.model_input import ModelInput, SystemPart
from graph.core.text import estimate_tokens
from graph.core.turn import text_of
from graph.fold.spec import source_key
from graph.strategy.base import Limits
from graph.strategy.rolling import RollingStrategy, unsent_count
from graph.value.record import Record, to_entry
from prompt.summary import rolling_generator
from tests.fake.snapshot import adopted, plain_turn, record_of, snapshot_of, tool_turn

SYSTEM = SystemPart("You help.", 1)
SEED = Limits(rolling_sends_unsummarised=False)
LONG = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었습니다. " * 20


def assembled(
    messages: list[AnyMessage], active: list[Record] | None = None, limits: Limits | None = None
) -> ModelInput:
    history = [to_entry(record) for record in active or []]
    return RollingStrategy(limits or Limits()).assemble(SYSTEM, history, messages)


def sent(messages: list[AnyMessage], active: list[Record] | None = None, limits: Limits | None = None) -> str:
    """The one user message."""
    system, user = assembled(messages, active, limits).messages
    assert (system.type, user.type) == ("system", "human")
    return text_of(user)


def specs(turns: list[list[AnyMessage]], active: list[Record] | None = None, limits: Limits | None = None) -> list[str]:
    return [spec.kind for spec in RollingStrategy(limits or Limits()).due_folds(snapshot_of(turns, active or []))]


def turns_of(count: int) -> list[AnyMessage]:
    return [message for number in range(1, count + 1) for message in plain_turn(number)]


@pytest.mark.parametrize("turn_count", [1, 2, 3, 6])
def test_it_says_that_a_summary_is_due_just_when_one_is(turn_count: int) -> None:
    turns = [plain_turn(number, LONG) for number in range(1, turn_count + 1)]
    strategy = RollingStrategy(Limits(app_context_threshold=snapshot_of(turns[:2]).context_tokens))
    following = strategy.next_fold(snapshot_of(turns))
    assert following.is_due == bool(strategy.due_folds(snapshot_of(turns))) == (turn_count > 2)
    assert following.tokens == snapshot_of(turns).context_tokens


def test_case_a_the_first_message_goes_alone() -> None:
    assert sent([HumanMessage("첫 질문", id="u1")]) == "첫 질문"


def test_case_a_with_one_earlier_message_the_current_one_goes_alone() -> None:
    assert sent([AIMessage("인사", id="a0"), HumanMessage("둘째", id="u1")]) == "둘째"


def test_case_b_recent_messages_then_the_current_one() -> None:
    assert sent([*turns_of(2), HumanMessage("세 번째 질문", id="u3")]) == (
        "[RECENT MESSAGES]\nUSER: Q1\nASSISTANT: A1\nUSER: Q2\nASSISTANT: A2\n\n[CURRENT MESSAGE]\n세 번째 질문"
    )


def test_case_b_takes_six_messages_at_most_in_the_seed() -> None:
    text = sent([*turns_of(5), HumanMessage("now", id="u6")], limits=SEED)
    assert text.startswith("[RECENT MESSAGES]\nUSER: Q3\n")
    assert "Q2" not in text


def test_case_c_summary_recent_messages_and_the_current_one() -> None:
    summary = record_of((1, 2), "우주정거장 시뮬레이터를 논의했다.", kind="rolling")
    messages = [*plain_turn(3), HumanMessage("현재 질문", id="u4")]
    assert sent(messages, [summary]) == (
        "[CONVERSATION CONTEXT]\nThe following is a summary of our earlier conversation:\n"
        "우주정거장 시뮬레이터를 논의했다.\n\n"
        "[RECENT MESSAGES]\nUSER: Q3\nASSISTANT: A3\n\n[CURRENT MESSAGE]\n현재 질문"
    )


def test_case_c_right_after_a_summary_there_are_no_recent_messages() -> None:
    text = sent([HumanMessage("now", id="u3")], [record_of((1, 2), "S", kind="rolling")])
    assert "[RECENT MESSAGES]" not in text
    assert text.endswith("earlier conversation:\nS\n\n[CURRENT MESSAGE]\nnow")


def test_a_message_over_2000_characters_is_cut_in_the_input_and_the_current_one_is_not() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("가" * 2_000, id="u1"),
        AIMessage("나" * 2_001, id="a1"),
        HumanMessage("다" * 5_000, id="u2"),
    ]
    text = sent(messages)
    assert "USER: " + "가" * 2_000 + "\n" in text
    assert "ASSISTANT: " + "나" * 1_999 + "…\n" in text
    assert text.endswith("다" * 5_000)


def test_a_message_over_3000_characters_is_cut_in_the_summary_prompt() -> None:
    long: list[AnyMessage] = [HumanMessage("가" * 3_000, id="u1"), AIMessage("나" * 20_000, id="a1")]
    turns = [long, plain_turn(2)]
    (spec,) = RollingStrategy(Limits()).due_folds(snapshot_of(turns))
    assert [len(text_of(message)) for message in spec.messages] == [3_000, 3_000]
    assert text_of(spec.messages[1]).endswith("…")
    assert spec.original_chars == 23_000


def test_before_the_first_summary_all_messages_count() -> None:
    turns = [plain_turn(number, LONG) for number in range(1, 9)]
    total = sum(entry.tokens for entry in snapshot_of(turns).raw)
    assert specs(turns, limits=Limits(app_context_threshold=total)) == []
    assert specs(turns, limits=Limits(app_context_threshold=total - 1)) == ["rolling"]


def test_after_a_summary_only_the_messages_since_count() -> None:
    summary = record_of((1, 2, 3), LONG, kind="rolling")
    turns = [plain_turn(4, LONG), plain_turn(5, LONG)]
    since = sum(entry.tokens for entry in snapshot_of(turns, [summary]).raw)
    assert specs(turns, [summary], Limits(app_context_threshold=since)) == []
    assert specs(turns, [summary], Limits(app_context_threshold=since - 1)) == ["rolling"]


def test_a_version_leaves_the_newest_exchange_raw() -> None:
    turns = [plain_turn(1, LONG), plain_turn(2, LONG), tool_turn(3, LONG)]
    snapshot = snapshot_of(turns)
    (spec,) = RollingStrategy(Limits(app_context_threshold=100)).due_folds(snapshot)
    assert (spec.turns, spec.source_ids[-1]) == ((1, 2), "a2")
    text = sent([*turns[2], HumanMessage("now", id="u4")], [adopted(spec, "S")])
    assert "[RECENT MESSAGES]\nUSER: Q3\n" in text
    assert text.count("TOOL: R3") == 1


def test_the_newest_exchange_alone_makes_no_version_however_long_it_is() -> None:
    summary = record_of((1, 2), "S", kind="rolling")
    strategy = RollingStrategy(Limits(app_context_threshold=100))
    for active in ([], [summary]):
        snapshot = snapshot_of([plain_turn(3, LONG * 9)], active)
        assert strategy.due_folds(snapshot) == ()
        assert not strategy.next_fold(snapshot).is_due


def test_a_version_of_the_seed_covers_the_newest_exchange_too() -> None:
    limits = Limits(app_context_threshold=100, rolling_sends_unsummarised=False)
    (spec,) = RollingStrategy(limits).due_folds(snapshot_of([plain_turn(1, LONG), plain_turn(2, LONG)]))
    assert spec.turns == (1, 2)


def test_an_open_turn_is_not_summarised() -> None:
    snapshot = snapshot_of([plain_turn(1, LONG), plain_turn(2, LONG), [HumanMessage(LONG, id="u3")]])
    open_turn = type(snapshot)(2, snapshot.active, snapshot.raw, snapshot.rate)
    for is_seed, turns in ((False, (1,)), (True, (1, 2))):
        limits = Limits(app_context_threshold=100, rolling_sends_unsummarised=not is_seed)
        (spec,) = RollingStrategy(limits).due_folds(open_turn)
        assert spec.turns == turns


def test_versions_grow_and_each_covers_what_the_one_before_did() -> None:
    limits = Limits(app_context_threshold=100)
    (first,) = RollingStrategy(limits).due_folds(snapshot_of([plain_turn(n, LONG) for n in (1, 2, 3)]))
    v1 = adopted(first, "v1의 내용", "v1")
    (second,) = RollingStrategy(limits).due_folds(snapshot_of([plain_turn(n, LONG) for n in (3, 4, 5)], [v1]))
    assert (first.version, second.version) == (1, 2)
    assert (first.covered_message_count, second.covered_message_count) == (4, 8)
    assert second.covered_token_count > first.covered_token_count > 0
    assert (second.turns, second.from_position, second.to_position) == ((1, 2, 3, 4), 1, 8)
    assert second.source_ids[-1] == "a4"
    assert second.sources == ("v1",)


def test_the_prompt_of_the_second_version_has_the_summary_before_and_new_messages_alone() -> None:
    limits = Limits(app_context_threshold=100)
    v1 = record_of((1, 2), "v1의 내용", kind="rolling")
    (spec,) = RollingStrategy(limits).due_folds(snapshot_of([plain_turn(3, LONG), plain_turn(4)], [v1]))
    prompt = rolling_generator.get_prompt(spec.messages, spec.target_chars)
    told = 'Previous summary:\nv1의 내용\n\nNew messages since last summary:\n<m turn="1" from="user">Q3'
    assert told in prompt
    assert "what you don't carry over is lost" in prompt
    assert spec.message_turns == (0, 3, 3)
    numbered = rolling_generator.get_prompt(spec.messages, spec.target_chars, turns=spec.message_turns)
    assert '<m turn="3" from="user">Q3' in numbered
    assert "Conversation:" not in prompt
    assert "Q4" not in prompt


def test_the_prompt_of_the_first_version_has_the_whole_conversation() -> None:
    prompt = rolling_generator.get_prompt(turns_of(2), 3_000)
    assert prompt.startswith("Summarize the following conversation concisely")
    assert prompt.endswith("3000 characters at most.")
    assert "500 words" not in prompt
    q1, a1, q2 = (f'<m turn="{turn}" from="{who}">' for turn, who in ((1, "user"), (1, "assistant"), (2, "user")))
    assert f"Conversation:\n{q1}Q1</m>\n{a1}A1</m>\n{q2}Q2</m>" in prompt
    assert "Previous summary:" not in prompt


def test_a_summary_may_have_1024_tokens_and_no_turn_waits_for_it() -> None:
    turns = [plain_turn(1, LONG), plain_turn(2)]
    (spec,) = RollingStrategy(Limits(app_context_threshold=100)).due_folds(snapshot_of(turns))
    assert (spec.max_tokens, spec.answer_tokens) == (1_024, 1_024)
    assert not spec.is_waited
    assert not spec.is_exact


def test_a_slow_summary_still_fits_when_the_chat_has_gone_on() -> None:
    def key(turns: int) -> str:
        strategy = RollingStrategy(Limits(app_context_threshold=100))
        (spec,) = strategy.due_folds(snapshot_of([plain_turn(n, LONG) for n in range(1, turns + 1)]))
        return source_key(spec, model="m", prompt_version="1")

    assert key(2) == key(7)


def test_a_slow_summary_of_a_context_that_was_begun_anew_does_not_fit() -> None:
    strategy = RollingStrategy(Limits(app_context_threshold=100))
    before = snapshot_of([plain_turn(n, LONG) for n in (1, 2, 3)])
    after = type(before)(3, (), before.raw[2:], 0.3)
    keys = {source_key(strategy.due_folds(s)[0], model="m", prompt_version="1") for s in (before, after)}
    assert len(keys) == 2


def test_records_of_another_strategy_become_part_of_the_first_version() -> None:
    old = [record_of((1, 2, 3), "앞 블록"), record_of((4, 5, 6), "뒤 블록")]
    turns = [plain_turn(7, LONG), plain_turn(8)]
    (spec,) = RollingStrategy(Limits(app_context_threshold=100)).due_folds(snapshot_of(turns, old))
    assert text_of(spec.messages[0]) == "[1-3턴] 앞 블록\n[4-6턴] 뒤 블록"
    assert (spec.version, spec.turns) == (1, tuple(range(1, 8)))
    assert "[1-3턴] 앞 블록\n[4-6턴] 뒤 블록" in sent([HumanMessage("now", id="u7")], old)


def test_what_a_compaction_left_of_a_turn_is_sent() -> None:
    summary = record_of((1,), "S", kind="compaction")
    rest: list[AnyMessage] = [AIMessage("the rest of turn 2", id="a2"), HumanMessage("now", id="u3")]
    assert "ASSISTANT: the rest of turn 2\n" in sent(rest, [summary])


def test_a_tool_result_is_never_parted_from_its_call() -> None:
    prior = tool_turn(1, calls=3)
    assert unsent_count(prior, 3) == 1
    text = sent([*prior, HumanMessage("now", id="u2")], limits=replace(SEED, app_context_recent_messages=2))
    assert '(tool call: read_file {"path": "f1-0.py"})' in text
    assert text.count("TOOL: R1") == 3


def test_tool_calls_of_the_open_turn_follow_as_they_are() -> None:
    opened = tool_turn(2)[:-1]
    built = assembled([*plain_turn(1), *opened])
    assert [message.type for message in built.messages] == ["system", "human", "ai", "tool"]
    assert text_of(built.messages[1]).endswith("[CURRENT MESSAGE]\nQ2")


def test_records_of_another_strategy_have_english_labels_in_an_english_session() -> None:
    old = [record_of((1, 2, 3), "first block"), record_of((4, 5, 6), "second block")]
    snapshot = replace(snapshot_of([plain_turn(7, LONG), plain_turn(8)], old), language="en")
    (spec,) = RollingStrategy(Limits(app_context_threshold=100)).due_folds(snapshot)
    assert text_of(spec.messages[0]) == "[Turns 1-3] first block\n[Turns 4-6] second block"
    history = [to_entry(record) for record in old]
    built = RollingStrategy(Limits()).assemble(replace(SYSTEM, language="en"), history, [HumanMessage("now", id="u7")])
    assert "[Turns 1-3] first block\n[Turns 4-6] second block" in text_of(built.messages[1])


def test_every_message_that_no_summary_covers_is_sent() -> None:
    text = sent([*turns_of(8), HumanMessage("now", id="u9")])
    assert all(f"USER: Q{number}\n" in text for number in range(1, 9))


def test_no_recent_messages_at_all_can_be_set() -> None:
    text = sent([*turns_of(3), HumanMessage("now", id="u4")], limits=replace(SEED, app_context_recent_messages=0))
    assert text == "[CURRENT MESSAGE]\nnow"


def test_the_items_add_up_to_what_is_sent() -> None:
    built = assembled([*turns_of(4), HumanMessage(LONG, id="u5")], [record_of((1,), LONG, kind="rolling")])
    real = sum(estimate_tokens(text_of(message)) for message in built.messages)
    assert abs(built.sent_tokens - real) <= 5
    assert [item.kind for item in built.items] == ["system", "record", *["message"] * 8, "note", "message"]
