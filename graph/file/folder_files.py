"""Files of an open folder: read whole with a limit, and replaced atomically."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from graph.value.error import ProjectDamagedError, ProjectError

LARGEST_BYTES: Final = 8 * 1024 * 1024
PRIVATE_FILE: Final = 0o600
_UNFINISHED: Final = ".tmp-"
_PRIVATE_FOLDER: Final = 0o700
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Files:
    """The files of one folder, held open by its descriptor, so that the folder can't be replaced meanwhile.

    Methods raise `ProjectError` on failure; files are unchanged then.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def check_at(self, path: Path) -> None:
        """Checks that the folder is at this path: the lock's library supports paths only."""
        with _errors_as_ours(path.name):
            if not os.path.samestat(path.lstat(), os.fstat(self._descriptor)):
                raise ProjectError(path.name, "replaced")

    def read(self, name: str) -> bytes | None:
        """Returns a file's content, None if missing; `ProjectDamagedError` above 8 MiB or if not a regular file."""
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
        """Replaces a file atomically and durably: after a crash it has the old or the new content."""
        unfinished = _UNFINISHED + secrets.token_hex(8)
        with _errors_as_ours(name):
            descriptor = os.open(unfinished, _WRITE_FLAGS, PRIVATE_FILE, dir_fd=self._descriptor)
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
        try:
            os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return False
        return True

    def rename(self, name: str, new_name: str) -> None:
        """Renames a file, replacing a file of the new name."""
        with _errors_as_ours(new_name):
            os.replace(name, new_name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            os.fsync(self._descriptor)

    def remove(self, name: str) -> None:
        """Deletes a file; errors are ignored."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def sizes(self) -> dict[str, int]:
        with _errors_as_ours("folder"), os.scandir(self._descriptor) as entries:
            found = {each.name: each.stat(follow_symlinks=False) for each in entries}
        return {name: found[name].st_size for name in sorted(found) if stat.S_ISREG(found[name].st_mode)}

    def sweep(self) -> None:
        """Deletes temporary files of killed processes."""
        for name in self.sizes():
            if name.startswith(_UNFINISHED):
                self.remove(name)

    def make_folder(self, name: str) -> None:
        with _errors_as_ours(name), suppress(FileExistsError):
            os.mkdir(name, _PRIVATE_FOLDER, dir_fd=self._descriptor)

    @contextmanager
    def folder(self, name: str) -> Iterator[Files]:
        """Opens a subfolder, not through a link, creating it if missing."""
        self.make_folder(name)
        with _errors_as_ours(name):
            descriptor = os.open(name, _FOLDER_FLAGS, dir_fd=self._descriptor)
        try:
            yield Files(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _errors_as_ours(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ProjectError(name, error.strerror or "") from error
