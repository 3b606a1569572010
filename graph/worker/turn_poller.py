"""Follows the turns that other processes run: one thread asks for all of them, and their logs grow here."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage

from graph.core.close_turn import INTERRUPTED
from graph.error import NotFoundError, StoreError
from graph.record import ArchivedMessage
from graph.store.running_turn import TurnPlace, TurnProgress
from graph.store.stores import Stores
from graph.store.turn import TurnRow
from graph.worker.distant_turn import DistantTurn
from graph.worker.turn_log import TurnLog

_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.25
_POLLS_PER_LOOK: Final = 4  # at each look, a process that was killed is found
_POLLS_BEHIND_STALL: Final = 16  # by then those who live have renewed their leases
_STALL_SECONDS: Final = 2.0
_KEPT_SECONDS: Final = 5.0


@dataclass(eq=False)
class _Followed:
    """A turn that somebody follows, and how far it was when it was last read."""

    place: TurnPlace
    distant: DistantTurn
    read: TurnProgress
    said: list[AnyMessage]
    asked_at: float = field(default_factory=time.monotonic)

    @property
    def is_wanted(self) -> bool:
        return self.distant.log.is_watched or time.monotonic() - self.asked_at < _KEPT_SECONDS


class TurnPoller:
    """The logs of turns that run elsewhere, kept up to date while somebody watches them or asks for them again.

    One statement every 250 ms reads all of them; nothing is read while there are none.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._followed: dict[tuple[TurnPlace, int], _Followed] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def follow(self, session_id: str, number: int, attempt: int) -> TurnLog:
        """Returns the log of an attempt that another process runs; if that has ended, the log is over.

        Raises:
            NotFoundError: There is no such turn.
        """
        place = TurnPlace(session_id, number)
        with self._changed:
            followed = self._followed.get((place, attempt))
            if followed is not None:
                followed.asked_at = time.monotonic()  # here, or it could be dropped just before
        if followed is None:
            followed = self._opened(place)
            if followed.distant.log.place[1] != attempt:
                followed.distant.fail(INTERRUPTED)
            if followed.distant.log.is_over:
                return followed.distant.log
            with self._changed:
                followed = self._followed.setdefault((place, attempt), followed)
                self._start()
        return followed.distant.log

    def close(self) -> None:
        """Ends the thread; the logs stay as they are."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _opened(self, place: TurnPlace) -> _Followed:
        read = self._stores.turns.progress([place]).get(place)
        if read is None:
            raise NotFoundError(place.session_id)
        archived = self._archived(read.turn)
        resumed = self._stores.anchors.of_attempt(*place, read.turn.attempt)[1:]
        begin = _answer_behind(archived, resumed[-1].first_position) if resumed else 0
        said = [entry.message for entry in archived]
        return _Followed(place, DistantTurn(read.turn, said, begin=begin), read, said)

    def _start(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="turn-poll", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        polls = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._followed or self._is_closed)
                self._changed.wait_for(lambda: self._is_closed, _POLL_SECONDS)
                if self._is_closed:
                    return
                self._followed = {
                    key: one for key, one in self._followed.items() if one.is_wanted and not one.distant.log.is_over
                }
                followed = list(self._followed.values())
            polls, began = polls + 1, time.monotonic()
            try:
                self._poll(followed)
                if polls >= _POLLS_PER_LOOK:
                    polls = 0
                    self._end_abandoned(followed, began)
            except StoreError as error:
                polls = _POLLS_PER_LOOK - _POLLS_BEHIND_STALL
                _LOG.warning("turns of other processes could not be read: %s", error.code)
            except Exception:  # noqa: BLE001  # the edge of a thread; the next poll makes up for it
                _LOG.exception("turns of other processes could not be read")
            if _has_stalled(began):
                polls = _POLLS_PER_LOOK - _POLLS_BEHIND_STALL

    def _poll(self, followed: list[_Followed]) -> None:
        found = self._stores.turns.progress({one.place for one in followed}) if followed else {}
        for one in followed:
            now = found.get(one.place)
            if now is None:
                one.distant.fail(NotFoundError.code)
            elif now != one.read:
                if now.position != one.read.position:  # else only the text grew: one read for all of them is enough
                    one.said = [entry.message for entry in self._archived(now.turn)]
                one.distant.take(now.turn, one.said)
                one.read = now

    def _end_abandoned(self, followed: list[_Followed], began: float) -> None:
        """Ends the logs of turns whose process died; one that ends by itself says so before it lets its lease go.

        While the database stood still since `began`, leases have run out that their holders renew in a moment.
        """
        alive = self._stores.leases.alive({one.place.session_id for one in followed}) if followed else frozenset()
        if _has_stalled(began):
            return
        gone = [one for one in followed if one.place.session_id not in alive]
        self._poll(gone)
        for one in gone:
            one.distant.abandon(one.read.turn, one.said)

    def _archived(self, row: TurnRow) -> list[ArchivedMessage]:
        return self._stores.archive.live_turns(row.session_id, row.number, row.number)


def _has_stalled(began: float) -> bool:
    """Whether the database has kept a reading waiting for so long that it may have stood still."""
    return time.monotonic() - began > _STALL_SECONDS


def _answer_behind(archived: Sequence[ArchivedMessage], position: int) -> int:
    """Returns the index of the first answer from this position on: the results of a program stand before it."""
    answers = (
        at for at, entry in enumerate(archived) if entry.position >= position and isinstance(entry.message, AIMessage)
    )
    return next(answers, len(archived))
