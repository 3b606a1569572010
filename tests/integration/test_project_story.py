"""Stories of two managers on one project, told beside a plain model of what must come of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fake.project import Project
from tests.fake.store import MovableClock


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


@settings(max_examples=30)
@given(st.lists(st.tuples(STEPS, st.integers(0, 1), st.integers(0, 7)), min_size=15, max_size=40))
def test_two_managers_change_one_project_as_if_they_were_one(steps: list[tuple[Step, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        story = Story(Path(folder))
        for step, who, pick in steps:
            story.step(step, who, pick)
        story.check()
