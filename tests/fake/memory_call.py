"""Every method of `Projects` that reads or changes a project's memory, called with the ids that a test names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from graph.project_view import ProjectView
from graph.service.projects import Projects


@dataclass(frozen=True)
class MemoryIds:
    """What stands in a memory, by its id; as it is, in none."""

    plan: str = "plan_999"
    task: str = "task_999"
    decision: str = "decision_999"
    snapshot: str = "20240101T000000000000Z-0123456789ab.json"


MEMORY_CALLS: Final[dict[str, Callable[[Projects, str, MemoryIds], ProjectView]]] = {
    "close_file": lambda projects, root, _: projects.close_file(root, "docs/cli.md"),
    "complete_plan": lambda projects, root, ids: projects.complete_plan(root, ids.plan),
    "complete_task": lambda projects, root, ids: projects.complete_task(root, ids.task),
    "edit_summary": lambda projects, root, _: projects.edit_summary(root, "새 요약"),
    "forget": lambda projects, root, ids: projects.forget(root, ids.task),
    "forget_decision": lambda projects, root, ids: projects.forget_decision(root, ids.decision),
    "forget_dialog": lambda projects, root, _: projects.forget_dialog(root),
    "get": lambda projects, root, _: projects.get(root),
    "name": lambda projects, root, _: projects.name(root, "가게"),
    "open_file": lambda projects, root, _: projects.open_file(root, "app/new.py"),
    "open_plan": lambda projects, root, _: projects.open_plan(root, "새 계획"),
    "open_task": lambda projects, root, _: projects.open_task(root, "새 일"),
    "record_decision": lambda projects, root, ids: projects.record_decision(root, "포트는 8502", replaces=ids.decision),
    "rename": lambda projects, root, ids: projects.rename(root, ids.task, "표 달기"),
    "restore": lambda projects, root, ids: projects.restore(root, ids.snapshot),
    "start_task": lambda projects, root, ids: projects.start_task(root, ids.task),
    "switch_plan": lambda projects, root, ids: projects.switch_plan(root, ids.plan),
}
