"""The folder `.ai-brain` of a project's root and its lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from graph.error import ProjectBusyError, ProjectError
from graph.project.folder_files import PRIVATE_FILE, Files
from graph.root_folder import RootFolder, RootFolders

FOLDER: Final = ".ai-brain"
_LOCK: Final = ".lock"
_POLL_SECONDS: Final = 0.002


class BrainFolder:
    """The folder `.ai-brain` of one project; as a symbolic link it may lead anywhere inside the project's root.

    Args:
        roots: The allowed folders.
        root: The project's root.
        wait_seconds: How long to wait for the lock.
    """

    def __init__(self, roots: RootFolders, root: str | Path, *, wait_seconds: float = 10) -> None:
        self.root = roots.resolve(root)
        self._roots = roots
        self._wait_seconds = wait_seconds

    @contextmanager
    def opened_root(self) -> Iterator[RootFolder]:
        """Yields the project's root, held open.

        Raises:
            PathError: It is gone, or isn't allowed any more.
        """
        with self._roots.opened(self.root) as root:
            yield root

    @contextmanager
    def locked(self) -> Iterator[Files]:
        """Yields the files while no other thread or process does; makes the folder if it isn't there.

        Raises:
            PathError: The root or the folder is gone, refused or no folder.
            ProjectBusyError: Somebody else held the lock for too long.
            ProjectError: The folder can't be made, or the lock can't be taken there.
        """
        with self.opened_root() as root:
            if not root.is_there(FOLDER):
                with root.open_folder("") as top:
                    Files(top).make_folder(FOLDER)
            with root.open_folder(FOLDER) as descriptor:
                files, path = Files(descriptor), root.path / root.relative(FOLDER)
                with _locked(path / _LOCK, self._wait_seconds):
                    files.check_at(path)
                    yield files


@contextmanager
def _locked(path: Path, wait_seconds: float) -> Iterator[None]:
    # A lock of the kernel: a killed process lets go of it. Its file is never deleted, or two would hold two files.
    lock = FileLock(path, mode=PRIVATE_FILE, poll_interval=_POLL_SECONDS, fallback_to_soft=False)
    try:
        lock.acquire(timeout=wait_seconds)
    except Timeout as error:
        raise ProjectBusyError(_LOCK, f"{wait_seconds:g} s") from error
    except OSError as error:
        raise ProjectError(_LOCK, error.strerror or "") from error
    try:
        yield
    finally:
        lock.release()
