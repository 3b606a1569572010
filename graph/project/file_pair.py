"""Reads and writes the two files of a project's memory consistently, even after a crash between both writes."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from graph.core.text import plain_value
from graph.file.folder_files import LARGEST_BYTES, Files
from graph.project.context_file import ContextFile, Part, WorkflowFile
from graph.value.error import InputError, NotFoundError, ProjectDamagedError, ProjectError, ProjectNewerError

CONTEXT: Final = "context.json"
WORKFLOW: Final = "workflow.json"
_MAJOR: Final = "1."
_DEEPEST: Final = 64
_ESCAPE: Final = "\\u"

Read = TypeVar("Read", ContextFile, WorkflowFile)


@dataclass(frozen=True)
class ProjectState:
    context: ContextFile
    workflow: WorkflowFile

    def repaired(self, at: datetime) -> ProjectState:
        """Returns a consistent state of both files.

        A `workflow.json` changed by other programs sets the active plan and task; unknown ids are dropped. Decisions
        only in the seed's list get the file's date.
        """
        context, workflow, memory = self.context, self.workflow, self.context.memory
        active = memory.active_plan_id, memory.active_task_id
        if context.workflow_updated_at != workflow.updated_at and workflow.current_plan_id is not None:
            active = workflow.current_plan_id, workflow.current_task_id
        memory = memory.with_all_decisions(context.updated_at or at)
        repaired = ProjectState(context.changed(memory=memory), workflow)
        return repaired.with_active(*active)

    def with_active(self, plan_id: str | None, task_id: str | None) -> ProjectState:
        """Returns the state with this active plan and task in both files; a task implies its plan."""
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
    """Parses and validates a file; raises `ProjectDamagedError`, or `ProjectNewerError` unless 1.x."""
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ProjectDamagedError(name, "not JSON") from error
    if not isinstance(value, dict) or not _is_flat(value):
        raise ProjectDamagedError(name, "too deep" if isinstance(value, dict) else "no object")
    if _ESCAPE in text:  # only an escape can produce a NUL or a lone surrogate
        value = plain_value(value)
    version = value.get("version", _MAJOR)
    if isinstance(version, str) and not version.startswith(_MAJOR):
        raise ProjectNewerError(name, version[:16])
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise ProjectDamagedError(name, location_of(error)) from error


def render(part: Part) -> bytes:
    return part.model_dump_json(indent=2).encode()


def location_of(error: ValidationError) -> str:
    """Returns the field and kind of a violated rule, such as `memory.open_files: too_long`; never the value."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'][:6])}: {first['type']}"[:200]


def _is_flat(value: Any, levels: int = _DEEPEST) -> bool:  # noqa: ANN401  # JSON of any shape
    """False for nesting too deep to be serialised again."""
    parts = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(part, levels - 1) for part in parts if isinstance(part, (dict, list)))


def _refuse(constant: str) -> float:
    message = f"{constant} is no JSON"
    raise ValueError(message)


SNAPSHOTS: Final = "snapshots"
KEPT: Final = 48
INTERVAL: Final = timedelta(minutes=30)
LARGEST_COPY_BYTES: Final = 5 * 1024 * 1024
_NAME: Final = re.compile(r"(\d{8}T\d{12}Z)-([0-9a-f]{12})\.json")
_TIME: Final = "%Y%m%dT%H%M%S%fZ"
# Dropped first from a snapshot.
_DIALOG: Final = ("recent_window", "vector_cache")

Sources = tuple[bytes | None, bytes | None]
"""The bytes of `context.json` and `workflow.json`; None for missing files."""


@dataclass(frozen=True)
class SnapshotItem:
    """A snapshot in a list; `at` is UTC."""

    name: str
    at: datetime
    size_bytes: int


class Snapshots:
    """The folder `snapshots/`: both files in one JSON, named by UTC time and hash. Use under the memory's lock."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def items(self) -> list[SnapshotItem]:
        found: list[SnapshotItem] = []
        for name, size in self._files.sizes().items():
            if (named := _NAME.fullmatch(name)) is not None and (at := _time_of(named[1])) is not None:
                found.append(SnapshotItem(name, at, size))
        return found[::-1]

    def is_due(self, now: datetime, since: datetime) -> bool:
        """True if the newest snapshot, or the memory, is 30 minutes old; ignores times in the future."""
        times = [at for at in (since, *(each.at for each in self.items())) if at <= now + INTERVAL]
        return not times or now - max(times) >= INTERVAL

    def take(self, sources: Sources, now: datetime) -> None:
        """Writes a snapshot of new content, then deletes old ones."""
        digest = hashlib.sha256(b"\0".join(each or b"" for each in sources)).hexdigest()[:12]
        items = self.items()
        while any(each.at == now for each in items):
            now += _TICK
        if not any(sources) or (items and items[0].name.endswith(f"-{digest}.json")):
            return
        try:
            pair = {name: json.loads(data) for name, data in zip((CONTEXT, WORKFLOW), sources, strict=True) if data}
        except (ValueError, RecursionError):
            return  # damaged files are renamed instead
        self._files.write(f"{now.astimezone(UTC):{_TIME}}-{digest}.json", _dump(pair))
        self._make_room()

    def read(self, name: str) -> ProjectState:
        """Returns the content of a snapshot; raises `NotFoundError` or `ProjectDamagedError`."""
        data = self._files.read(name) if _NAME.fullmatch(name) else None
        if data is None:
            raise NotFoundError(name)
        try:
            pair = json.loads(data)
        except (ValueError, RecursionError):
            pair = None
        if not isinstance(pair, dict):
            raise ProjectDamagedError(name)
        return ProjectState(
            parse(f"{name}/{CONTEXT}", _dump(pair.get(CONTEXT, {})), ContextFile),
            parse(f"{name}/{WORKFLOW}", _dump(pair.get(WORKFLOW, {})), WorkflowFile),
        )

    def newest(self) -> str:
        """Returns the name of the newest snapshot that can be read, or ""."""
        for each in self.items():
            try:
                self.read(each.name)
            except ProjectError:
                continue
            return each.name
        return ""

    def _make_room(self) -> None:
        """Limits snapshots to the newest 48 and to 5 MB: the oldest first lose their dialog, then are deleted."""
        items = self.items()
        for each in items[KEPT:]:
            self._files.remove(each.name)
        retained = items[:KEPT]
        for each in reversed(retained):
            if sum(self._files.sizes().values()) <= LARGEST_COPY_BYTES:
                return
            self._drop_dialog(each.name)
        for each in reversed(retained[1:]):
            if sum(self._files.sizes().values()) <= LARGEST_COPY_BYTES:
                return
            self._files.remove(each.name)

    def _drop_dialog(self, name: str) -> None:
        try:
            pair = json.loads(self._files.read(name) or b"")
        except (ValueError, RecursionError, ProjectError):
            return
        if isinstance(pair, dict):
            self._files.write(name, _dump(_without_dialog(pair)))


def _time_of(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _without_dialog(pair: dict[str, Any]) -> dict[str, Any]:
    context = pair.get(CONTEXT)
    talk = context.get("conversation") if isinstance(context, dict) else None
    if not isinstance(context, dict) or not isinstance(talk, dict):
        return pair
    without = {key: value for key, value in talk.items() if key not in _DIALOG}
    return {**pair, CONTEXT: {**context, "conversation": without}}


_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class FilePair:
    """The files on the disk: bytes, content, and content made consistent."""

    sources: Sources
    written: ProjectState
    state: ProjectState


def read_pair(files: Files, new: ProjectState, now: datetime) -> FilePair:
    """Reads both files and completes a change interrupted between them; `new` replaces missing ones.

    Raises:
        ProjectDamagedError: A file can't be parsed, or `workflow.json` is gone; nothing was written.
        ProjectError: A file can't be read; the subclass says why.
    """
    sources = files.read(CONTEXT), files.read(WORKFLOW)
    context = new.context if sources[0] is None else parse(CONTEXT, sources[0], ContextFile)
    workflow = new.workflow if sources[1] is None else parse(WORKFLOW, sources[1], WorkflowFile)
    if context.workflow_pending is not None and context.workflow_base == _digest(sources[1]):
        workflow = context.workflow_pending
        data = render(workflow)
        files.write(WORKFLOW, data)
        sources = sources[0], data
    elif sources[1] is None and context.workflow_updated_at is not None:
        raise ProjectDamagedError(WORKFLOW, "missing")
    written = ProjectState(context, workflow)
    return FilePair(sources, written, written.repaired(now))


def write_pair(files: Files, state: ProjectState, present: FilePair | None, now: datetime) -> ProjectState:
    """Writes `context.json`, including a changed `workflow.json`, then that file; returns both.

    Raises:
        InputError: `project_full`: a file would exceed the limit for reading.
        ProjectError: A file can't be written. If it is the second, the next read completes the change.
    """
    context, workflow = state.context, state.workflow
    before = present.written.workflow if present else None
    is_changed = workflow != before or workflow.updated_at is None
    if is_changed:
        workflow = workflow.changed(updated_at=_after(now, before.updated_at if before else None))
    context = context.changed(
        updated_at=_after(now, context.updated_at),
        workflow_updated_at=workflow.updated_at,
        workflow_pending=workflow if is_changed else None,
        workflow_base=_digest(present.sources[1] if present else None),
    )
    data = render(context)
    if len(data) > LARGEST_BYTES:
        raise InputError("project_full", CONTEXT)
    files.write(CONTEXT, data)
    if is_changed:
        files.write(WORKFLOW, render(workflow))
    return ProjectState(context, workflow)


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _after(now: datetime, before: datetime | None) -> datetime:
    """Returns `now`, or the next moment after `before` if a clock was set back."""
    return now if before is None or before < now else before + _TICK
