"""A project folder with its memory, and the files as seed 000 shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from graph.file.root_folder import RootFolders
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory
from graph.project.roll_up import Summarise
from graph.project.workflow_manager import WorkflowManager
from tests.fake.store import MovableClock

SEED_CONTEXT: Final[dict[str, Any]] = {
    "version": "1.0",
    "created_at": "2024-05-27T11:03:52Z",
    "updated_at": "2024-05-27T14:42:18Z",
    "memory": {
        "active_plan_id": "plan_001",
        "active_task_id": "task_004",
        "last_decisions": ["API 호환성 유지하기로 결정", " /flow 명령 패턴은 단수형 유지"],
        "open_files": ["app/workflow.py", "docs/cli.md"],
        "working_directory": "/repo",
    },
    "conversation": {
        "running_summary": "CLI 명령을 단수형으로 바꾸는 중이다.",
        "recent_window": [
            {"role": "user", "content": "다음은 뭐지?", "ts": "2024-05-27T14:23:00Z"},
            {"role": "assistant", "content": "문서를 고치면 됩니다.", "ts": "2024-05-27T14:23:09Z"},
        ],
        "vector_cache": [{"id": "msg_034", "embedding": [0.21, -0.5]}],
    },
    "stats": {"dialog_turns": 34, "total_tokens": 8920},
}
SEED_WORKFLOW: Final[dict[str, Any]] = {
    "version": "1.0",
    "updated_at": "2024-05-27T14:42:18Z",
    "project_name": "flow",
    "plans": [
        {
            "id": "plan_001",
            "title": "CLI 정리",
            "description": "명령을 단수형으로 바꾼다",
            "tasks": [{"id": "task_004", "title": "문서 고치기"}],
        }
    ],
}


class Project:
    """A project folder below an allowed one; `brain` is where its memory is kept."""

    def __init__(self, allowed: Path, name: str = "shop") -> None:
        self.allowed = allowed
        self.root = allowed / name
        self.brain = self.root / ".ai-brain"
        self.clock = MovableClock()
        self.root.mkdir(parents=True, exist_ok=True)

    def memory(self, owner: str = "", *, wait_seconds: float = 10) -> ProjectMemory:
        return ProjectMemory(RootFolders([self.allowed]), self.root, owner, clock=self.clock, wait_seconds=wait_seconds)

    def context(self, summarise: Summarise | None = None) -> ContextManager:
        return ContextManager(self.memory(), summarise=summarise)

    def workflow(self) -> WorkflowManager:
        return WorkflowManager.load(self.memory())

    def put(self, context: object = None, workflow: object = None) -> None:
        """Writes files as others would."""
        self.brain.mkdir(exist_ok=True)
        for name, value in (("context.json", context), ("workflow.json", workflow)):
            if value is not None:
                (self.brain / name).write_text(json.dumps(value, ensure_ascii=False, indent=2), encoding="utf-8")

    def stored(self, name: str = "context.json") -> Any:  # noqa: ANN401  # JSON of the file's shape
        return json.loads((self.brain / name).read_text(encoding="utf-8"))

    def left_over(self) -> list[str]:
        return [path.name for path in self.brain.rglob(".tmp-*")]
