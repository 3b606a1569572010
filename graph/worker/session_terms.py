"""Counts the content terms of sessions' archives, so that what is rare in a session can be told from what isn't."""

from __future__ import annotations

from typing import Final

from graph.core.turn import text_of
from graph.core.weight import TermCounts, count_terms
from graph.store.archive import Archive
from graph.worker.newest import Newest

_KEPT_SESSIONS: Final = 50


class SessionTerms:
    """The term counts of the sessions that were asked for last; thread-safe.

    A message is read once: later questions add only what was said since. So an answer that was regenerated still counts
    until the session is no longer among the newest; that changes no weight by much.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._counted: Newest[str, tuple[int, TermCounts]] = Newest(_KEPT_SESSIONS)

    def counts(self, session_id: str) -> TermCounts:
        """Returns the counts over the session's live messages, those just archived included.

        Raises:
            StoreError: The archive couldn't be read.
        """
        last, counts = self._counted.get(session_id) or (0, TermCounts(0, {}))
        new = self._archive.live(session_id, from_position=last + 1)
        if new:
            last, counts = new[-1].position, count_terms((text_of(entry.message) for entry in new), counts)
        self._counted.put(session_id, (last, counts))
        return counts

    def forget(self, session_id: str) -> None:
        """Drops the counts of a deleted session."""
        self._counted.drop(session_id)
