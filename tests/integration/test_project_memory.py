from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.error import (
    InputError,
    NotFoundError,
    PathError,
    TurnfoldError,
)
from graph.project.context_operation import RecordDecision
from graph.project.operation import Operation
from graph.project.workflow_operation import OpenTask
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("make", [RecordDecision, OpenTask])
def test_an_operation_that_was_applied_changes_nothing_and_tells_the_same(
    project: Project, make: type[Operation]
) -> None:
    memory = project.memory()
    fields = {"id": "op-1", "at": project.clock.now, "text": "포트는 8501", "title": "포트 바꾸기"}
    operation = make.model_validate(fields)
    first = memory.apply(operation)
    stored = [project.stored(name) for name in ("context.json", "workflow.json")]
    again = project.memory().apply(operation)
    assert (again.made, again.is_applied) == (first.made, True)
    assert [project.stored(name) for name in ("context.json", "workflow.json")] == stored


def test_messages_with_an_id_are_registered_once(project: Project) -> None:
    context = project.context()
    ids = [context.register_message("user", "안녕", operation_id="m-1") for _ in range(3)]
    assert ids == ["msg_001"] * 3
    assert context.data.stats.dialog_turns == 1


def test_a_secret_is_masked_in_dialog_and_summary_and_refused_elsewhere(project: Project) -> None:
    context, workflow = project.context(), project.workflow()
    context.register_message("user", f"토큰은 {TOKEN} 이야")
    context.edit_summary(f"토큰은 {TOKEN}")
    refused: list[TurnfoldError] = []
    for attempt in (
        lambda: context.record_decision(f"토큰은 {TOKEN}"),
        lambda: workflow.open_plan(TOKEN),
        lambda: workflow.open_plan("계획", f"설명 {TOKEN}"),
        lambda: workflow.open_task(TOKEN),
        lambda: workflow.name_project(TOKEN),
        lambda: context.note_open_files([f"keys/{TOKEN}"]),
    ):
        with pytest.raises(InputError) as error:
            attempt()
        refused.append(error.value)
    assert {(each.code, str(each)) for each in refused} == {("input", "input: GitHub token")}
    conversation = project.stored()["conversation"]
    assert conversation["recent_window"][0]["content"] == "토큰은 [secret: GitHub token] 이야"
    assert conversation["running_summary"] == "토큰은 [secret: GitHub token]"
    assert not any(TOKEN in path.read_text(encoding="utf-8") for path in project.brain.rglob("*") if path.is_file())


def test_a_secret_that_others_wrote_is_masked_when_it_is_primed(project: Project) -> None:
    context = {**SEED_CONTEXT, "memory": {"last_decisions": [TOKEN], "open_files": [TOKEN]}}
    context["conversation"] = {"running_summary": TOKEN, "recent_window": [{"role": "user", "content": TOKEN}]}
    project.put(context, {**SEED_WORKFLOW, "project_name": TOKEN})
    told = "\n".join(project.context().hydrate_prompt())
    assert TOKEN not in told
    assert told.count("[secret: GitHub token]") == 5


@settings(max_examples=40)
@given(
    st.text(st.characters(exclude_categories=())) | st.sampled_from([TOKEN, "\ud83d", "\x00", "가" * 5_000, "\u3164"]),
    st.text(max_size=100),
)
def test_whatever_is_given_is_stored_or_refused_by_an_error_of_ours(text: str, other: str) -> None:
    with TemporaryDirectory() as folder:
        project = Project(Path(folder))
        context, workflow = project.context(), project.workflow()
        for attempt in (
            lambda: context.register_message("user", text),
            lambda: context.register_message("assistant", other + text),
            lambda: context.edit_summary(text),
            lambda: context.record_decision(text),
            lambda: context.record_decision(other, replaces=text),
            lambda: context.forget_decision(text),
            lambda: context.note_open_files([text], closed=[text, other]),
            lambda: workflow.open_plan(text, other),
            lambda: workflow.open_task(other, plan_id=text),
            lambda: workflow.open_task(text),
            lambda: workflow.complete_task(text),
            lambda: workflow.switch_plan(text),
            lambda: workflow.rename("task_001", text),
            lambda: workflow.name_project(text),
        ):
            with suppress(InputError, NotFoundError, PathError):
                attempt()
        assert project.context().data.conversation.message_count == 2
        assert project.context().primed().tokens <= 1_600
        assert TOKEN not in "".join(path.read_text(encoding="utf-8") for path in project.brain.glob("*.json"))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "", ".", "a\0b"])
def test_an_open_file_outside_the_project_is_refused(project: Project, path: str) -> None:
    with pytest.raises(PathError):
        project.context().note_open_files([path])


def test_open_files_are_relative_and_the_last_one_is_last(project: Project) -> None:
    context = project.context()
    assert context.note_open_files(["a.py", str(project.root / "b.py")]) == ("a.py", "b.py")
    assert context.note_open_files(["a.py"]) == ("b.py", "a.py")
    assert context.note_open_files(closed=["b.py"]) == ("a.py",)
    assert len(context.note_open_files([f"f{number}" for number in range(80)])) == 50


def test_a_decision_that_another_replaced_is_kept_but_no_longer_told(project: Project) -> None:
    context = project.context()
    old = context.record_decision("포트는 8501")
    new = context.record_decision("포트는 8502", replaces=old.id, source="model")
    assert (new.replaces, new.source) == (old.id, "model")
    assert project.stored()["memory"]["last_decisions"] == ["포트는 8502"]
    assert [each.in_force for each in context.data.memory.decisions] == [False, True]
    context.forget_decision(new.id)
    assert context.data.memory.last_decisions == ()
    with pytest.raises(NotFoundError):
        context.record_decision("포트는 8503", replaces=new.id)


def test_more_decisions_than_fit_are_refused_and_those_out_of_force_go_first(project: Project) -> None:
    decisions = [{"id": f"decision_{n:03}", "text": f"결정 {n}", "in_force": n != 7} for n in range(1, 501)]
    project.put({**SEED_CONTEXT, "memory": {"decisions": decisions}}, SEED_WORKFLOW)
    context = project.context()
    context.record_decision("하나 더")
    assert "decision_007" not in {each.id for each in context.data.memory.decisions}
    with pytest.raises(InputError) as refused:
        context.record_decision("또 하나")
    assert refused.value.reason == "project_full"
    assert len(context.data.memory.decisions) == 500
