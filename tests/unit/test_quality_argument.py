from __future__ import annotations

import json
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from bench.quality.argument import Need, argument_values, has_value, keep, measure, needs, read_runs


def call(**arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"id": "c", "name": "book", "args": arguments}])


RUN: list[AnyMessage] = [
    HumanMessage("My id is mia_li_36."),
    AIMessage("Thank you."),
    HumanMessage("To Oslo, please."),
    call(to="Oslo"),
    ToolMessage('{"flight": "HB101", "seats": 12}', tool_call_id="c"),
    AIMessage("HB101 goes there."),
    HumanMessage("Good."),
    AIMessage("Shall I book it?"),
    HumanMessage("Yes, HB101."),
    call(user="mia_li_36", flight="HB101", meal="vegan", seats=[12, 1], insured=True),
    AIMessage("Done."),
]


def test_a_need_is_a_value_of_a_later_call_that_the_folded_turns_have() -> None:
    # "Oslo" was asked for before anything was folded, "vegan" was never said, 1 and True are too short to tell.
    assert list(needs(RUN)) == [
        Need(3, "mia li 36", is_only_there=True),
        Need(3, "hb101", is_only_there=False),
        Need(3, "12", is_only_there=True),
    ]


def test_values_are_found_in_nested_arguments() -> None:
    arguments = {"a": {"b": ["X_1", 2.5]}, "c": None, "d": False, "e": "z"}
    assert list(argument_values(arguments)) == ["x 1", "2.5"]


@pytest.mark.parametrize(
    ("text", "value", "is_there"),
    [
        ("flight hb101, seats", "hb101", True),
        ("hb1012", "hb101", False),
        ("120.5", "120", False),
        ("in 120.", "120", True),
    ],
)
def test_a_value_is_no_part_of_a_longer_one(text: str, value: str, is_there: bool) -> None:  # noqa: FBT001  # a case
    assert has_value(text, value) is is_there


def test_kept_values_are_those_of_the_shortened_folded_turns() -> None:
    needed = [list(needs(RUN))]
    assert keep([RUN], needed, lambda messages, _: "\n".join(message.text for message in messages), 0.3) == [[True] * 3]
    assert keep([RUN], needed, lambda messages, _: messages[0].text, 0.3) == [[True, False, False]]


def test_a_file_of_runs_is_measured_and_its_absence_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        measure(tmp_path)
    said: list[dict[str, object]] = [{"role": "system", "content": "Be brief."}]
    for message in RUN:
        if isinstance(message, ToolMessage):
            said.append({"role": "tool", "tool_call_id": "c", "content": message.text})
        elif isinstance(message, AIMessage):
            calls = [
                {"id": "c", "type": "function", "function": {"name": "book", "arguments": json.dumps(each["args"])}}
                for each in message.tool_calls
            ]
            said.append({"role": "assistant", "content": message.text or None, "tool_calls": calls})
        else:
            said.append({"role": "user", "content": message.text})
    (tmp_path / "tau-bench").mkdir()
    path = tmp_path / "tau-bench" / "gpt-4o-airline-first40.json"
    path.write_text(json.dumps([{"task_id": 0, "traj": said}] * 2), encoding="utf-8")
    runs = read_runs(path)
    assert [message.text for message in runs[0]] == [message.text for message in RUN]
    assert list(needs(runs[0])) == list(needs(RUN))
    section = measure(tmp_path)
    assert "n = 6;" in section.method
    assert set(section.curves) >= {"picked sentences", "window"}
    assert len(section.requirements) == 1
