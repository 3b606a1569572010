"""The folder `.ai-brain` of a project root: its lock, and files that are read whole and replaced atomically."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from graph.error import ProjectBusyError, ProjectDamagedError, ProjectError
from graph.root_folder import RootFolder, RootFolders

FOLDER: Final = ".ai-brain"
LARGEST_BYTES: Final = 8 * 1024 * 1024
_LOCK: Final = ".lock"
_UNFINISHED: Final = ".tmp-"
_PRIVATE_FILE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_POLL_SECONDS: Final = 0.002


class Files:
    """The files of one folder, held open by its descriptor, so that nobody can put another folder in its place."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def check_at(self, path: Path) -> None:
        """Checks that the folder stands at this path: the lock's library knows paths alone.

        Raises:
            ProjectError: Another one stands there.
        """
        with _errors_as_ours(FOLDER):
            if not os.path.samestat(path.lstat(), os.fstat(self._descriptor)):
                raise ProjectError(FOLDER, "replaced")

    def read(self, name: str) -> bytes | None:
        """Returns what stands in a file, None if there is none.

        Raises:
            ProjectDamagedError: It is no regular file, or larger than 8 MiB.
            ProjectError: It can't be read.
        """
        try:
            descriptor = os.open(name, _READ_FLAGS, dir_fd=self._descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENXIO}:
                raise ProjectDamagedError(name, "no regular file") from error
            raise ProjectError(name, error.strerror or "") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ProjectDamagedError(name, "no regular file")
        with _errors_as_ours(name), os.fdopen(descriptor, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise ProjectDamagedError(name, "too large")
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replaces a file at once and for good: after a crash it is the old or the new one, whole.

        Raises:
            ProjectError: It can't be written, and is as it was.
        """
        unfinished = _UNFINISHED + secrets.token_hex(8)
        with _errors_as_ours(name):
            descriptor = os.open(unfinished, _WRITE_FLAGS, _PRIVATE_FILE, dir_fd=self._descriptor)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
                self.rename(unfinished, name)
            except BaseException:
                self.remove(unfinished)
                raise

    def is_there(self, name: str) -> bool:
        """Whether anything has this name."""
        try:
            os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return False
        return True

    def rename(self, name: str, new_name: str) -> None:
        """Gives a file another name, in the place of one that has it.

        Raises:
            ProjectError: It can't be renamed.
        """
        with _errors_as_ours(new_name):
            os.replace(name, new_name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            os.fsync(self._descriptor)

    def remove(self, name: str) -> None:
        """Deletes a file, if it's there."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def sizes(self) -> dict[str, int]:
        """Returns the size of each regular file in bytes, by name, in the order of names."""
        with _errors_as_ours(FOLDER), os.scandir(self._descriptor) as entries:
            found = {each.name: each.stat(follow_symlinks=False) for each in entries}
        return {name: found[name].st_size for name in sorted(found) if stat.S_ISREG(found[name].st_mode)}

    def sweep(self) -> None:
        """Deletes what killed processes left half written."""
        for name in self.sizes():
            if name.startswith(_UNFINISHED):
                self.remove(name)

    def make_folder(self, name: str) -> None:
        """Makes a folder in this one if it isn't there.

        Raises:
            ProjectError: It can't be made.
        """
        with _errors_as_ours(name), suppress(FileExistsError):
            os.mkdir(name, _PRIVATE_FOLDER, dir_fd=self._descriptor)

    @contextmanager
    def folder(self, name: str) -> Iterator[Files]:
        """Opens a folder in this one, which is made if it isn't there.

        Raises:
            ProjectError: It is a link or no folder, or can't be made.
        """
        self.make_folder(name)
        with _errors_as_ours(name):
            descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=self._descriptor)
        try:
            yield Files(descriptor)
        finally:
            os.close(descriptor)


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
    lock = FileLock(path, mode=_PRIVATE_FILE, poll_interval=_POLL_SECONDS, fallback_to_soft=False)
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


@contextmanager
def _errors_as_ours(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProjectError(name, error.strerror or "") from error
