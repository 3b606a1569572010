"""Measures which of the planted facts the tool `recall` finds by a plain question, over the real archive and index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from langchain_core.messages import HumanMessage

from bench.context.script import ScriptedTurn
from graph.server.settings import Settings
from graph.store.archive import Archive
from graph.store.database import Database, utc_now
from graph.store.lease import LeaseStore
from graph.store.search import SearchStore
from graph.store.session import SessionStore
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.turn import TurnStore
from graph.tool.recall import build_recall
from graph.tool.tool_context import PastTurns

_SESSION: Final = "bench"
_OWNER: Final = "bench"
_MOST_ASKED: Final = 250


def recalled_shares(script: Sequence[ScriptedTurn], checkpoints: Sequence[int]) -> dict[int, float]:
    """Returns by number of turns which share of the facts planted so far a call of `recall` shows.

    The call is made in the turn after them, with the question about the fact as its query; of more than 250 facts that
    many are asked for, of every age.
    """
    result_chars = Settings().tool_result_chars
    shares: dict[int, float] = {}
    with TemporaryDirectory() as folder, _opened(Path(folder)) as database:
        archive, search = _Archived(database), SearchStore(database)
        for turn in script[: max(checkpoints)]:
            archive.add(turn)
            if turn.number in checkpoints:
                tool = build_recall(
                    PastTurns(
                        turn.number + 1,
                        result_chars,
                        find=partial(_find, search, turn.number + 1),
                        read=partial(archive.store.live_turns, _SESSION),
                    ),
                    "ko",
                )
                asked = script[: turn.number : ceil(turn.number / _MOST_ASKED)]
                found = sum(past.fact in str(tool.invoke({"query": past.question})) for past in asked)
                shares[turn.number] = found / len(asked)
        archive.leases.close()
    return shares


@contextmanager
def _opened(folder: Path) -> Iterator[Database]:
    with closing(open_sqlite(folder / "turnfold.db", busy_timeout_seconds=5, clock=utc_now)) as database:
        yield database


def _find(search: SearchStore, open_turn: int, query: str, first: int, limit: int) -> list[int]:
    return search.turns(_SESSION, query, from_turn=first, before_turn=open_turn, limit=limit)


class _Archived:
    """A session in the database, to which turns are added."""

    def __init__(self, database: Database) -> None:
        settings = Settings()
        self.store = Archive(database, clock=utc_now)
        self.leases = LeaseStore(
            database, lease_seconds=settings.lease_seconds, heartbeat_seconds=settings.heartbeat_seconds
        )
        self._turns = TurnStore(database, clock=utc_now)
        SessionStore(database).create(_SESSION, _OWNER, compression_rate=0.3, strategy="interval")
        self._lease = self.leases.acquire(_SESSION)

    def add(self, turn: ScriptedTurn) -> None:
        first, *replies = turn.messages
        question = HumanMessage(first.text, id=first.id)
        begun, _ = self._turns.begin(self._lease, owner=_OWNER, message=question, model="bench", is_casual=False)
        self.store.append(self._lease, owner=_OWNER, turn=begun.number, attempt=begun.attempt, messages=replies)
