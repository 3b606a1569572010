"""The plans and tasks of a project: operations, and a manager for them."""

from __future__ import annotations

import uuid
from typing import Self

from graph.project.context_file import DONE, OPEN, Plan, Task, WorkflowFile, next_id
from graph.project.file_pair import ProjectState
from graph.project.project_memory import Change, Description, ItemId, Operation, ProjectMemory, TitleLine
from graph.value.error import NotFoundError


class NameProject(Operation):
    name: TitleLine

    def change(self, state: ProjectState) -> Change:
        return ProjectState(state.context, state.workflow.changed(project_name=self.name)), ""


class OpenPlan(Operation):
    """Adds a plan and activates it; its description replaces the running summary."""

    title: TitleLine
    description: Description = ""

    def change(self, state: ProjectState) -> Change:
        made = _new_plan(state, self.title, self)
        made = made.changed(description=self.description)
        return _switched(ProjectState(state.context, state.workflow.with_plan(made)), made, self), made.id


class SwitchPlan(Operation):
    """Activates a plan with its oldest open task; its description replaces the running summary."""

    plan_id: ItemId

    def change(self, state: ProjectState) -> Change:
        plan = state.workflow.find_plan(self.plan_id)
        if plan is None:
            raise NotFoundError(self.plan_id)
        if plan.id == state.context.memory.active_plan_id:
            return state, plan.id
        return _switched(state, plan, self), plan.id


class OpenTask(Operation):
    """Adds a task to a plan, by default the active one, and activates it; creates a first plan if there is none."""

    title: TitleLine
    plan_id: ItemId | None = None

    def change(self, state: ProjectState) -> Change:
        """Activates an open task of the same title in the plan instead of adding a second one."""
        workflow = state.workflow
        plan = workflow.find_plan(self.plan_id or state.context.memory.active_plan_id)
        if plan is None and self.plan_id is not None:
            raise NotFoundError(self.plan_id)
        plan = plan or _new_plan(state, workflow.project_name or self.title, self)
        task = next((each for each in plan.tasks if each.status != DONE and each.title == self.title), None)
        if task is None:
            number = next_id("task", [each.id for _, each in workflow.tasks()])
            task = Task(id=number, title=self.title, created_at=self.at)
            plan = plan.changed(tasks=[*plan.tasks, task])
        return _started(ProjectState(state.context, workflow.with_plan(plan)), plan, task, self), task.id


class StartTask(Operation):
    """Activates a task and its plan; reopens a finished task."""

    task_id: ItemId

    def change(self, state: ProjectState) -> Change:
        plan, task = _find_task(state, self.task_id)
        if task.status == DONE:
            task = task.changed(status=OPEN, completed_at=None)
            plan = _with_task(plan, task).changed(status=OPEN, completed_at=None)
        return _started(ProjectState(state.context, state.workflow.with_plan(plan)), plan, task, self), task.id


class CompleteTask(Operation):
    """Marks a task as done; if it was active, the plan's oldest open task becomes active."""

    task_id: ItemId

    def change(self, state: ProjectState) -> Change:
        plan, task = _find_task(state, self.task_id)
        if task.status == DONE:
            return state, task.id
        plan = _with_task(plan, task.changed(status=DONE, completed_at=self.at))
        changed = ProjectState(state.context, state.workflow.with_plan(plan))
        if state.context.memory.active_task_id == task.id:
            following = plan.next_task()
            changed = changed.with_active(plan.id, following.id if following else None)
        return changed, task.id


class CompletePlan(Operation):
    """Marks a plan as done; if it was active, none is active afterwards. Its tasks stay unchanged."""

    plan_id: ItemId

    def change(self, state: ProjectState) -> Change:
        plan = state.workflow.find_plan(self.plan_id)
        if plan is None:
            raise NotFoundError(self.plan_id)
        done = plan if plan.status == DONE else plan.changed(status=DONE, completed_at=self.at)
        changed = ProjectState(state.context, state.workflow.with_plan(done))
        if state.context.memory.active_plan_id == plan.id:
            changed = changed.with_active(None, None)
        return changed, plan.id


class Rename(Operation):
    item_id: ItemId
    title: TitleLine

    def change(self, state: ProjectState) -> Change:
        plan = state.workflow.find_plan(self.item_id)
        if plan is not None:
            plan = plan.changed(title=self.title)
        else:
            holder, task = _find_task(state, self.item_id)
            plan = _with_task(holder, task.changed(title=self.title))
        return ProjectState(state.context, state.workflow.with_plan(plan)), self.item_id


class ForgetItem(Operation):
    item_id: ItemId

    def change(self, state: ProjectState) -> Change:
        workflow, memory = state.workflow, state.context.memory
        if workflow.find_plan(self.item_id) is not None:
            changed = workflow.changed(plans=[each for each in workflow.plans if each.id != self.item_id])
        else:
            plan, task = _find_task(state, self.item_id)
            retained = [each for each in plan.tasks if each.id != task.id]
            changed = workflow.with_plan(plan.changed(tasks=retained))
        left = ProjectState(state.context, changed)
        return left.with_active(memory.active_plan_id, memory.active_task_id), self.item_id


def _new_plan(state: ProjectState, title: str, operation: Operation) -> Plan:
    return Plan(id=next_id("plan", [each.id for each in state.workflow.plans]), title=title, created_at=operation.at)


def _find_task(state: ProjectState, task_id: str) -> tuple[Plan, Task]:
    found = state.workflow.find_task(task_id)
    if found is None:
        raise NotFoundError(task_id)
    return found


def _with_task(plan: Plan, changed: Task) -> Plan:
    return plan.changed(tasks=[changed if task.id == changed.id else task for task in plan.tasks])


def _started(state: ProjectState, plan: Plan, task: Task, operation: Operation) -> ProjectState:
    if plan.id != state.context.memory.active_plan_id:
        state = _switched(state, plan, operation)
    return state.with_active(plan.id, task.id)


def _switched(state: ProjectState, plan: Plan, operation: Operation) -> ProjectState:
    """Activates a plan, whose description replaces the running summary; if none was active, only a description."""
    context = state.context
    if plan.description or context.memory.active_plan_id is not None:
        talk = context.conversation.changed(running_summary=plan.description, summary_at=operation.at)
        context = context.changed(conversation=talk)
    following = plan.next_task()
    return ProjectState(context, state.workflow).with_active(plan.id, following.id if following else None)


class WorkflowManager:
    """Manages `.ai-brain/workflow.json` (seed 000), as loaded or last changed by this object.

        workflow = WorkflowManager.load(memory)
        plan = workflow.open_plan("배포", "다음 주까지 0.2를 낸다")
        task = workflow.open_task("릴리스 노트 쓰기")
        workflow.complete_task(task.id)

    Changes are applied to the current file. Each changing method raises the errors of `ProjectMemory.apply`, and
    `InputError` for a title that is empty, too long or has a secret; an `operation_id` makes a call idempotent.
    """

    def __init__(self, memory: ProjectMemory, state: ProjectState) -> None:
        self._memory = memory
        self._state = state

    @classmethod
    def load(cls, memory: ProjectMemory) -> Self:
        """Reads the file; raises `ProjectError`."""
        return cls(memory, memory.read())

    @property
    def data(self) -> WorkflowFile:
        return self._state.workflow

    @property
    def project_name(self) -> str:
        return self.data.project_name

    @property
    def active_plan(self) -> Plan | None:
        return self.data.find_plan(self._state.context.memory.active_plan_id)

    @property
    def active_task(self) -> Task | None:
        found = self.data.find_task(self._state.context.memory.active_task_id)
        return found[1] if found else None

    def plan(self, plan_id: str) -> Plan:
        """Raises `NotFoundError` if there is no plan with this id."""
        if (found := self.data.find_plan(plan_id)) is None:
            raise NotFoundError(plan_id)
        return found

    def task(self, task_id: str) -> Task:
        """Raises `NotFoundError` if there is no task with this id."""
        if (found := self.data.find_task(task_id)) is None:
            raise NotFoundError(task_id)
        return found[1]

    def name_project(self, name: str) -> None:
        self._apply(NameProject(at=self._memory.now(), name=name))

    def open_plan(self, title: str, description: str = "", *, operation_id: str | None = None) -> Plan:
        operation = OpenPlan(id=_id(operation_id), at=self._memory.now(), title=title, description=description)
        return self.plan(self._apply(operation))

    def switch_plan(self, plan_id: str, *, operation_id: str | None = None) -> Plan:
        """Activates a plan; its description replaces the running summary."""
        return self.plan(self._apply(SwitchPlan(id=_id(operation_id), at=self._memory.now(), plan_id=plan_id)))

    def complete_plan(self, plan_id: str) -> Plan:
        """Marks a plan as done; if it was active, none is active afterwards."""
        return self.plan(self._apply(CompletePlan(at=self._memory.now(), plan_id=plan_id)))

    def open_task(self, title: str, plan_id: str | None = None, *, operation_id: str | None = None) -> Task:
        """Adds a task to a plan, by default the active one, and activates it."""
        operation = OpenTask(id=_id(operation_id), at=self._memory.now(), title=title, plan_id=plan_id)
        return self.task(self._apply(operation))

    def start_task(self, task_id: str) -> Task:
        """Activates a task, reopening a finished one."""
        return self.task(self._apply(StartTask(at=self._memory.now(), task_id=task_id)))

    def complete_task(self, task_id: str, *, operation_id: str | None = None) -> Task:
        """Marks a task as done; if it was active, the plan's oldest open task becomes the `active_task`."""
        return self.task(self._apply(CompleteTask(id=_id(operation_id), at=self._memory.now(), task_id=task_id)))

    def rename(self, item_id: str, title: str) -> None:
        self._apply(Rename(at=self._memory.now(), item_id=item_id, title=title))

    def forget(self, item_id: str) -> None:
        self._apply(ForgetItem(at=self._memory.now(), item_id=item_id))

    def _apply(self, operation: Operation) -> str:
        outcome = self._memory.apply(operation)
        self._state = outcome.state
        return outcome.made


def _id(operation_id: str | None) -> str:
    return operation_id or uuid.uuid4().hex
