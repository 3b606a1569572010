"""What its user does to the folds of a played session, and what must hold then of figures, pins and rebuilt inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from langchain_core.messages.utils import convert_to_openai_messages

from graph.value.error import InputError
from graph.value.event import TurnStopped
from graph.value.record import Record
from tests.fake.body import content_of
from tests.fake.oracle import read_truth
from tests.fake.plotted_session import PlottedSession

_CHARS = "SELECT position, chars, turn FROM message WHERE session_id = ?"
_REFUSALS = {"before_reset", "empty", "not_active", "not_shorter", "pin_budget", "stands_verbatim"}


class SteeredSession(PlottedSession):
    """One session whose folds are steered; each public method but `check` is a step."""

    _pins: frozenset[int] = frozenset()  # the turns whose questions are pinned
    _undone: tuple[str, ...] = ()
    _is_steered = False

    def check(self) -> None:
        is_new = len(self.model.inputs) > self._checked_inputs
        super().check()
        if self.turn_count and self._is_steered:
            self._check_panel()
            self._check_inputs(is_new=is_new)

    def edit(self, index: int, text: str) -> None:
        for record in self._steered(index):
            with _maybe_refused():
                edited = self.chat.service.folds.edit(self._session_id, record.id, text)
                assert edited.edited

    def remake(self, index: int, rate: float) -> None:
        for record in self._steered(index):
            if self.summariser.is_failing:
                return
            with _maybe_refused():
                made = self.chat.service.folds.remake(self._session_id, record.id, rate=rate, instruction="짧게")
                assert (made.turns, made.wish) == (record.turns, "짧게")

    def undo(self, index: int) -> None:
        for record in self._steered(index):
            with _maybe_refused():
                if self.chat.service.folds.undo(self._session_id, record.id) is None:
                    self._undone = (*self._undone, record.id)

    def redo(self, index: int) -> None:
        """The user takes the undoing of a merge back, which may be refused: its sources may be gone."""
        if self._undone:
            with _maybe_refused():
                self.chat.service.folds.use_version(self._session_id, self._undone[index % len(self._undone)])

    def use(self, index: int, version: int) -> None:
        for record in self._steered(index):
            with _maybe_refused():
                versions = self.chat.service.folds.versions(self._session_id, record.id)
                assert record in versions
                chosen = versions[version % len(versions)]
                assert self.chat.service.folds.use_version(self._session_id, chosen.id) == chosen
                assert chosen in self.chat.service.folds.records(self._session_id)

    def pin(self, turns_back: int) -> None:
        turn, self._is_steered = self.turn_count - turns_back, True
        if turn >= 1:
            with _maybe_refused():
                self.chat.service.folds.pin(self._session_id, f"user-{turn}")
                self._pins |= {turn}

    def unpin(self, turns_back: int) -> None:
        turn = self.turn_count - turns_back
        if turn >= 1:
            self.chat.service.folds.unpin(self._session_id, f"user-{turn}")
            self._pins -= {turn}

    def meanwhile(self, step: str, *arguments: object) -> None:
        """The user steers while a turn runs, then stops it: what was steered counts from the next turn on."""
        self._hang("", 0)
        self.check()
        getattr(self, step)(*arguments)
        self.chat.service.turns.stop(self._session_id)
        assert isinstance(self.chat.events()[-1], TurnStopped)

    def _steered(self, index: int) -> Sequence[Record]:
        """The record that is steered, if there is any."""
        self._is_steered = True
        records = self.chat.service.folds.records(self._session_id) if self.turn_count else ()
        return [records[index % len(records)]] if records else []

    def _check_panel(self) -> None:
        """The figures are the sums of what the rows say."""
        truth, shown = read_truth(self.chat), self.chat.service.folds.statistics(self._session_id)
        live = {position for position, *_ in truth.live}
        said = [row for row in self.chat.rows(_CHARS, self._session_id) if row[0] in live and truth.is_covered(row[0])]
        assert shown.record_count == len(truth.active)
        assert shown.original_chars == sum(chars for _, chars, _ in said)
        assert shown.summary_chars == sum(len(summary) for *_, summary in truth.active)

    def _check_inputs(self, *, is_new: bool) -> None:
        """What was sent is built again from the tables; a pinned question whose turn is folded stands in it once."""
        assert all(call.is_verified for call in self.chat.service.inputs.of_turn(self._session_id, self.turn_count))
        if not is_new:
            return
        truth, sends_records = read_truth(self.chat), self._strategy != "window"
        sent = convert_to_openai_messages(self.model.inputs[-1])
        told = "\n".join(content_of(message) for message in sent)
        for position, message_id, turn, *_ in truth.live:
            if message_id == f"user-{turn}" and turn > self._started:
                is_due = turn in self._pins and truth.is_covered(position) and sends_records
                assert told.count(f"[{turn}턴 사용자 원문] ") == is_due, (turn, self._pins)


@contextmanager
def _maybe_refused() -> Iterator[None]:
    try:
        yield
    except InputError as refused:
        if refused.reason not in _REFUSALS:
            raise
