"""The changes of plans and tasks, and of which are active: these concern both files."""

from __future__ import annotations

from graph.error import NotFoundError
from graph.project.operation import Change, Description, ItemId, Operation, TitleLine
from graph.project.part import next_id
from graph.project.project_state import ProjectState
from graph.project.workflow_file import DONE, OPEN, Plan, Task


class NameProject(Operation):
    """Names the project."""

    name: TitleLine

    def change(self, state: ProjectState) -> Change:
        """Sets the name."""
        return ProjectState(state.context, state.workflow.changed(project_name=self.name)), ""


class OpenPlan(Operation):
    """Adds a plan and makes it the active one; the running summary begins anew with its description."""

    title: TitleLine
    description: Description = ""

    def change(self, state: ProjectState) -> Change:
        """Adds it and switches to it."""
        made = _new_plan(state, self.title, self)
        made = made.changed(description=self.description)
        return _switched(ProjectState(state.context, state.workflow.with_plan(made)), made, self), made.id


class SwitchPlan(Operation):
    """Makes a plan the active one, with its oldest open task; the running summary begins anew with its description."""

    plan_id: ItemId

    def change(self, state: ProjectState) -> Change:
        """Switches to it; the plan that is active already changes nothing."""
        plan = state.workflow.find_plan(self.plan_id)
        if plan is None:
            raise NotFoundError(self.plan_id)
        if plan.id == state.context.memory.active_plan_id:
            return state, plan.id
        return _switched(state, plan, self), plan.id


class OpenTask(Operation):
    """Adds a task to a plan, or the active one, and makes it the active task; a first plan is made if there is none."""

    title: TitleLine
    plan_id: ItemId | None = None

    def change(self, state: ProjectState) -> Change:
        """Adds it; a task of this title that is open there already is made active instead."""
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
    """Makes a task the active one, and its plan the active plan; a task that was done is open again."""

    task_id: ItemId

    def change(self, state: ProjectState) -> Change:
        """Makes it active."""
        plan, task = _find_task(state, self.task_id)
        if task.status == DONE:
            task = task.changed(status=OPEN, completed_at=None)
            plan = _with_task(plan, task).changed(status=OPEN, completed_at=None)
        return _started(ProjectState(state.context, state.workflow.with_plan(plan)), plan, task, self), task.id


class CompleteTask(Operation):
    """Marks a task as done; if it was the active one, the plan's oldest open task takes its place."""

    task_id: ItemId

    def change(self, state: ProjectState) -> Change:
        """Marks it; one that is done already stays as it is."""
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
    """Marks a plan as done; if it was the active one, none is active then. Its tasks stay as they are."""

    plan_id: ItemId

    def change(self, state: ProjectState) -> Change:
        """Marks it."""
        plan = state.workflow.find_plan(self.plan_id)
        if plan is None:
            raise NotFoundError(self.plan_id)
        done = plan if plan.status == DONE else plan.changed(status=DONE, completed_at=self.at)
        changed = ProjectState(state.context, state.workflow.with_plan(done))
        if state.context.memory.active_plan_id == plan.id:
            changed = changed.with_active(None, None)
        return changed, plan.id


class Rename(Operation):
    """Gives a plan or a task another title."""

    item_id: ItemId
    title: TitleLine

    def change(self, state: ProjectState) -> Change:
        """Sets the title."""
        plan = state.workflow.find_plan(self.item_id)
        if plan is not None:
            plan = plan.changed(title=self.title)
        else:
            holder, task = _find_task(state, self.item_id)
            plan = _with_task(holder, task.changed(title=self.title))
        return ProjectState(state.context, state.workflow.with_plan(plan)), self.item_id


class ForgetItem(Operation):
    """Deletes a plan with its tasks, or a task."""

    item_id: ItemId

    def change(self, state: ProjectState) -> Change:
        """Deletes it; what was active and is gone is active no more."""
        workflow, memory = state.workflow, state.context.memory
        if workflow.find_plan(self.item_id) is not None:
            changed = workflow.changed(plans=[each for each in workflow.plans if each.id != self.item_id])
        else:
            plan, task = _find_task(state, self.item_id)
            kept = [each for each in plan.tasks if each.id != task.id]
            changed = workflow.with_plan(plan.changed(tasks=kept))
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
    """Returns the state with another active plan, whose description takes the place of the running summary.

    Where none was active the summary belongs to no other plan, and stays unless there is a description.
    """
    context = state.context
    if plan.description or context.memory.active_plan_id is not None:
        talk = context.conversation.changed(running_summary=plan.description, summary_at=operation.at)
        context = context.changed(conversation=talk)
    following = plan.next_task()
    return ProjectState(context, state.workflow).with_active(plan.id, following.id if following else None)
