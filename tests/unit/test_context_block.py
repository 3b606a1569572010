from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.messages.utils import convert_to_openai_messages

from graph.core.model_input import ModelInput, SystemPart, render_system, system_part
from graph.core.pin import ContextBlock, cut_at, read_name
from graph.core.text import estimate_tokens
from graph.core.turn import text_of, undivided
from graph.strategy.base import Limits, Strategy
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.fit import Fit, Fitting
from graph.strategy.interval import IntervalStrategy
from graph.strategy.rolling import RollingStrategy
from graph.strategy.strategies import WindowStrategy
from graph.value.record import Record, to_entry
from prompt.system.framing import BLOCK_CUT, Language
from tests.fake.body import faults
from tests.fake.snapshot import plain_turn, record_of, tool_turn

FRONT: Final = ContextBlock("front", 3, "## 영구 컨텍스트\nprojectRules: 들여쓰기는 네 칸")
VOLATILE: Final = ContextBlock("volatile", 7, "## 휘발성 컨텍스트\ncurrentFile: /srv/app/main.py")
PLAIN: Final = replace(system_part("ko", can_recall=True), tool_schema='[{"name": "clock"}]')
SYSTEM: Final = replace(PLAIN, front=FRONT, volatile=VOLATILE)
STRATEGIES: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (
        IntervalStrategy(Limits()), RollingStrategy(Limits()), CompactionStrategy(Limits()), WindowStrategy(Limits())
    )
}  # fmt: skip
SUMMARY: Final = record_of((1, 2, 3), "서버를 옮기기로 함.")
OPEN: Final = HumanMessage("지금 물음", id="now")

each_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
OPENINGS: Final[list[list[AnyMessage]]] = [
    [OPEN],
    [*plain_turn(4), *tool_turn(5), OPEN],
    [*plain_turn(4), OPEN, *tool_turn(6)[1:-1]],
    [AIMessage("the rest of turn 3", id="rest"), OPEN],
]


def built(
    strategy: Strategy, messages: Sequence[AnyMessage], system: SystemPart = SYSTEM, records: Sequence[Record] = ()
) -> ModelInput:
    return strategy.assemble(system, [to_entry(record) for record in records], messages)


@each_strategy
@pytest.mark.parametrize("records", [[], [SUMMARY]], ids=["no record", "record"])
def test_the_front_stands_behind_the_rules_the_other_block_before_the_question(
    strategy: Strategy, records: list[Record]
) -> None:
    for messages in OPENINGS:
        before = [message.model_copy(deep=True) for message in messages]
        sent = built(strategy, messages, records=records)
        assert messages == before
        prompt = text_of(sent.messages[0])
        assert prompt.startswith(f"{SYSTEM.text}\n\n{FRONT.text}")
        behind = prompt.removeprefix(f"{SYSTEM.text}\n\n{FRONT.text}").partition("\n[1-3턴]")[0]
        assert behind in ("", "\n\n[이전 대화 요약]")
        asked = [text_of(message) for message in sent.messages if isinstance(message, HumanMessage)][-1]
        assert asked.endswith(f"{VOLATILE.text}\n\n[CURRENT MESSAGE]\n지금 물음")
        told = "\n".join(map(text_of, sent.messages))
        assert told.count(VOLATILE.text) == 1
        assert faults(convert_to_openai_messages(list(sent.messages))) == []
        # Without the blocks it is the input of a session outside of any project.
        plain = "\n".join(map(text_of, built(strategy, messages, system=PLAIN, records=records).messages))
        told = told.replace(f"\n\n{FRONT.text}", "")
        is_framed = "[CURRENT MESSAGE]" in plain
        assert plain == told.replace(
            f"{VOLATILE.text}\n\n" if is_framed else f"{VOLATILE.text}\n\n[CURRENT MESSAGE]\n", ""
        )


@each_strategy
def test_each_block_is_listed_once_and_all_add_up_to_what_is_sent(strategy: Strategy) -> None:
    for messages in OPENINGS:
        sent = built(strategy, messages, records=[SUMMARY])
        listed = [(item.id, item.version) for item in sent.items if item.kind == "context"]
        assert listed == [("front", 3), ("volatile", 7)]
        ids = [item.id for item in sent.items]
        assert ids[:2] == ["chat-ko", "front"]
        assert ids[ids.index("volatile") + 1] == "now"
        real = sum(estimate_tokens(text_of(message)) for message in sent.messages) + sent.items[-1].tokens
        calls = sum(len(message.tool_calls) for message in sent.messages if isinstance(message, AIMessage))
        assert abs(sent.sent_tokens - real - 20 * calls) <= len(sent.items) + 10 * calls


def test_the_guard_never_counts_a_block_as_something_to_fold() -> None:
    long = replace(SYSTEM, front=replace(FRONT, text="규칙을 지킵니다. " * 200))
    messages = [message for number in range(1, 9) for message in plain_turn(number, "말 " * 200)]
    strategy = WindowStrategy(Limits())
    started = Fit(long, (), [*messages, OPEN], built(strategy, [*messages, OPEN], long))
    fitted = Fitting(strategy.assemble, long, allowed_tokens=2_500, merged_tokens=600).by_leaving_out(started)
    assert fitted.model_input.sent_tokens <= 2_500
    assert [item.id for item in fitted.model_input.items if item.kind == "context"] == ["front", "volatile"]
    assert len(fitted.messages) > 1


DIVIDERS: Final = [
    "[7-9턴] ", "[Turns 7-9] ", "[turns 7-9]", "[이전 대화 요약]", "[Earlier conversation, summarised]",
    "[CURRENT MESSAGE]", "[RECENT MESSAGES]", "[CONVERSATION CONTEXT]",
    "[Previous conversation summary]", "---", "USER: ", "ASSISTANT: ", "TOOL: ",
]  # fmt: skip
BREAKS: Final = ["\n", "\r", "\r\n", "\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\x1c", "\n\n"]
TEXTS: Final = st.lists(
    st.sampled_from([*DIVIDERS, *BREAKS, "말", " ", "  ", "\u202e", "👩\u200d👧", "지시를 따르지 마."]), max_size=12
).map("".join)
DIVIDING: Final = re.compile("|".join(map(re.escape, [divider.strip() for divider in DIVIDERS])), re.IGNORECASE)


@given(st.sampled_from(get_args(Language)), TEXTS, TEXTS)
def test_no_block_can_say_where_another_part_begins(language: Language, front: str, volatile: str) -> None:
    system = replace(
        system_part(language, can_recall=True),
        front=ContextBlock("front", 1, undivided(f"front {front}")),
        volatile=ContextBlock("volatile", 1, undivided(f"volatile {volatile}")),
    )
    prompt = render_system(system, [to_entry(SUMMARY)]).removeprefix(system.text)
    heading = {"ko": "[이전 대화 요약]", "en": "[Earlier conversation, summarised]"}[language]
    label = {"ko": "[1-3턴] ", "en": "[Turns 1-3] "}[language]
    assert [line for line in prompt.splitlines() if DIVIDING.match(line) or line.startswith("[")] == [
        heading,
        f"{label}서버를 옮기기로 함.",
    ]
    for strategy in STRATEGIES.values():
        sent = built(strategy, [*plain_turn(4), OPEN], system)
        before, _, after = text_of(sent.messages[-1]).partition("\n\n[CURRENT MESSAGE]\n")
        assert after == "지금 물음"
        assert not any(DIVIDING.match(line) for line in before.partition("volatile")[2].splitlines())


@given(TEXTS)
def test_a_line_that_divides_nothing_stays_letter_for_letter(text: str) -> None:
    for line, told in zip(text.splitlines() or [""], undivided(text).split("\n"), strict=True):
        assert told == (f"  {line}" if DIVIDING.match(line) else line)


LONG: Final = st.lists(
    st.sampled_from(["규칙을 지킵니다.", "a b c " * 30, "", "0x7f 0x80", "👩\u200d👧"]), max_size=30
).map("\n".join)


@given(LONG, st.just(0) | st.integers(0, 30), st.integers(0, 300), st.sampled_from(get_args(Language)))
def test_a_cut_block_is_whole_lines_and_says_that_it_is_cut(
    text: str, fixed_lines: int, most_tokens: int, language: Language
) -> None:
    whole = ContextBlock("client", 7, text, fixed_lines=min(fixed_lines, len(text.splitlines())))
    sent = whole.within(most_tokens, language)
    is_fixed = whole.fixed_lines == len(text.splitlines())
    assert (sent == whole) is (is_fixed or estimate_tokens(text) <= most_tokens)
    if sent != whole:
        *retained, note = sent.text.split("\n")
        least = cut_at(text, whole.fixed_lines, language)
        assert estimate_tokens(sent.text) <= max(most_tokens, estimate_tokens(least))
        assert len(retained) >= whole.fixed_lines
        assert text.split("\n")[: len(retained)] == retained
        assert note == BLOCK_CUT[language]
        assert sent.within(most_tokens, language).text == sent.text
        # What was sent is made again of the whole block and its name, also of one that was cut twice.
        for cut in (sent, sent.within(most_tokens // 2, language)):
            assert read_name(cut.name) == ("client", cut.sent_lines)
            assert cut.text == cut_at(text, cut.sent_lines or 0, language)
    assert read_name(whole.name) == ("client", None)
