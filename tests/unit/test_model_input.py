from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.model_input import assemble, render_system, stored_system, system_part
from graph.core.pin import ContextBlock, Pin, budget_tokens, fitting, place_pins, unsent
from graph.value.record import HistoryEntry

SYSTEM = system_part("ko", can_recall=True)
ENGLISH = system_part("en", can_recall=True)

HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")


def entry(first: int) -> HistoryEntry:
    return HistoryEntry(
        thread_id="s",
        turns=[first, first + 1, first + 2],
        turn_length=3,
        original_chars=100,
        summary_chars=30,
        compression_rate=0.3,
        summary=f"summary of {first}",
        id=f"r{first}",
        kind="interval",
        version=1,
        to_position=(first + 2) * 2,
        summary_tokens=9,
    )


def input_at(turn: int) -> tuple[str, list[str]]:
    covered = (turn - 1) // 3 * 3
    history = [entry(first) for first in range(1, covered + 1, 3)]
    messages: list[AnyMessage] = []
    for number in range(covered + 1, turn):
        messages += [HumanMessage(f"Q{number}", id=f"h{number}"), AIMessage(f"A{number}", id=f"a{number}")]
    messages.append(HumanMessage(f"Q{turn}", id=f"h{turn}"))
    built = assemble(SYSTEM, history, messages)
    return str(built.messages[0].content), [str(message.content) for message in built.messages[1:]]


@pytest.mark.parametrize(
    ("turn", "summaries", "raw_turns"),
    [
        (1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 1, 1), (5, 1, 2), (6, 1, 3),
        (7, 2, 1), (8, 2, 2), (9, 2, 3), (10, 3, 1), (50, 16, 2),
    ],
)  # fmt: skip
def test_model_input_follows_the_table_of_the_seed(turn: int, summaries: int, raw_turns: int) -> None:
    system, raw = input_at(turn)
    assert re.findall(r"^\[(\d+)-(\d+)턴\] ", system, re.MULTILINE) == [
        (str(3 * k + 1), str(3 * k + 3)) for k in range(summaries)
    ]
    assert [text for text in raw if text.startswith("Q")] == [f"Q{n}" for n in range(turn - raw_turns + 1, turn + 1)]


def test_turn_seven_reads_as_in_the_seed() -> None:
    system, raw = input_at(7)
    assert system.startswith("당신은 유용한 AI 어시스턴트입니다.")
    assert system.endswith("\n\n[이전 대화 요약]\n[1-3턴] summary of 1\n[4-6턴] summary of 4")
    assert raw == ["Q7"]


def test_a_turn_whose_beginning_was_folded_is_sent_behind_a_message_of_the_user() -> None:
    call: Any = {"name": "t", "args": {}, "id": "c", "type": "tool_call"}
    rest: list[AnyMessage] = [AIMessage("", tool_calls=[call], id="k2"), ToolMessage("42", tool_call_id="c", id="t2")]
    messages: list[AnyMessage] = [*rest, AIMessage("A2", id="a2"), HumanMessage("Q3", id="h3")]
    built = assemble(SYSTEM, [entry(1)], messages)
    assert [message.type for message in built.messages] == ["system", "human", "ai", "tool", "ai", "human"]
    assert built.messages[1].content == "(위 요약에서 이어집니다.)"
    assert list(built.messages[2:]) == messages
    assert (built.items[2].kind, built.items[2].id) == ("message", "continued-k2")
    assert built.items[2].tokens > 0


def test_in_an_english_session_every_fixed_word_is_english() -> None:
    rest: list[AnyMessage] = [AIMessage("A4", id="a4"), HumanMessage("Q5", id="h5")]
    built = assemble(ENGLISH, [entry(1)], rest)
    system = str(built.messages[0].content)
    assert system.startswith("You are a helpful AI assistant.\n")
    assert system.endswith("\n\n[Earlier conversation, summarised]\n[Turns 1-3] summary of 1")
    assert built.messages[1].content == "(This continues the summary above.)"
    said = "\n".join(str(message.content) for message in built.messages)
    assert not HANGUL.search(said)


def test_what_a_call_of_an_earlier_version_was_sent_is_built_again_byte_for_byte() -> None:
    messages: list[AnyMessage] = [AIMessage("A4", id="a4"), HumanMessage("Q5", id="h5")]
    again = assemble(stored_system("chat", 1), [entry(1)], messages)
    assert again.digest() == "c451e58c7363d0082766c33ea72fd710"  # as version 1 itself wrote it
    assert (again.items[0].id, again.items[0].version) == ("chat", 1)


def test_nothing_is_put_before_a_message_of_the_user() -> None:
    messages: list[AnyMessage] = [HumanMessage("Q1", id="h1"), AIMessage("A1", id="a1"), HumanMessage("Q2", id="h2")]
    assert list(assemble(SYSTEM, [], messages).messages[1:]) == messages


def test_without_records_there_is_no_summary_heading() -> None:
    assert "[이전 대화 요약]" not in render_system(SYSTEM, [])


def test_the_front_stands_before_the_instructions_of_a_program() -> None:
    own, front, client = (
        ContextBlock("own", 1, "I cook"),
        ContextBlock("front", 1, "## rules"),
        ContextBlock("client", 1, "be brief"),
    )
    system = replace(SYSTEM, own=own, front=front, client=client)
    assert render_system(system, []) == f"{SYSTEM.text}\n\nI cook\n\n## rules\n\nbe brief"


def test_a_pin_stands_behind_the_record_that_covers_it_up_to_its_last_message() -> None:
    first, last, later = (Pin(f"p{index}", index, 1, "human", "words") for index in (1, 6, 7))
    told = [entry(1), entry(4)]
    assert place_pins(told, [first, last, later]) == [told[0], first, last, told[1], later]
    assert unsent([later, last, first], [HumanMessage("words", id="p6")]) == [first, later]
    assert (budget_tokens(8_000), budget_tokens(128_000)) == (1_000, 4_000)


def test_of_more_pins_than_a_model_has_room_for_the_newest_that_fit_are_sent() -> None:
    pins = [Pin(f"p{index}", index, 1, "human", "words " * size) for index, size in enumerate((1, 9, 300, 9, 1))]
    sizes = [pin.tokens("en") for pin in pins]
    assert fitting(pins, sum(sizes), "en") == tuple(pins)
    assert fitting(pins, sum(sizes) - sizes[0] // 2, "en") == tuple(pins[1:])
    assert fitting(pins, sizes[3] + sizes[4], "en") == (pins[3], pins[4])
    assert fitting(pins, sizes[4] + sizes[0], "en") == (pins[0], pins[4])  # what is too long keeps no other out
    assert fitting(pins, 0, "en") == ()


def test_the_prefix_stays_unchanged_within_a_block() -> None:
    before, after = input_at(5), input_at(6)
    assert before[0] == after[0]
    assert after[1][: len(before[1])] == before[1]


def test_items_list_what_is_sent_in_order() -> None:
    messages: list[AnyMessage] = [HumanMessage("가나다", id="h4")]
    built = assemble(replace(SYSTEM, tool_schema='[{"name": "clock"}]'), [entry(1)], messages)
    assert [(item.kind, item.id) for item in built.items][:3] == [
        ("system", "chat-ko"),
        ("record", "r1"),
        ("message", "h4"),
    ]
    assert built.items[-1].kind == "tools"
    assert built.sent_tokens == sum(item.tokens for item in built.items)


def test_a_note_goes_last_and_leaves_the_working_set_alone() -> None:
    call: Any = {"name": "t", "args": {}, "id": "c", "type": "tool_call"}
    result = ToolMessage("42", tool_call_id="c", id="t")
    messages: list[AnyMessage] = [HumanMessage("q", id="h"), AIMessage("", tool_calls=[call], id="a"), result]
    built = assemble(replace(SYSTEM, note="no more"), [], messages)
    assert built.messages[-1].content == "42\n\nno more"
    assert result.content == "42"


def test_digest_follows_the_content_and_not_our_marks() -> None:
    def digest(message: AnyMessage) -> str:
        return assemble(SYSTEM, [], [message]).digest()

    assert digest(HumanMessage("a", id="1")) == digest(HumanMessage("a", id="2"))
    assert digest(HumanMessage("a", id="1")) != digest(HumanMessage("b", id="1"))


def test_the_system_prompt_comes_first_and_once() -> None:
    built = assemble(SYSTEM, [entry(1)], [HumanMessage("q", id="h")])
    assert [isinstance(message, SystemMessage) for message in built.messages] == [True, False]
