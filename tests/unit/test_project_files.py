from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from graph.project.context_file import (
    ContextFile,
    Conversation,
    Decision,
    Memory,
    Message,
    Plan,
    WorkflowFile,
    next_id,
    summary_limit_chars,
)
from graph.project.file_pair import ProjectState, parse, render
from graph.value.error import ProjectDamagedError, ProjectError, ProjectNewerError
from tests.fake.store import MovableClock

NOW = MovableClock().now
OURS = {name for kind in (ContextFile, WorkflowFile, Memory, Conversation, Message, Plan) for name in kind.model_fields}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
UNKNOWN = st.dictionaries(
    st.text(max_size=12)
    | st.sampled_from(["model_config", "model_dump", "copy", "changed", "self", "__class__", "json"]),
    JSON,
    max_size=3,
).map(lambda fields: {name: value for name, value in fields.items() if name not in OURS})


def as_read(value: object) -> dict[str, Any]:
    return dict(json.loads(render(parse("context.json", json.dumps(value).encode(), ContextFile))))


def is_within(part: object, whole: object) -> bool:
    """Whether every field of a JSON value stands in another one."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and is_within(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(is_within(*pair) for pair in zip(part, whole, strict=True))
    return bool(part == whole)


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """What JSON of UTF-8 can say of it."""
    return dict(json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").replace(b"\\u0000", b"?")))


@given(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
def test_unknown_fields_are_kept_at_every_level(
    top: dict[str, Any], memory: dict[str, Any], message: dict[str, Any], plan: dict[str, Any]
) -> None:
    top, memory, message, plan = (plain(fields) for fields in (top, memory, message, plan))
    told = {"role": "user", "content": "안녕", **message}
    context = {**top, "memory": memory, "conversation": {"recent_window": [told]}, "stats": dict(top)}
    for name in ("dialog_turns", "total_tokens"):
        context["stats"].pop(name, None)
    workflow = {**top, "plans": [{"id": "plan_001", "title": "계획", **plan}]}
    state = ProjectState(
        parse("context.json", json.dumps(context).encode(), ContextFile),
        parse("workflow.json", json.dumps(workflow).encode(), WorkflowFile),
    ).repaired(NOW)
    changed = state.with_active("plan_001", None)
    retained = changed.context.changed(memory=changed.context.memory.with_decisions([Decision(id="d", text="결정")]))
    assert is_within(context, json.loads(render(retained)))
    assert is_within(workflow, json.loads(render(changed.workflow)))


def test_a_message_too_long_for_the_file_keeps_its_beginning() -> None:
    content = Message(role="user", content="단어 " * 20_000).content
    assert len(content) <= 16_000
    assert content.startswith("단어 단어")
    assert content.endswith("…")


def test_ids_go_on_from_the_highest_of_their_kind() -> None:
    assert next_id("plan", []) == "plan_001"
    assert next_id("plan", ["plan_001", "plan_040", "plan_x", "task_900", "plan_²"]) == "plan_041"


def test_a_decision_written_by_hand_gets_a_date_and_an_id_once() -> None:
    memory = Memory(last_decisions=("가", "나", "가"), decisions=(Decision(id="decision_004", text="나", date=NOW),))
    adopted = memory.with_all_decisions(NOW)
    assert adopted.last_decisions == ("나", "가")
    assert [(each.id, each.date) for each in adopted.decisions] == [("decision_004", NOW), ("decision_005", NOW)]
    assert adopted.with_all_decisions(NOW) == adopted


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_file_or_refused_with_the_place(data: bytes) -> None:
    detail = "context.json: "
    try:
        parse("context.json", data, ContextFile)
    except ProjectError as error:
        detail = error.detail
    assert detail.startswith("context.json: ")


def test_hostile_files_are_damaged_and_never_quoted() -> None:
    for data in (
        b"",
        b"null",
        b"[" * 100_000,
        b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"a": NaN}',
        b'{"a": ' + b"9" * 10_000 + b"}",
        b'{"version": 1}',
        b'{"updated_at": "yesterday"}',
        b'{"updated_at": "0001-01-01T00:00:00+14:00"}',
        b'{"stats": {"dialog_turns": -1}}',
        '{"memory": {"open_files": "app.py"}}'.encode("utf-16"),
    ):
        with pytest.raises(ProjectDamagedError):
            parse("context.json", data, ContextFile)
    with pytest.raises(ProjectDamagedError) as raised:
        as_read({"memory": {"active_plan_id": ["봄날의곰123"]}, "봄날의곰123": 1})
    assert raised.value.detail == "context.json: memory.active_plan_id: string_type"
    assert "봄날의곰123" not in f"{raised.value} {raised.value.__cause__}"


def test_surrogates_and_nul_become_replacement_characters_and_times_utc() -> None:
    data = b'{"x": "\\ud800\\u0000", "created_at": "2024-05-27T20:03:52+09:00", "updated_at": "2024-05-27T11:03:52"}'
    context = parse("context.json", data, ContextFile)
    told = json.loads(render(context))
    assert (told["x"], told["created_at"]) == ("\ufffd\ufffd", "2024-05-27T11:03:52Z")
    assert context.created_at == context.updated_at


def test_another_version_is_told_apart_from_damage() -> None:
    for version in ("2.0", "0.9", "next"):
        with pytest.raises(ProjectNewerError):
            as_read({"version": version})
    assert as_read({"version": "1.7"})["version"] == "1.7"


def test_limits_stand_in_the_constructor_and_on_the_way_of_every_change() -> None:
    too_much: list[tuple[type[Decision | Plan | Memory | WorkflowFile], dict[str, Any]]] = [
        (Decision, {"id": "d", "text": "x" * 1_001}),
        (Decision, {"id": "", "text": "x"}),
        (Plan, {"id": "p", "title": "x" * 301}),
        (Plan, {"id": "p", "title": "x", "tasks": [{"id": f"t{n}", "title": "x"} for n in range(501)]}),
        (Memory, {"open_files": [f"f{n}" for n in range(51)]}),
        (Memory, {"open_files": ["x" * 1_025]}),
        (Memory, {"last_decisions": ["x"] * 501}),
        (WorkflowFile, {"plans": [{"id": f"p{n}", "title": "x"} for n in range(201)]}),
    ]
    for kind, fields in too_much:
        with pytest.raises(ValidationError):
            kind(**fields)
        start = kind.model_validate({name: "x" for name, field in kind.model_fields.items() if field.is_required()})
        with pytest.raises(ValidationError):
            start.changed(**fields)


@given(st.text(min_size=300, max_size=1_200) | st.text("가나다라 .", min_size=300, max_size=1_200))
@example("배포 날짜를 정했고 포트는 8501이다. " * 40)
@example("The date was fixed and the port is 8501. " * 40)
def test_a_summary_is_cut_to_its_language_s_limit(text: str) -> None:
    limit = summary_limit_chars(text)
    retained = Conversation(running_summary=text).running_summary
    assert limit in {400, 700}
    assert len(retained) <= limit
    assert retained == text or len(text) > limit
