"""A process that writes values into a context's file, telling each one that stands there.

python -m tests.fake.context_writer <file> <name> <number of values> [<bytes that a file may have>]
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from graph.layer.app_context import ContextScope, FileContextStore
from graph.value.error import FileAccessError


def main(file: str, name: str, count: str, most_bytes: str = "") -> None:
    """Puts `<name>-<number>` with each number in turn."""
    if most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most_bytes), int(most_bytes)))
    store = FileContextStore(Path(file), ContextScope.APP)
    for number in range(1, int(count) + 1):
        try:
            store.put(f"{name}-{number}", str(number))
        except FileAccessError as error:
            print("refused", error.code, flush=True)  # noqa: T201  # what the test reads
            return
        print(number, flush=True)  # noqa: T201  # as above


if __name__ == "__main__":
    main(*sys.argv[1:])
