"""Counts what the product sends to its database, from outside of it, by the events of SQLAlchemy.

    python -m bench.turn.statement PORT run app.py     # Streamlit, whose statements are counted for who asks that port

LangGraph's savers have connections of their own, of which no engine knows: their statements aren't counted.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, event

_ROOT = Path(__file__).parents[2]
# Partial text, stop and lease renewal: one batch for all turns of a process, in threads of their own.
_BESIDE = ("turn-watch", "lease-heartbeat")
_ROOMS = tuple(f"{_ROOT / room}/" for room in ("api", "component", "graph"))
_STORES = f"{_ROOT / 'graph/store'}/"
_DATABASE = f"{_STORES}database.py"
_PAGE = f"{_ROOT / 'component'}/"
_ASKERS = 2
_CHANGES = ("INSERT", "UPDATE", "DELETE")
_THREAD_NUMBER = re.compile(r"[-_ ]?\d+.*")
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+\"?(\w+)")


class Statement(NamedTuple):
    """One statement, and who sent it.

    Attributes:
        verb: Its first word.
        table: The first table that it names.
        thread: The thread's name without its number.
        store: The innermost function of a store.
        askers: The innermost functions outside of the stores, which called them.
        page: The innermost function of the page; "-" for none.
    """

    verb: str
    table: str
    thread: str
    store: str
    askers: tuple[str, ...]
    page: str

    @property
    def is_change(self) -> bool:
        return self.verb in _CHANGES

    @property
    def asker(self) -> str:
        return self.askers[0] if self.askers else "-"

    @property
    def path(self) -> str:
        return f"{' < '.join((self.store, *self.askers))}  [{self.thread}]"


@dataclass
class Counts:
    """What was sent: the statements in their order, and the outermost transactions; `writing` are those with changes.

    A call for many rows is one statement.
    """

    statements: list[Statement] = field(default_factory=list)
    transactions: int = 0
    writing: int = 0

    @property
    def changes(self) -> int:
        return sum(statement.is_change for statement in self.statements)

    def by(self, name: str) -> Counter[str]:
        """Counts the statements by one of their attributes."""
        return Counter(getattr(statement, name) for statement in self.statements)


@contextmanager
def counting() -> Iterator[Counts]:
    """Counts what this process sends while the block runs; that of its watchers of running turns is left out."""
    counts = Counts()
    has_written: WeakKeyDictionary[Connection, bool] = WeakKeyDictionary()

    def begin(connection: Connection) -> None:
        has_written[connection] = False
        counts.transactions += _thread() not in _BESIDE

    def note(connection: Connection, _: object, text: str, *__: Any) -> None:
        thread = _thread()
        if thread in _BESIDE:
            return
        statement = _statement(text, thread)
        counts.statements.append(statement)
        if statement.is_change and not has_written.get(connection):
            has_written[connection] = True
            counts.writing += 1

    event.listen(Engine, "begin", begin)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield counts
    finally:
        event.remove(Engine, "before_cursor_execute", note)
        event.remove(Engine, "begin", begin)


@contextmanager
def counting_at(port: int) -> Iterator[Counts]:
    """Counts what the server behind this port sends while the block runs; the counts are filled at its end."""
    counts = Counts()
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answer:
        answer.readline()  # it counts from now on
        yield counts
        connection.shutdown(socket.SHUT_WR)
        found = json.loads(answer.readline())
    counts.statements = [
        Statement(verb, table, thread, store, tuple(askers), page)
        for verb, table, thread, store, askers, page in found["statements"]
    ]
    counts.transactions, counts.writing = found["transactions"], found["writing"]


def main(port: int, arguments: Sequence[str]) -> None:
    """Runs Streamlit with these arguments, and counts while a connection to the port is open."""
    from streamlit.web import cli

    listener = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=_serve, args=(listener,), name="bench", daemon=True).start()
    sys.argv = ["streamlit", *arguments]
    cli.main(prog_name="streamlit")


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection, counting() as counts:
            connection.sendall(b"\n")
            connection.recv(1)
            connection.sendall(json.dumps(asdict(counts)).encode() + b"\n")


def _thread() -> str:
    return _THREAD_NUMBER.sub("", threading.current_thread().name)


def _statement(text: str, thread: str) -> Statement:
    frames = list(_frames(sys._getframe(2)))
    stores = [name for path, name in frames if path.startswith(_STORES) and path != _DATABASE]
    # A database checks the lease of whoever writes before that one's first statement.
    store = f"{stores[0] if stores else 'Database'}{' (lease)' if frames and frames[0][0] == _DATABASE else ''}"
    askers = tuple(islice((name for path, name in frames if not path.startswith(_STORES)), _ASKERS))
    page = next((name for path, name in frames if path.startswith(_PAGE)), "-")
    table = _TABLE.search(text)
    return Statement(text.split(maxsplit=1)[0].upper(), table[1] if table else "-", thread, store, askers, page)


def _frames(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    """Yields path and name of the running functions of ours, innermost first, nested ones as what they stand in."""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_ROOMS):
            name = frame.f_code.co_qualname.partition(".<locals>")[0]
            yield path, name if "." in name else f"{Path(path).stem}.{name}"
        frame = frame.f_back


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
