"""The memory of a project on the disk: both files read, changed, written, snapshotted and restored under one lock."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from graph.core.text import check_text, plain_text
from graph.file.folder_files import Files
from graph.file.root_folder import RootFolder, RootFolders
from graph.project.brain_folder import BrainFolder, ignore_in_git
from graph.project.context_file import (
    ID_CHARS,
    PATH_CHARS,
    TEXT_CHARS,
    TITLE_CHARS,
    ContextFile,
    Memory,
    Time,
    WorkflowFile,
)
from graph.project.file_pair import (
    CONTEXT,
    SNAPSHOTS,
    WORKFLOW,
    FilePair,
    ProjectState,
    SnapshotItem,
    Snapshots,
    location_of,
    read_pair,
    write_pair,
)
from graph.project.secret import find_secret, mask_secrets
from graph.value.error import InputError, ProjectDamagedError


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _check(text: str, max_chars: int) -> str:
    check_text(text, max_chars=max_chars)
    return _refuse_secrets(text)


def _refuse_secrets(text: str) -> str:
    """Returns the text unchanged; raises `InputError` `secret` with the kind of the secret."""
    if (found := find_secret(text)) is not None:
        raise InputError("secret", found.kind)
    return text


def _mask(text: str) -> str:
    return mask_secrets(plain_text(text))


# Single lines, refused with an `InputError` if empty, too long or with a secret.
TitleLine = Annotated[str, BeforeValidator(_line), AfterValidator(lambda text: _check(text, TITLE_CHARS))]
TextLine = Annotated[str, BeforeValidator(_line), AfterValidator(lambda text: _check(text, TEXT_CHARS))]
PathLine = Annotated[str, BeforeValidator(plain_text), AfterValidator(lambda text: _check(text, PATH_CHARS))]
Description = Annotated[
    str, BeforeValidator(_line), AfterValidator(lambda text: _check(text, TEXT_CHARS) if text else text)
]
# Not validated further: it is only looked up.
ItemId = Annotated[str, BeforeValidator(plain_text)]
# Messages are stored with their secrets masked.
MaskedText = Annotated[str, BeforeValidator(_mask)]
OperationId = Annotated[str, StringConstraints(min_length=1, max_length=ID_CHARS)]

Change = tuple[ProjectState, str]
"""The state after an operation, and the id of the item made or changed, or ""."""


class Operation(BaseModel, ABC):
    """A change, with everything it needs from outside, such as the time; idempotent by `id`."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    id: OperationId = Field(default_factory=lambda: uuid.uuid4().hex)
    at: Time

    @abstractmethod
    def change(self, state: ProjectState) -> Change | None:
        """Returns the changed state; None if there is nothing to change.

        Raises `NotFoundError` if an item doesn't exist, `ValidationError` beyond a limit.
        """


@dataclass(frozen=True)
class Outcome:
    """The result of an operation: both files, and the item made or changed ("" for none).

    `is_applied` tells whether the operation is in effect, from now or from an earlier call.
    """

    state: ProjectState
    made: str
    is_applied: bool


class ProjectMemory:
    """The memory of one project, for any number of threads and processes.

        memory = ProjectMemory(RootFolders([Path("/srv/shop")]), "/srv/shop")
        outcome = memory.apply(RecordDecision(text="API 호환성 유지", at=datetime.now(UTC)))
        memory.read().context.memory.last_decisions

    No state between calls: each call reads the current files. Not safe on network drives without locks between
    machines. `owner` "" selects the memory in `.ai-brain` itself.

    Methods raise `PathError` if the root or the folder is gone or refused, `ProjectDamagedError` if a file can't be
    parsed, and `ProjectError` or another subclass for other failures.
    """

    def __init__(
        self,
        roots: RootFolders,
        root: str | Path,
        owner: str = "",
        *,
        clock: Callable[[], datetime] | None = None,
        wait_seconds: float = 10,
    ) -> None:
        self._folder = BrainFolder(roots, root, owner, wait_seconds=wait_seconds)
        self.root = self._folder.root
        self.now: Callable[[], datetime] = clock or (lambda: datetime.now(UTC))
        with self._folder.locked() as files:
            files.sweep()
            with files.folder(SNAPSHOTS) as below:
                below.sweep()
            with self._folder.opened_root() as opened:
                ignore_in_git(opened, files)

    @contextmanager
    def opened_root(self) -> Iterator[RootFolder]:
        with self._folder.opened_root() as root:
            yield root

    def read(self) -> ProjectState:
        """Returns both files; new ones in place of missing files."""
        with self._folder.locked() as files:
            return self._load(files).state

    def apply(self, operation: Operation) -> Outcome:
        """Applies an operation to the current files; idempotent by the operation's id.

        Raises:
            InputError: `project_full`: a list is at its limit.
            NotFoundError: An item doesn't exist.
        """
        with self._folder.locked() as files:
            found = self._load(files)
            applied = found.state.context.applied
            if operation.id in applied:
                return Outcome(found.state, applied[operation.id], is_applied=True)
            try:
                change = operation.change(found.state)
            except ValidationError as error:
                raise InputError("project_full", location_of(error)) from error
            if change is None:
                return Outcome(found.state, "", is_applied=False)
            changed, made = change
            self._take_due(files, found)
            context = changed.context.changed(applied={**changed.context.applied, operation.id: made})
            written = write_pair(files, ProjectState(context, changed.workflow), found, self.now())
            return Outcome(written, made, is_applied=True)

    def snapshots(self) -> list[SnapshotItem]:
        """Returns the snapshots, newest first."""
        with self._snapshots() as (_, snapshots):
            return snapshots.items()

    def restore(self, name: str) -> ProjectState:
        """Restores a snapshot; the current content becomes a snapshot too, damaged files are renamed.

        Raises `NotFoundError` for an unknown name.
        """
        with self._snapshots() as (files, snapshots):
            wanted = snapshots.read(name)
            present = self._set_aside(files, snapshots)
            applied = present.state.context.applied if present else {}
            state = wanted.repaired(self.now())
            state = ProjectState(state.context.changed(applied={**state.context.applied, **applied}), state.workflow)
            return write_pair(files, state, present, self.now())

    def start_over(self) -> ProjectState:
        """Empties the memory; the current content becomes a snapshot, damaged files are renamed."""
        with self._snapshots() as (files, snapshots):
            present = self._set_aside(files, snapshots)
            return write_pair(files, self._new(), present, self.now())

    @contextmanager
    def _snapshots(self) -> Iterator[tuple[Files, Snapshots]]:
        with self._folder.locked() as files, files.folder(SNAPSHOTS) as below:
            yield files, Snapshots(below)

    def _new(self) -> ProjectState:
        now = self.now()
        name = mask_secrets(plain_text(self.root.name))[:TITLE_CHARS]
        folder = mask_secrets(plain_text(str(self.root)))[:PATH_CHARS]
        return ProjectState(
            ContextFile(created_at=now, updated_at=now, memory=Memory(working_directory=folder)),
            WorkflowFile(created_at=now, project_name=name),
        )

    def _load(self, files: Files) -> FilePair:
        try:
            return read_pair(files, self._new(), self.now())
        except ProjectDamagedError as error:
            with files.folder(SNAPSHOTS) as below:
                raise ProjectDamagedError(error.detail, snapshot=Snapshots(below).newest()) from error

    def _take_due(self, files: Files, found: FilePair) -> None:
        """Takes a snapshot if one is due, or before the first write to a file of another program."""
        if found.sources[0] is None:
            return
        context, now = found.written.context, self.now()
        is_foreign = "applied" not in context.model_fields_set
        with files.folder(SNAPSHOTS) as below:
            snapshots = Snapshots(below)
            if is_foreign or snapshots.is_due(now, context.created_at or now):
                snapshots.take(found.sources, now)

    def _set_aside(self, files: Files, snapshots: Snapshots) -> FilePair | None:
        """Saves the current content in a snapshot; if a file is damaged, renames both and returns None."""
        try:
            found = self._load(files)
        except ProjectDamagedError:
            for name in (CONTEXT, WORKFLOW):
                if files.is_there(name):
                    files.rename(name, f"damaged-{self.now():%Y%m%dT%H%M%S%f}Z-{name}")
            return None
        snapshots.take(found.sources, self.now())
        return found
