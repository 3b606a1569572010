"""Reads and writes both files of a project's memory so that they belong together, also after a crash between them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from graph.error import InputError, ProjectDamagedError
from graph.project.context_file import ContextFile
from graph.project.folder_files import LARGEST_BYTES, Files
from graph.project.project_state import CONTEXT, WORKFLOW, ProjectState, parse, render
from graph.project.snapshots import Sources
from graph.project.workflow_file import WorkflowFile

_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class FilePair:
    """What stood on disk.

    Attributes:
        sources: Its bytes.
        written: What they say.
        state: The same in which both files agree.
    """

    sources: Sources
    written: ProjectState
    state: ProjectState


def read_pair(files: Files, new: ProjectState, now: datetime) -> FilePair:
    """Reads both files and finishes a change that was interrupted between them.

    Args:
        files: The folder, locked.
        new: What stands for files that aren't there.
        now: The time in UTC.

    Raises:
        ProjectDamagedError: A file can't be understood, or `workflow.json` is gone; nothing was written.
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
    """Writes `context.json`, with `workflow.json` inside it if that changes, and then that one; returns both.

    Args:
        files: The folder, locked.
        state: What to write.
        present: What stands there; None if there is nothing.
        now: The time in UTC.

    Raises:
        InputError: `project_full`: a file would be larger than can be read again.
        ProjectError: A file can't be written. If that's the second, the next reading finishes the change.
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
    """Returns the time, or the next moment after `before` if a clock was set back."""
    return now if before is None or before < now else before + _TICK
