"""Keeps the memory of a project out of git."""

from __future__ import annotations

import fcntl
import os
from typing import Final

from graph.error import PathError
from graph.project.brain_folder import FOLDER
from graph.project.folder_files import Files
from graph.root_folder import RootFolder

_NAME: Final = ".gitignore"
_LARGEST_BYTES: Final = 1_000_000
_LINES: Final = {FOLDER, f"{FOLDER}/", f"/{FOLDER}", f"/{FOLDER}/"}
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE: Final = 0o644


def ignore_in_git(root: RootFolder, files: Files) -> None:
    """Adds `.ai-brain/` to the root's `.gitignore` if the root is a git checkout and the line isn't there.

    A root may also lie below a checkout, or its `.gitignore` be a link or unreadable: then the folder ignores itself.
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
        # The memory of another owner, which has a lock of its own, may be adding it: then this one ignores itself.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = _text(root)
        if not _has_line(text):
            file.write((b"\n" if text and not text.endswith(b"\n") else b"") + f"{FOLDER}/\n".encode())
    return True


def _text(root: RootFolder) -> bytes:
    return root.read_bytes(_NAME, max_bytes=_LARGEST_BYTES) if root.is_there(_NAME) else b""


def _has_line(text: bytes) -> bool:
    return not _LINES.isdisjoint(line.strip() for line in text.decode(errors="replace").splitlines())
