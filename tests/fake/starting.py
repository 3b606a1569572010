"""Several servers that start at one moment on one database, and have a turn each; once for each database.

python -m tests.fake.starting <count> <data dir> <database url>...
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import graph.store.upgrade  # noqa: F401  # slow to import: once here, not in every process
from graph.event import TurnFinished
from tests.fault.check import Ledger
from tests.fault.mark import Marker
from tests.fault.place import put_elsewhere
from tests.fault.process import run_all
from tests.fault.scenario import say, serve


def main(count: int, data_dir: Path, urls: list[str]) -> None:
    for place, url in enumerate(urls):
        folders = [put_elsewhere(data_dir / f"{place}-{number}", url) for number in range(count)]
        said = run_all([partial(_start, folder) for folder in folders])
        assert said == [[]] * count, f"at database {place}: {said}"


def _start(folder: Path, _: Marker) -> None:
    ledger = Ledger()
    with serve(folder) as service:
        ended = say(service, ledger, "q-1", folder.name)
    assert isinstance(ended, TurnFinished), ended
    assert not ledger.wrong, ledger.wrong


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
