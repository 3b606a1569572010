"""Counts what the product sends to its database, from outside of it, by the events of SQLAlchemy.

LangGraph's savers have connections of their own, of which no engine knows: their statements aren't counted.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import current_thread
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, event

ROOT = Path(__file__).parents[1]
# Partial text, stop and lease renewal: one batch for all turns of a process, in threads of their own.
BESIDE = ("turn-watch", "lease-heartbeat")
_OURS = tuple(f"{ROOT / room}/" for room in ("api", "component", "graph"))
_STORES = f"{ROOT / 'graph/store'}/"
_DATABASE = f"{_STORES}database.py"
_ASKERS = 2
_CHANGES = ("INSERT", "UPDATE", "DELETE")
_NUMBERS = re.compile(r"[-_ ]?\d+.*")
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+\"?(\w+)")


class Statement(NamedTuple):
    """One statement.

    Attributes:
        verb: Its first word.
        table: The first table that it names.
        thread: The thread's name without its number.
        store: The function of a store that made it.
        askers: Who called the store: the innermost functions outside of the stores.
    """

    verb: str
    table: str
    thread: str
    store: str
    askers: tuple[str, ...]

    @property
    def where(self) -> str:
        return " < ".join((self.store, *self.askers))


@dataclass
class Counts:
    """What was sent: statements in their order, and the outermost transactions, of which some wrote."""

    statements: list[Statement] = field(default_factory=list)
    transactions: int = 0
    writing: int = 0

    def by(self, name: str) -> Counter[str]:
        """Counts the statements by one of their attributes."""
        return Counter(getattr(statement, name) for statement in self.statements)


@contextmanager
def counting() -> Iterator[Counts]:
    """Counts what is sent while the block runs, by any thread but those of `BESIDE`."""
    counts = Counts()
    has_written: WeakKeyDictionary[Connection, bool] = WeakKeyDictionary()

    def note(connection: Connection, _: object, text: str, *__: Any) -> None:
        thread = _NUMBERS.sub("", current_thread().name)
        if thread in BESIDE:
            return
        statement = _statement(text, thread)
        counts.statements.append(statement)
        if statement.verb in _CHANGES and not has_written.get(connection):
            has_written[connection] = True
            counts.writing += 1

    def begin(connection: Connection) -> None:
        has_written[connection] = False
        counts.transactions += _NUMBERS.sub("", current_thread().name) not in BESIDE

    event.listen(Engine, "before_cursor_execute", note)
    event.listen(Engine, "begin", begin)
    try:
        yield counts
    finally:
        event.remove(Engine, "before_cursor_execute", note)
        event.remove(Engine, "begin", begin)


def by_caller(statements: Iterable[Statement], times: float) -> Iterator[str]:
    """Yields a line for each place that statements come from, most first; `times` is what they are divided by."""
    found = Counter((statement.where, statement.thread) for statement in statements)
    for (where, thread), count in found.most_common():
        yield f"{count / times:7.2f}  {where}  [{thread}]"


def by_asker(statements: Iterable[Statement], times: float) -> Iterator[str]:
    """Yields a line for each function outside of the stores, with what it asked them for, most first."""
    found: dict[str, Counter[str]] = {}
    for statement in statements:
        found.setdefault(next(iter(statement.askers), "-"), Counter())[statement.store] += 1
    for asker, stores in sorted(found.items(), key=lambda item: -item[1].total()):
        listed = ", ".join(f"{store} {count / times:.2f}" for store, count in stores.most_common())
        yield f"{stores.total() / times:7.2f}  {asker}: {listed}"


def _statement(text: str, thread: str) -> Statement:
    table = _TABLE.search(text)
    store, *askers = [*_callers(), "-"]
    return Statement(text.split(maxsplit=1)[0].upper(), table[1] if table else "-", thread, store, tuple(askers[:-1]))


def _callers() -> Sequence[str]:
    """Returns the innermost function in a store, and who called the stores."""
    frames = list(_frames())
    # A database checks leases on behalf of whoever writes, and no store does otherwise.
    stores = [name for path, name in frames if path.startswith(_STORES) and path != _DATABASE]
    askers = islice((name for path, name in frames if not path.startswith(_STORES)), _ASKERS)
    checks = "" if not frames or frames[0][0] != _DATABASE else " (lease)"
    return [f"{stores[0] if stores else 'Database'}{checks}", *askers]


def _frames() -> Iterator[tuple[str, str]]:
    """Yields path and name of the running functions of ours, innermost first, nested ones as what they stand in."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_OURS):
            name = frame.f_code.co_qualname.partition(".<locals>")[0]
            yield path, name if "." in name else f"{Path(path).stem}.{name}"
        frame = frame.f_back
