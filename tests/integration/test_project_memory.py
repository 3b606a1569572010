"""Each operation on a project's memory, by one, by several at once, and in stories beside a plain model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage

from graph.project.context_manager import RecordDecision
from graph.project.project_memory import Operation
from graph.project.roll_up import window_tokens
from graph.project.workflow_manager import OpenTask
from graph.value.error import InputError, NotFoundError, PathError, UnreachableError
from tests.fake.drawn import at_most
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project
from tests.fake.store import MovableClock

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
EACH = 200


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("make", [RecordDecision, OpenTask])
def test_an_operation_that_was_applied_before_changes_nothing(project: Project, make: type[Operation]) -> None:
    fields = {"id": "op-1", "at": project.clock.now, "text": "포트는 8501", "title": "포트 바꾸기"}
    operation = make.model_validate(fields)
    first = project.memory().apply(operation)
    stored = [project.stored(name) for name in ("context.json", "workflow.json")]
    again = project.memory().apply(operation)
    assert (again.made, again.is_applied) == (first.made, True)
    assert [project.stored(name) for name in ("context.json", "workflow.json")] == stored


@settings(max_examples=at_most(100))
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


def test_open_files_are_inside_the_project_relative_and_the_last_one_is_last(project: Project) -> None:
    context = project.context()
    assert context.note_open_files(["a.py", str(project.root / "b.py")]) == ("a.py", "b.py")
    assert context.note_open_files(["a.py"]) == ("b.py", "a.py")
    assert context.note_open_files(closed=["b.py"]) == ("a.py",)
    for path in ("../x", "/etc/passwd", "", ".", "a\0b"):
        with pytest.raises(PathError):
            context.note_open_files([path])
    assert context.data.memory.open_files == ("a.py",)
    assert len(context.note_open_files([f"f{number}" for number in range(80)])) == 50


def test_a_decision_that_another_replaced_is_kept_but_no_longer_told(project: Project) -> None:
    context = project.context()
    other = context.record_decision("담당은 김민수")
    old = context.record_decision("포트는 8501")
    new = context.record_decision("포트는 8502", replaces=old.id, source="model")
    assert (new.replaces, new.source) == (old.id, "model")
    assert context.record_decision("포트는 8502") == new  # word for word in force already
    assert project.stored()["memory"]["last_decisions"] == [other.text, "포트는 8502"]
    assert [each.in_force for each in context.data.memory.decisions] == [True, False, True]
    context.forget_decision(new.id)
    assert context.data.memory.last_decisions == (other.text,)
    with pytest.raises(NotFoundError):
        context.record_decision("포트는 8503", replaces=new.id)


def test_an_open_task_is_not_opened_twice_and_a_done_one_is_opened_anew_or_started_again(project: Project) -> None:
    workflow = project.workflow()
    task = workflow.open_task("릴리스 노트")
    workflow.open_task("태그")
    last = workflow.open_task("문서")
    workflow.complete_task("task_002")
    assert workflow.active_task == last  # another one that is done leaves it
    assert workflow.open_task("릴리스 노트") == workflow.active_task == task
    workflow.complete_task(task.id)
    another = workflow.open_task("릴리스 노트")
    assert (another.id, workflow.task(task.id).status) == ("task_004", "done")
    workflow.start_task(task.id)
    again = project.workflow().active_task
    assert again is not None
    assert (again.id, again.status, again.completed_at) == (task.id, "open", None)


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


def test_what_waits_for_a_summary_has_at_most_4096_tokens(project: Project) -> None:
    context = project.context(lambda *_: "")
    tokens = []
    for number in range(20):
        context.register_message("assistant", f"{number}번 서버를 옮기기로 결정했습니다. " * 50)
        tokens.append(window_tokens(context.data.conversation.recent_window))
    assert 4_096 >= max(tokens) > 3_000
    assert "결정했습니다" in context.data.conversation.running_summary


def test_two_processes_lose_and_tear_nothing(project: Project) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fake.registering", str(project.root), speaker, str(EACH)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for speaker in ("one", "two")
    ]
    said = [process.communicate()[0].splitlines() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    ids = {line.split()[0]: line.split(" ", 1)[1] for lines in said for line in lines}
    assert sorted(ids) == sorted(f"msg_{number:03}" for number in range(1, 2 * EACH + 1))
    data = project.context().data
    assert (data.conversation.message_count, data.stats.dialog_turns) == (2 * EACH, EACH)
    window = data.conversation.recent_window
    assert [message.id for message in window] == [
        f"msg_{n:03}" for n in range(2 * EACH - len(window) + 1, 2 * EACH + 1)
    ]
    assert [ids[message.id] for message in window] == [message.content for message in window]
    assert project.left_over() == []


@pytest.fixture
def full(project: Project) -> Project:
    """A window that waits for a summary."""
    told = [f"{number}번 서버를 도쿄 리전으로 옮기기로 결정했습니다." for number in range(40)]
    window = [
        {"id": f"msg_{number:03}", "role": "assistant", "content": text, "ts": "2026-03-01T12:00:00Z"}
        for number, text in enumerate(told, start=1)
    ]
    project.put({**SEED_CONTEXT, "conversation": {"recent_window": window, "message_count": 40}}, SEED_WORKFLOW)
    return project


def test_a_summary_that_arrives_after_other_writes_loses_none_of_them(full: Project) -> None:
    other = full.context(lambda *_: "")
    said: list[str] = []

    def summarise(_: Sequence[AnyMessage], __: int) -> str:
        full.memory(wait_seconds=0).read()  # no lock is held over a model call
        for number in range(10):
            said.append(other.register_message("user", f"그 사이 {number}"))
            other.record_decision(f"그 사이 결정 {number}")
        return f"옮길 서버를 정했다. 토큰은 {TOKEN} 이다."

    context = full.context(summarise)
    before = [message.id for message in context.data.conversation.recent_window]
    decided = len(context.data.memory.last_decisions)
    assert context.roll_up()
    data = context.data
    assert data.conversation.running_summary == "옮길 서버를 정했다. 토큰은 [secret: GitHub token] 이다."
    assert len(data.memory.last_decisions) == decided + 10
    ids = [message.id for message in data.conversation.recent_window]
    staying = [each for each in before if each in ids]
    assert ids == [*staying, *said]
    assert 0 < len(staying) < len(before)
    assert staying == before[-len(staying) :]


def test_a_summary_whose_base_is_gone_is_dropped_and_made_anew(full: Project) -> None:
    calls: list[str] = []

    def summarise(messages: Sequence[AnyMessage], _: int) -> str:
        calls.append(messages[0].text)
        if len(calls) == 1:
            full.workflow().open_plan("새 계획", "새 계획의 설명")
        return f"요약 {len(calls)}"

    full.context().edit_summary("옛 요약")
    context = full.context(summarise)
    assert context.roll_up()
    assert calls == ["옛 요약", "새 계획의 설명"]
    assert context.data.conversation.running_summary == "요약 2"


def test_a_base_that_always_changes_is_given_up_and_nothing_is_lost(full: Project) -> None:
    def summarise(_: Sequence[AnyMessage], __: int) -> str:
        context.edit_summary(f"고침 {context.data.updated_at}")
        return "늦은 요약"

    context = full.context(summarise)
    window = context.data.conversation.recent_window
    assert not context.roll_up()
    assert context.data.conversation.recent_window == window


def test_a_model_that_fails_changes_nothing_and_without_one_sentences_are_picked(full: Project) -> None:
    def summarise(_: Sequence[AnyMessage], __: int) -> str:
        raise UnreachableError

    before = full.stored()
    with pytest.raises(UnreachableError):
        full.context(summarise).roll_up()
    assert full.stored() == before
    context = full.context()
    assert context.roll_up()
    assert window_tokens(context.data.conversation.recent_window) <= 800
    summary = context.data.conversation.running_summary
    assert "결정했습니다" in summary
    assert not full.context(lambda *_: "요약").roll_up()
    assert context.data.conversation.running_summary == summary


@dataclass
class Expected:
    """What must stand in the files."""

    messages: list[str] = field(default_factory=list)
    decisions: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    tasks: dict[str, bool] = field(default_factory=dict)
    plan_of: dict[str, str] = field(default_factory=dict)
    plans: list[str] = field(default_factory=list)
    active_plan: str | None = None
    active_task: str | None = None

    def follow(self, plan: str) -> None:
        self.active_plan = plan
        still_open = (task for task, is_done in self.tasks.items() if self.plan_of[task] == plan and not is_done)
        self.active_task = next(still_open, None)


def chosen(ids: Iterable[str], pick: int) -> str | None:
    listed = list(ids)
    return listed[pick % len(listed)] if listed else None


class Story:
    """Two contexts and two workflows over the same files; each step is done by one of the two pairs."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        self.clock: MovableClock = self.project.clock
        self.contexts = [self.project.context(), self.project.context(self.summarise)]
        self.workflows = [self.project.workflow() for _ in range(2)]
        self.expected = Expected()
        self.number = 0
        self.context, self.other, self.workflow = self.contexts[0], self.contexts[1], self.workflows[0]
        self.text = "첫 말"
        self.say(0)

    def summarise(self, *_: object) -> str:
        return f"{self.number}번째까지의 요약"

    def step(self, step: Step, who: int, pick: int) -> None:
        self.number += 1
        self.clock.move(1)
        self.text = f"{self.number}번째 일"
        self.context, self.other, self.workflow = self.contexts[who], self.contexts[1 - who], self.workflows[who]
        step(self, pick)

    def say(self, pick: int) -> None:
        content = self.text + " 서버를 옮기기로 했습니다." * (60 if pick == 0 else pick)
        self.context.register_message("assistant" if pick % 2 else "user", content, operation_id=self.text)
        self.expected.messages.append(content)
        self.last = (self.text, content)

    def say_again(self, _: int) -> None:
        self.context.register_message("user", self.last[1], operation_id=self.last[0])

    def decide(self, _: int) -> None:
        self.expected.decisions[self.context.record_decision(self.text).id] = self.text

    def replace(self, pick: int) -> None:
        decisions = self.expected.decisions
        old = chosen(decisions, pick)
        decisions[self.context.record_decision(self.text, replaces=old).id] = self.text
        decisions.pop(old or "", None)

    def forget(self, pick: int) -> None:
        if (old := chosen(self.expected.decisions, pick)) is not None:
            self.context.forget_decision(old)
            del self.expected.decisions[old]

    def plan(self, _: int) -> None:
        plan = self.workflow.open_plan(self.text).id
        self.expected.plans.append(plan)
        self.expected.follow(plan)

    def switch(self, pick: int) -> None:
        if (plan := chosen(self.expected.plans, pick)) is not None:
            self.workflow.switch_plan(plan)
            if plan != self.expected.active_plan:
                self.expected.follow(plan)

    def task(self, _: int) -> None:
        task = self.workflow.open_task(self.text).id
        if self.expected.active_plan is None:  # a plan was made for it
            plan = self.workflow.active_plan
            assert plan is not None
            self.expected.active_plan = plan.id
            self.expected.plans.append(plan.id)
        self.expected.tasks[task], self.expected.plan_of[task] = False, self.expected.active_plan
        self.expected.active_task = task

    def start(self, pick: int) -> None:
        if (task := chosen(self.expected.tasks, pick)) is not None:
            self.workflow.start_task(task)
            self.expected.tasks[task] = False
            self.expected.active_plan, self.expected.active_task = self.expected.plan_of[task], task

    def complete(self, pick: int) -> None:
        if (task := chosen(self.expected.tasks, pick)) is not None:
            self.workflow.complete_task(task)
            self.expected.tasks[task] = True
            if task == self.expected.active_task:
                self.expected.follow(self.expected.plan_of[task])

    def forget_task(self, pick: int) -> None:
        if (task := chosen(self.expected.tasks, pick)) is not None:
            self.workflow.forget(task)
            del self.expected.tasks[task], self.expected.plan_of[task]
            if task == self.expected.active_task:
                self.expected.active_task = None

    def forget_plan(self, pick: int) -> None:
        expected = self.expected
        if (plan := chosen(expected.plans, pick)) is not None:
            self.workflow.forget(plan)
            expected.plans.remove(plan)
            for task in [task for task, holder in expected.plan_of.items() if holder == plan]:
                del expected.tasks[task], expected.plan_of[task]
            if plan == expected.active_plan:
                expected.active_plan = expected.active_task = None

    def open_file(self, pick: int) -> None:
        path = f"src/{pick % 4}.py"
        self.context.note_open_files([path])
        self.expected.files = [each for each in self.expected.files if each != path] + [path]

    def close_file(self, pick: int) -> None:
        if (path := chosen(self.expected.files, pick)) is not None:
            self.context.note_open_files(closed=[path])
            self.expected.files.remove(path)

    def roll_up(self, _: int) -> None:
        self.context.roll_up()

    def edit(self, _: int) -> None:
        self.other.edit_summary(self.text)

    def save(self, _: int) -> None:
        self.clock.move(3_600)
        self.context.save()

    def check(self) -> None:
        data, workflow, expected = self.contexts[0].data, self.project.workflow(), self.expected
        window = data.conversation.recent_window
        assert data.conversation.message_count == len(expected.messages)
        assert [each.content for each in window] == expected.messages[len(expected.messages) - len(window) :]
        assert {each.id: each.text for each in data.memory.decisions if each.in_force} == expected.decisions
        assert list(data.memory.last_decisions) == list(expected.decisions.values())
        assert list(data.memory.open_files) == expected.files
        assert {task.id: task.status == "done" for _, task in workflow.data.tasks()} == expected.tasks
        assert {task.id: plan.id for plan, task in workflow.data.tasks()} == expected.plan_of
        assert (data.memory.active_plan_id, data.memory.active_task_id) == (expected.active_plan, expected.active_task)
        assert (workflow.data.current_plan_id, workflow.data.current_task_id) == (
            expected.active_plan,
            expected.active_task,
        )
        assert self.contexts[1].primed().tokens <= 1_600
        assert self.project.left_over() == []


Step = Callable[[Story, int], None]
STEPS: st.SearchStrategy[Step] = st.sampled_from(
    [
        *(Story.say, Story.say, Story.say_again, Story.decide, Story.replace, Story.forget, Story.plan, Story.switch),
        *(Story.task, Story.start, Story.complete, Story.open_file, Story.close_file, Story.roll_up, Story.edit),
        *(Story.save, Story.forget_task, Story.forget_plan),
    ]
)


@settings(max_examples=at_most(100))
@given(st.lists(st.tuples(STEPS, st.integers(0, 1), st.integers(0, 7)), min_size=15, max_size=40))
def test_two_managers_change_one_project_as_if_they_were_one(steps: list[tuple[Step, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        story = Story(Path(folder))
        for step, who, pick in steps:
            story.step(step, who, pick)
        story.check()
