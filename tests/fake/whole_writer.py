"""A process that replaces a file again and again until it's killed, telling each version that stands there.

python -m tests.fake.whole_writer <file>
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from graph.file.atomic_file import locked, write_whole

_VERSION_BYTES = 2_000_000


def version(number: int) -> bytes:
    """Returns a version that no part of it, nor a mixture of two, is like."""
    return f"{number:08}".encode() * (_VERSION_BYTES // 8)


def main(file: str) -> None:
    """Writes the versions from 1 on."""
    for number in itertools.count(1):
        with locked(Path(file)):
            write_whole(Path(file), version(number))
        print(number, flush=True)  # noqa: T201  # what the test reads


if __name__ == "__main__":
    main(*sys.argv[1:])
