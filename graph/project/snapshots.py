"""Snapshots of both files of a project's memory: when one is due, how many are kept, and what is in one."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from graph.error import NotFoundError, ProjectDamagedError, ProjectError
from graph.project.context_file import ContextFile
from graph.project.folder_files import Files
from graph.project.project_state import CONTEXT, WORKFLOW, ProjectState, parse
from graph.project.workflow_file import WorkflowFile

SNAPSHOTS: Final = "snapshots"
KEPT: Final = 48
INTERVAL: Final = timedelta(minutes=30)
LARGEST_BYTES: Final = 5 * 1024 * 1024
_NAME: Final = re.compile(r"(\d{8}T\d{12}Z)-([0-9a-f]{12})\.json")
_TIME: Final = "%Y%m%dT%H%M%S%fZ"
_TICK: Final = timedelta(microseconds=1)
# What a snapshot loses first.
_DIALOG: Final = ("recent_window", "vector_cache")

Sources = tuple[bytes | None, bytes | None]
"""The bytes of `context.json` and `workflow.json`; None for a file that isn't there."""


@dataclass(frozen=True)
class SnapshotItem:
    """A snapshot as a list shows it; `at` is UTC."""

    name: str
    at: datetime
    size_bytes: int


class Snapshots:
    """The folder `snapshots/`, one JSON file each with both files in it, named by UTC time and hash.

    All of it is called under the lock of the memory.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def items(self) -> list[SnapshotItem]:
        """Returns the snapshots, newest first."""
        found: list[SnapshotItem] = []
        for name, size in self._files.sizes().items():
            if (named := _NAME.fullmatch(name)) is not None and (at := _time_of(named[1])) is not None:
                found.append(SnapshotItem(name, at, size))
        return found[::-1]

    def is_due(self, now: datetime, since: datetime) -> bool:
        """Whether the newest one is 30 minutes old, or `since`, when the memory began, if there is none.

        A time in the future, from before the clock was set back, doesn't count.
        """
        times = [at for at in (since, *(each.at for each in self.items())) if at <= now + INTERVAL]
        return not times or now - max(times) >= INTERVAL

    def take(self, sources: Sources, now: datetime) -> None:
        """Writes one, unless the newest has the same content; then deletes what is too much.

        Raises:
            ProjectError: It can't be written.
        """
        digest = hashlib.sha256(b"\0".join(each or b"" for each in sources)).hexdigest()[:12]
        items = self.items()
        while any(each.at == now for each in items):
            now += _TICK
        if items and items[0].name.endswith(f"-{digest}.json"):
            return
        try:
            pair = {name: json.loads(data) for name, data in zip((CONTEXT, WORKFLOW), sources, strict=True) if data}
        except (ValueError, RecursionError):
            return  # a damaged file is kept aside, not here
        self._files.write(f"{now.astimezone(UTC):{_TIME}}-{digest}.json", _dump(pair))
        self._make_room()

    def read(self, name: str) -> ProjectState:
        """Returns what is in a snapshot.

        Raises:
            NotFoundError: There is none of this name.
            ProjectDamagedError: It can't be understood.
        """
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
        """Keeps the newest 48, in 5 MB: the oldest lose their dialog first, then they go."""
        items = self.items()
        for each in items[KEPT:]:
            self._files.remove(each.name)
        kept = items[:KEPT]
        for each in reversed(kept):
            if sum(self._files.sizes().values()) <= LARGEST_BYTES:
                return
            self._drop_dialog(each.name)
        for each in reversed(kept[1:]):
            if sum(self._files.sizes().values()) <= LARGEST_BYTES:
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
