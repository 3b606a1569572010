"""Measures which of the planted facts the tool `recall` finds by a plain question, over the real archive and index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.messages import HumanMessage

from bench.context.script import ScriptedTurn
from graph.server.settings import Settings
from graph.store.archive import Archive
from graph.store.database import utc_now
from graph.store.lease import LeaseStore
from graph.store.search import SearchStore
from graph.store.session import SessionStore
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.turn import TurnStore
from graph.tool.recall import build_recall
from graph.tool.tool_context import PastTurns

_BENCH = "bench"
_MOST_ASKED = 250


def recalled_shares(script: Sequence[ScriptedTurn], checkpoints: Sequence[int]) -> dict[int, float]:
    """Returns by number of turns which share of the facts planted so far a call of `recall` shows.

    The call is made in the turn after them, with the question about the fact as its query; of more than 250 facts that
    many are asked for, of every age.
    """
    settings = Settings()
    shares: dict[int, float] = {}
    with (
        TemporaryDirectory() as folder,
        closing(open_sqlite(Path(folder) / "turnfold.db", busy_timeout_seconds=5, clock=utc_now)) as database,
    ):
        archive, turns, search = (
            Archive(database, clock=utc_now),
            TurnStore(database, clock=utc_now),
            SearchStore(database),
        )
        leases = LeaseStore(
            database, lease_seconds=settings.lease_seconds, heartbeat_seconds=settings.heartbeat_seconds
        )
        SessionStore(database).create(_BENCH, _BENCH, compression_rate=0.3, strategy="interval")
        lease = leases.acquire(_BENCH)

        def find(open_turn: int, query: str, first: int, limit: int) -> list[int]:
            return search.turns(_BENCH, query, from_turn=first, before_turn=open_turn, limit=limit)

        for turn in script[: max(checkpoints)]:
            first, *replies = turn.messages
            question = HumanMessage(first.text, id=first.id)
            started, _ = turns.begin(lease, owner=_BENCH, message=question, model=_BENCH, is_casual=False)
            archive.append(lease, owner=_BENCH, turn=started.number, attempt=started.attempt, messages=replies)
            if turn.number in checkpoints:
                past_turns = PastTurns(
                    turn.number + 1,
                    settings.tool_result_chars,
                    find=partial(find, turn.number + 1),
                    read=partial(archive.live_turns, _BENCH),
                )
                tool = build_recall(past_turns, "ko")
                asked = script[: turn.number : ceil(turn.number / _MOST_ASKED)]
                found = sum(past.fact in str(tool.invoke({"query": past.question})) for past in asked)
                shares[turn.number] = found / len(asked)
        leases.close()
    return shares
