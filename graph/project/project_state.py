"""Both files of a project's memory as values, read from JSON and written to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from graph.core.text import plain_value
from graph.error import ProjectDamagedError, ProjectNewerError
from graph.project.context_file import ContextFile
from graph.project.part import Part
from graph.project.workflow_file import WorkflowFile

CONTEXT: Final = "context.json"
WORKFLOW: Final = "workflow.json"
_MAJOR: Final = "1."
_DEEPEST: Final = 64
_ESCAPE: Final = "\\u"

Read = TypeVar("Read", ContextFile, WorkflowFile)


@dataclass(frozen=True)
class ProjectState:
    """The two files, which belong together."""

    context: ContextFile
    workflow: WorkflowFile

    def repaired(self, at: datetime) -> ProjectState:
        """Returns the state in which both files agree.

        A `workflow.json` that others have changed names the active plan and task; ids of what isn't there are dropped.
        Decisions that only stand in the seed's list are dated with the file.
        """
        context, workflow, memory = self.context, self.workflow, self.context.memory
        active = memory.active_plan_id, memory.active_task_id
        if context.workflow_updated_at != workflow.updated_at and workflow.current_plan_id is not None:
            active = workflow.current_plan_id, workflow.current_task_id
        memory = memory.with_all_decisions(context.updated_at or at)
        repaired = ProjectState(context.changed(memory=memory), workflow)
        return repaired.with_active(*active)

    def with_active(self, plan_id: str | None, task_id: str | None) -> ProjectState:
        """Returns the state with this active plan and task in both files; a task brings its plan."""
        found = self.workflow.find_task(task_id)
        plan = found[0] if found else self.workflow.find_plan(plan_id)
        ids = plan.id if plan else None, found[1].id if found else None
        memory, workflow = self.context.memory, self.workflow
        if ids != (memory.active_plan_id, memory.active_task_id):
            memory = memory.changed(active_plan_id=ids[0], active_task_id=ids[1])
        if ids != (workflow.current_plan_id, workflow.current_task_id):
            workflow = workflow.changed(current_plan_id=ids[0], current_task_id=ids[1])
        return ProjectState(self.context.changed(memory=memory), workflow)


def parse(name: str, data: bytes, kind: type[Read]) -> Read:
    """Reads a file.

    Raises:
        ProjectDamagedError: It isn't what the schema says; `detail` names the place.
        ProjectNewerError: It has another version than 1.x.
    """
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ProjectDamagedError(name, "not JSON") from error
    if not isinstance(value, dict) or not _is_flat(value):
        raise ProjectDamagedError(name, "too deep" if isinstance(value, dict) else "no object")
    if _ESCAPE in text:  # nothing else can hide a NUL or a lone surrogate in it
        value = plain_value(value)
    version = value.get("version", _MAJOR)
    if isinstance(version, str) and not version.startswith(_MAJOR):
        raise ProjectNewerError(name, version[:16])
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise ProjectDamagedError(name, place_of(error)) from error


def render(part: Part) -> bytes:
    """Returns a file's bytes: JSON that people can read."""
    return part.model_dump_json(indent=2).encode()


def place_of(error: ValidationError) -> str:
    """Returns where a value breaks a rule, such as `memory.open_files: too_long`; never the value."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'][:6])}: {first['type']}"[:200]


def _is_flat(value: Any, levels: int = _DEEPEST) -> bool:  # noqa: ANN401  # JSON of any shape
    """Whether a value can be written again: what is nested too deep can't."""
    parts = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(part, levels - 1) for part in parts if isinstance(part, (dict, list)))


def _refuse(constant: str) -> float:
    message = f"{constant} is no JSON"
    raise ValueError(message)
