"""Opens files inside the project folders allowed by the server's administrator, and nowhere else."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graph.value.error import PathError, PathReason

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Without O_NONBLOCK, a FIFO that replaces a file after the check would block the thread.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_REASONS: Final[Mapping[int | None, PathReason]] = {
    errno.ENOENT: "vanished",
    errno.ESTALE: "vanished",
    errno.ELOOP: "vanished",
    errno.EINVAL: "vanished",  # a link replaced by a folder during resolution
    errno.ENOTDIR: "not_a_folder",
    errno.ENXIO: "not_regular",
    errno.EISDIR: "not_regular",
}
_MAX_ENTRIES: Final = 10_000

Identity = tuple[int, int]


@dataclass(frozen=True)
class FileContent:
    """The first bytes of a file, and its size; `identity` (device, inode) is equal for two names of one file."""

    data: bytes
    size_bytes: int
    identity: Identity


@dataclass(frozen=True)
class FolderListing:
    """Sorted names in a folder: `files` include symbolic links, listed in `links`; `folders` don't."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    links: frozenset[str]
    identity: Identity


class RootFolders:
    """The allowed folders: each of them, and each folder below, may be the root of a project.

        root_folders = RootFolders([Path("/srv/projects")])
        with root_folders.opened("/srv/projects/shop") as folder:
            text = folder.read_bytes("AGENTS.md", max_bytes=32_768)

    Symbolic links in the given paths are resolved now, whatever their later target.
    """

    def __init__(self, roots: Iterable[Path]) -> None:
        self.roots: tuple[Path, ...] = tuple(dict.fromkeys(Path(os.path.realpath(root)) for root in roots))

    def resolve(self, path: str | Path) -> Path:
        """Returns the real path of a project's root; a relative path is relative to the server's directory.

        Raises:
            PathError: `not_allowed`, or `symlink_outside` if a symbolic link leads out of the allowed folders.
        """
        real = Path(_real_path(path))
        if self._root_of(real) is None:
            is_inside = self._root_of(Path(os.path.normpath(Path(path).absolute()))) is not None
            raise PathError("symlink_outside" if is_inside else "not_allowed", str(path))
        return real

    @contextmanager
    def opened(self, root: str | Path) -> Iterator[RootFolder]:
        """Holds a project's root open, so that it stays the same folder even if renamed; raises `PathError`."""
        real = self.resolve(root)
        listed = self._root_of(real) or real
        with _refusing(str(root)):
            descriptor = _open_below(os.open(listed, _FOLDER_FLAGS), real.relative_to(listed).parts)
        try:
            yield RootFolder(real, descriptor)
        finally:
            os.close(descriptor)

    def _root_of(self, path: Path) -> Path | None:
        return next((root for root in self.roots if path.is_relative_to(root)), None)


class RootFolder:
    """A project's root, held open. Paths are relative to it; symbolic links may lead anywhere inside.

    A path is resolved, checked, and opened name by name from the root's descriptor without following links, so that a
    name replaced after the check is refused, not followed. Methods raise `PathError` for refused or unreadable paths.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def relative(self, path: str) -> str:
        """Returns a path relative to the root, with symbolic links resolved; "" for the root itself."""
        return "/".join(self._parts(path))

    def is_there(self, path: str) -> bool:
        """True if the name exists in its folder, even as a broken symbolic link; raises for a refused folder only."""
        parent, name = os.path.split(path)
        if name == os.pardir:
            raise PathError("outside", path)
        try:
            with self.open_folder(parent) as descriptor, _refusing(path):
                os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except PathError as error:
            if error.reason in {"vanished", "not_a_folder"}:
                return False
            raise
        return True

    def has(self, path: str) -> bool:
        """True if the name exists in its folder inside the root; False for refused folders."""
        try:
            return self.is_there(path)
        except PathError:
            return False

    def read_bytes(self, path: str, *, max_bytes: int) -> bytes:
        """Returns a whole file, at most `max_bytes`."""
        return self.read_head(path, head_bytes=max_bytes, max_bytes=max_bytes).data

    def read_head(self, path: str, *, head_bytes: int, max_bytes: int) -> FileContent:
        """Reads the first `head_bytes` of a file; a file of more than `max_bytes` is refused unread."""
        *parents, name = self._parts(path) or ("",)
        if not name:
            raise PathError("not_regular", path)
        with self._opened(parents, path) as parent, _refusing(path):
            # Opening a device may have side effects, so the type is checked before, too.
            _check_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), path)
            with os.fdopen(os.open(name, _FILE_FLAGS, dir_fd=parent), "rb") as file:
                status = os.fstat(file.fileno())
                _check_regular(status, path)
                data = b"" if status.st_size > max_bytes else file.read(head_bytes + 1)
        if status.st_size > max_bytes or len(data) > max_bytes:
            raise PathError("too_large", path)
        return FileContent(data[:head_bytes], max(status.st_size, len(data)), (status.st_dev, status.st_ino))

    def entries(self, path: str) -> FolderListing:
        """Lists a folder of at most 10,000 names."""
        with self.open_folder(path) as descriptor, _refusing(path), os.scandir(descriptor) as scanned:
            entries = list(itertools.islice(scanned, _MAX_ENTRIES + 1))
            status = os.fstat(descriptor)
        if len(entries) > _MAX_ENTRIES:
            raise PathError("too_large", path)
        folders = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
        return FolderListing(
            files=tuple(sorted(entry.name for entry in entries if entry.name not in folders)),
            folders=tuple(sorted(folders)),
            links=frozenset(entry.name for entry in entries if entry.is_symlink()),
            identity=(status.st_dev, status.st_ino),
        )

    @contextmanager
    def open_folder(self, path: str) -> Iterator[int]:
        """Yields a folder's descriptor for `dir_fd`, closed after the block; "" is the root."""
        with self._opened(self._parts(path), path) as descriptor:
            yield descriptor

    def check_in_place(self) -> None:
        """Raises `PathError` (`vanished`) if the root was removed, renamed or replaced since opening."""
        with _refusing(str(self.path)):
            is_same = os.path.samestat(self.path.lstat(), os.fstat(self._descriptor))
        if not is_same:
            raise PathError("vanished", str(self.path))

    def _parts(self, path: str) -> tuple[str, ...]:
        inside = os.path.normpath(self.path / path)
        real = Path(_real_path(self.path / path))
        if real.is_relative_to(self.path):
            return real.relative_to(self.path).parts
        raise PathError("symlink_outside" if Path(inside).is_relative_to(self.path) else "outside", path)

    @contextmanager
    def _opened(self, parts: Sequence[str], path: str) -> Iterator[int]:
        with _refusing(path):
            descriptor = _open_below(os.dup(self._descriptor), parts)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _open_below(descriptor: int, parts: Sequence[str]) -> int:
    """Opens a folder below another one, name by name; closes `descriptor`."""
    for part in parts:
        try:
            below = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _check_regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(status.st_mode):  # replaced after the path was resolved
        raise PathError("vanished", path)
    if not stat.S_ISREG(status.st_mode):
        raise PathError("not_regular", path)


def _real_path(path: str | Path) -> str:
    try:
        is_name = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a surrogate without a byte
        is_name = False
    if not is_name:
        raise PathError("vanished")
    with _refusing(str(path)):
        return os.path.realpath(path)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PathError(_REASONS.get(error.errno, "unreadable"), path) from error
