"""Private files replaced atomically: locked between processes, and safe from a kill and a power failure."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from graph.value.error import DiskFullError, FileAccessError

_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_POLL_SECONDS: Final = 0.002
_WAIT_SECONDS: Final = 10.0
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def locked(path: Path, *, wait_seconds: float = _WAIT_SECONDS) -> Iterator[None]:
    """Locks the file at `path` for one thread of one process, and deletes temporary files of killed writers.

    The lock is a separate file that is never deleted; the kernel releases it when its process ends. Not reentrant, and
    not reliable on network file systems.

    Raises:
        FileAccessError: The lock was held for all of `wait_seconds`, or the folder or the lock can't be created.
        DiskFullError: The disk is full.
    """
    lock = FileLock(
        path.with_name(f"{path.name}.lock"), mode=_FILE_MODE, poll_interval=_POLL_SECONDS, fallback_to_soft=False
    )
    with _errors_as_ours(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        try:
            lock.acquire(timeout=wait_seconds)
        except Timeout as error:
            detail = f"{path} was locked for {wait_seconds:g} s"
            raise FileAccessError(detail) from error
    try:
        with _errors_as_ours(path):
            for file in path.parent.iterdir():
                if file.name.startswith(_temporary_prefix(path)):
                    file.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def read_whole(path: Path) -> bytes | None:
    """Returns the file's content, None if missing; needs no lock, as writes are atomic. Raises `FileAccessError`."""
    with _errors_as_ours(path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


def write_whole(path: Path, data: bytes) -> None:
    """Replaces the file's content; only this user may read it. Call inside `locked`.

    After a kill the file has the old or the new content; once this returns, the new content survives a power failure.
    On `FileAccessError` and `DiskFullError` the old content stays.
    """
    with _errors_as_ours(path):
        descriptor, name = tempfile.mkstemp(prefix=_temporary_prefix(path), dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def put_aside(path: Path, name: str) -> None:
    """Renames the file within its folder, replacing a file of that name; or `FileAccessError`. Call inside `locked`."""
    with _errors_as_ours(path):
        path.replace(path.with_name(name))
        _sync_folder(path.parent)


def _temporary_prefix(path: Path) -> str:
    """Returns a prefix unique to this file, so that only its own temporary files are deleted."""
    return f".tmp-{path.name}-"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _errors_as_ours(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        is_full, detail = error.errno in _FULL, f"{path}: {error.strerror}"
        raise (DiskFullError(str(path)) if is_full else FileAccessError(detail)) from error
