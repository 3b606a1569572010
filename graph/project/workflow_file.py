"""What stands in `.ai-brain/workflow.json`: the project's name, its plans and their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field

from graph.project.part import VERSION, Identifier, Part, Text, Time, Title, Version

OPEN: Final = "open"
DONE: Final = "done"


class Task(Part):
    """One piece of work of a plan; `status` is "open" or "done"."""

    id: Identifier
    title: Title
    status: Title = OPEN
    created_at: Time | None = None
    completed_at: Time | None = None


class Plan(Part):
    """A plan with its tasks, oldest first; `status` is "open" or "done"."""

    id: Identifier
    title: Title
    description: Text = ""
    status: Title = OPEN
    created_at: Time | None = None
    completed_at: Time | None = None
    tasks: Annotated[tuple[Task, ...], Field(max_length=500)] = ()

    def next_task(self) -> Task | None:
        """Returns the oldest task that is still open."""
        return next((task for task in self.tasks if task.status != DONE), None)


class WorkflowFile(Part):
    """The whole file.

    Attributes:
        updated_at: Changes with each write by us; `context.json` carries it, so that a half-made change is found.
        current_plan_id: The active plan, or None.
        current_task_id: The active task, or None.
    """

    version: Version = VERSION
    created_at: Time | None = None
    updated_at: Time | None = None
    project_name: Title = ""
    plans: Annotated[tuple[Plan, ...], Field(max_length=200)] = ()
    current_plan_id: Identifier | None = None
    current_task_id: Identifier | None = None

    def find_plan(self, plan_id: str | None) -> Plan | None:
        """Returns the plan of this id."""
        return next((plan for plan in self.plans if plan.id == plan_id), None)

    def find_task(self, task_id: str | None) -> tuple[Plan, Task] | None:
        """Returns the task of this id with its plan."""
        return next(((plan, task) for plan, task in self.tasks() if task.id == task_id), None)

    def tasks(self) -> Iterator[tuple[Plan, Task]]:
        """Yields every task with its plan."""
        return ((plan, task) for plan in self.plans for task in plan.tasks)

    def with_plan(self, changed: Plan) -> WorkflowFile:
        """Returns the file with this plan in the place of the one of its id, or behind all others.

        Raises:
            ValidationError: There are too many plans.
        """
        plans = [changed if plan.id == changed.id else plan for plan in self.plans]
        return self.changed(plans=plans if self.find_plan(changed.id) else [*plans, changed])
