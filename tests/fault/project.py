"""Kills processes that write a project's memory; what was acknowledged is there, and what was begun happens once."""

from __future__ import annotations

import itertools
import json
import os
import random
import select
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from graph.file.root_folder import RootFolders
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory
from graph.project.workflow_manager import WorkflowManager
from tests.fault.mark import Marker
from tests.fault.process import fork, kill

_KILLS_PER_FOLDER: Final = 40
_LONGEST_SECONDS: Final = 0.04
_PATIENCE_SECONDS: Final = 30.0
_LINE_BYTES: Final = 65_536


@dataclass
class Found:
    """The result.

    Attributes:
        acknowledged: How many writes were acknowledged before a kill.
        halves: How many kills left a file half written.
        between: How many kills left a change in one file alone.
    """

    kills: int = 0
    acknowledged: int = 0
    halves: int = 0
    between: int = 0
    wrong: list[str] = field(default_factory=list)


def kill_while_writing(root: Path, *, kills: int, seed: int) -> Found:
    """Kills a writer again and again at a moment that is drawn, and looks at the files each time."""
    drawn, found = random.Random(seed), Found()  # noqa: S311  # a test that can be repeated
    for number in range(kills):
        folder = root / f"project-{number // _KILLS_PER_FOLDER}"
        folder.mkdir(parents=True, exist_ok=True)
        said = _killed(folder, f"w{number}", drawn.uniform(0, _LONGEST_SECONDS))
        found.kills += 1
        found.acknowledged += sum(line.startswith("did ") for line in said)
        found.halves += any((folder / ".ai-brain").rglob(".tmp-*"))
        found.between += _is_between(folder / ".ai-brain")
        found.wrong += [f"kill {number}: {fault}" for fault in _check(folder, said)]
    return found


def _killed(folder: Path, name: str, after_seconds: float) -> list[str]:
    """Starts a writer, kills it so long after its first write, and returns what it said."""
    process_id, pipe = fork(partial(_write, folder, name))
    heard = b""
    while b"did " not in heard and select.select([pipe], [], [], _PATIENCE_SECONDS)[0]:
        more = os.read(pipe, _LINE_BYTES)
        if not more:
            break
        heard += more
    select.select([], [], [], after_seconds)
    kill(process_id)
    with os.fdopen(pipe, "rb") as rest:
        heard += rest.read()
    return heard.decode().splitlines()


def _open(folder: Path) -> ProjectMemory:
    return ProjectMemory(RootFolders([folder]), folder)


def _do(memory: ProjectMemory, name: str) -> None:
    """Does the write of this name; the same one again changes nothing."""
    context = ContextManager(memory, summarise=lambda *_: "")
    kind = name.partition("-")[0]
    if kind == "message":
        context.register_message("user", name, operation_id=name)
    elif kind == "decision":
        context.record_decision(name, operation_id=name)
    else:
        workflow = WorkflowManager.load(memory)
        task = workflow.open_task(name, operation_id=name)
        workflow.complete_task(task.id, operation_id=f"{name}-done")


def _write(folder: Path, name: str, marker: Marker) -> None:
    memory = _open(folder)
    for number, kind in enumerate(itertools.cycle(("decision", "message", "task"))):
        marker.say("does", f"{kind}-{name}-{number}")
        _do(memory, f"{kind}-{name}-{number}")
        marker.say("did", f"{kind}-{name}-{number}")


def _is_between(brain: Path) -> bool:
    context = json.loads((brain / "context.json").read_bytes())
    path = brain / "workflow.json"
    updated_at = json.loads(path.read_bytes())["updated_at"] if path.exists() else None
    return bool(context["workflow_updated_at"] != updated_at)


def _check(folder: Path, said: list[str]) -> list[str]:
    if not any(line.startswith("did ") for line in said):
        return ["nothing was written"]
    memory = _open(folder)
    wrong = [f"{path.name} is left" for path in (folder / ".ai-brain").rglob(".tmp-*")]
    wrong += _missing(memory, [line.removeprefix("did ") for line in said if line.startswith("did ")])
    started = [line.removeprefix("does ") for line in said if line.startswith("does ")]
    for _ in range(2):
        _do(memory, started[-1])
    return wrong + _missing(memory, started)


def _missing(memory: ProjectMemory, names: list[str]) -> list[str]:
    state = memory.read()
    done = [task.title for _, task in state.workflow.tasks() if task.status == "done"]
    decided = list(state.context.memory.last_decisions)
    # What one writer says in a moment is less than what waits for a summary.
    said = [message.content for message in state.context.conversation.recent_window]
    counts = {name: [*done, *decided, *said].count(name) for name in names}
    return [f"{name} is there {count} times" for name, count in counts.items() if count != 1]
