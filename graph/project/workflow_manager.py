"""The plans and tasks of a project for a chat: which there are, which are active, and what is done."""

from __future__ import annotations

import uuid
from typing import Self

from graph.error import NotFoundError
from graph.project.operation import Operation
from graph.project.project_memory import ProjectMemory
from graph.project.project_state import ProjectState
from graph.project.workflow_file import Plan, Task, WorkflowFile
from graph.project.workflow_operation import (
    CompletePlan,
    CompleteTask,
    ForgetItem,
    NameProject,
    OpenPlan,
    OpenTask,
    Rename,
    StartTask,
    SwitchPlan,
)


class WorkflowManager:
    """Shows `.ai-brain/workflow.json` (seed 000) as it was when this was loaded or last changed here.

        workflow = WorkflowManager.load(memory)
        plan = workflow.open_plan("배포", "다음 주까지 0.2를 낸다")
        task = workflow.open_task("릴리스 노트 쓰기")
        workflow.complete_task(task.id)

    A change is applied to the file as it stands. Each changing method raises what `ProjectMemory.apply` does, and
    `InputError` for a title that is empty, too long or has a secret; one with the `operation_id` of an earlier call
    changes nothing.

    Args:
        memory: The project's memory.
        state: Both files.
    """

    def __init__(self, memory: ProjectMemory, state: ProjectState) -> None:
        self._memory = memory
        self._state = state

    @classmethod
    def load(cls, memory: ProjectMemory) -> Self:
        """Reads the file.

        Raises:
            ProjectError: It can't be read; the subclass says why.
        """
        return cls(memory, memory.read())

    @property
    def data(self) -> WorkflowFile:
        """The whole file."""
        return self._state.workflow

    @property
    def project_name(self) -> str:
        """The project's name."""
        return self.data.project_name

    @property
    def active_plan(self) -> Plan | None:
        """The active plan."""
        return self.data.find_plan(self._state.context.memory.active_plan_id)

    @property
    def active_task(self) -> Task | None:
        """The active task."""
        found = self.data.find_task(self._state.context.memory.active_task_id)
        return found[1] if found else None

    def plan(self, plan_id: str) -> Plan:
        """Returns the plan of this id.

        Raises:
            NotFoundError: There is none.
        """
        if (found := self.data.find_plan(plan_id)) is None:
            raise NotFoundError(plan_id)
        return found

    def task(self, task_id: str) -> Task:
        """Returns the task of this id.

        Raises:
            NotFoundError: There is none.
        """
        if (found := self.data.find_task(task_id)) is None:
            raise NotFoundError(task_id)
        return found[1]

    def name_project(self, name: str) -> None:
        """Names the project."""
        self._apply(NameProject(at=self._memory.now(), name=name))

    def open_plan(self, title: str, description: str = "", *, operation_id: str | None = None) -> Plan:
        """Adds a plan and switches to it."""
        operation = OpenPlan(id=_id(operation_id), at=self._memory.now(), title=title, description=description)
        return self.plan(self._apply(operation))

    def switch_plan(self, plan_id: str, *, operation_id: str | None = None) -> Plan:
        """Makes a plan active; the running summary begins anew with its description."""
        return self.plan(self._apply(SwitchPlan(id=_id(operation_id), at=self._memory.now(), plan_id=plan_id)))

    def complete_plan(self, plan_id: str) -> Plan:
        """Marks a plan as done; none is active then, if it was."""
        return self.plan(self._apply(CompletePlan(at=self._memory.now(), plan_id=plan_id)))

    def open_task(self, title: str, plan_id: str | None = None, *, operation_id: str | None = None) -> Task:
        """Adds a task to a plan, or the active one, and makes it active."""
        operation = OpenTask(id=_id(operation_id), at=self._memory.now(), title=title, plan_id=plan_id)
        return self.task(self._apply(operation))

    def start_task(self, task_id: str) -> Task:
        """Makes a task active, open again if it was done."""
        return self.task(self._apply(StartTask(at=self._memory.now(), task_id=task_id)))

    def complete_task(self, task_id: str, *, operation_id: str | None = None) -> Task:
        """Marks a task as done; if it was active, its plan's oldest open one is then (`active_task`)."""
        return self.task(self._apply(CompleteTask(id=_id(operation_id), at=self._memory.now(), task_id=task_id)))

    def rename(self, item_id: str, title: str) -> None:
        """Gives a plan or a task another title."""
        self._apply(Rename(at=self._memory.now(), item_id=item_id, title=title))

    def forget(self, item_id: str) -> None:
        """Deletes a plan with its tasks, or a task."""
        self._apply(ForgetItem(at=self._memory.now(), item_id=item_id))

    def _apply(self, operation: Operation) -> str:
        outcome = self._memory.apply(operation)
        self._state = outcome.state
        return outcome.made


def _id(operation_id: str | None) -> str:
    return operation_id or uuid.uuid4().hex
