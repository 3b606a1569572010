"""The folder of a project's memory, `.ai-brain` or an owner's folder inside, and its lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from graph.file.folder_files import PRIVATE_FILE, Files
from graph.file.root_folder import RootFolder, RootFolders
from graph.value.error import PathError, ProjectBusyError, ProjectError

FOLDER: Final = ".ai-brain"
_LOCK: Final = ".lock"
_OF_OWNERS: Final = "user"
# Lower case only: some file systems are case-insensitive.
_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII)
_MOST_CHARS: Final = 64
_DIGITS: Final = 40
_POLL_SECONDS: Final = 0.002


class BrainFolder:
    """The folder of a project's memory. `.ai-brain` may be a symbolic link to a folder inside the project's root.

    `owner` selects the memory in `.ai-brain/user/`; "" is `.ai-brain` itself.
    """

    def __init__(self, roots: RootFolders, root: str | Path, owner: str = "", *, wait_seconds: float = 10) -> None:
        self.root = roots.resolve(root)
        self._roots = roots
        self._below = (_OF_OWNERS, folder_of(owner)) if owner else ()
        self._wait_seconds = wait_seconds

    @contextmanager
    def opened_root(self) -> Iterator[RootFolder]:
        """Yields the project's root, held open; raises `PathError` if gone or no longer allowed."""
        with self._roots.opened(self.root) as root:
            yield root

    def has_any(self, names: Iterable[str]) -> bool:
        """Whether one of these files is there; makes no folder. Raises `PathError` if the root is gone."""
        with self.opened_root() as root:
            return any(root.has("/".join((FOLDER, *self._below, name))) for name in names)

    @contextmanager
    def locked(self) -> Iterator[Files]:
        """Yields the files under an exclusive lock; creates the folder if missing.

        Raises:
            PathError: The root or the folder is gone, refused or no folder.
            ProjectBusyError: The lock wasn't free in time.
            ProjectError: The folder can't be created, or the lock can't be taken there.
        """
        with self.opened_root() as root, ExitStack() as opened:
            if not root.is_there(FOLDER):
                with root.open_folder("") as top:
                    Files(top).make_folder(FOLDER)
            files = Files(opened.enter_context(root.open_folder(FOLDER)))
            path = root.path / root.relative(FOLDER)
            for name in self._below:
                files, path = opened.enter_context(files.folder(name)), path / name
            with _locked(path / _LOCK, self._wait_seconds):
                files.check_at(path)
                yield files


def folder_of(owner: str) -> str:
    """Returns a unique name of an owner's folder, valid on every file system.

    Owners from a sign-in are used unchanged; others may contain anything, and are hashed if necessary.
    """
    if len(owner) <= _MOST_CHARS and _PLAIN.fullmatch(owner):
        return owner
    return f"_{hashlib.sha256(owner.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


@contextmanager
def _locked(path: Path, wait_seconds: float) -> Iterator[None]:
    # A kernel lock: released when a process is killed. The file is never deleted, or processes could lock two files.
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


_NAME: Final = ".gitignore"
_LARGEST_BYTES: Final = 1_000_000
_LINES: Final = {FOLDER, f"{FOLDER}/", f"/{FOLDER}", f"/{FOLDER}/"}
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE: Final = 0o644


def ignore_in_git(root: RootFolder, files: Files) -> None:
    """Adds `.ai-brain/` to the root's `.gitignore` if the root is a git checkout and lacks the line.

    Elsewhere, or if `.gitignore` is a link or unreadable, the folder gets a `.gitignore` of its own.
    """
    try:
        is_done = root.is_there(".git") and _add_line(root)
    except (PathError, OSError):
        is_done = False
    if not is_done and files.read(_NAME) is None:
        files.write(_NAME, b"*\n")


def _add_line(root: RootFolder) -> bool:
    if _has_line(_text(root)):
        return True
    with root.open_folder("") as folder, os.fdopen(os.open(_NAME, _APPEND, _MODE, dir_fd=folder), "ab") as file:
        # If the memory of another owner, under another lock, is just adding the line, the folder ignores itself.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = _text(root)
        if not _has_line(text):
            file.write((b"\n" if text and not text.endswith(b"\n") else b"") + f"{FOLDER}/\n".encode())
    return True


def _text(root: RootFolder) -> bytes:
    return root.read_bytes(_NAME, max_bytes=_LARGEST_BYTES) if root.is_there(_NAME) else b""


def _has_line(text: bytes) -> bool:
    return not _LINES.isdisjoint(line.strip() for line in text.decode(errors="replace").splitlines())
