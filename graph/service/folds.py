"""Reads a session's folds and their figures; compacts, restores, resets and pins."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Final, Literal

from graph.core.cost import Saved, saved_by_model, savings_of
from graph.core.language import session_language
from graph.core.model_input import system_part
from graph.core.pin import budget_tokens, fitting, pin_of
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens, has_visible
from graph.service.access import SessionAccess
from graph.service.fold_versions import FoldVersions
from graph.service.inputs import read_history, read_inputs, read_request
from graph.store.session import SessionRow
from graph.strategy.base import first_turn
from graph.strategy.compaction import CompactionStrategy, compaction_fold
from graph.value.error import InputError, NotFoundError
from graph.value.input_view import CallInput, HistoryTurn, Savings, SentRequest
from graph.value.record import ArchivedMessage, Record
from graph.value.view import ChartPoint, Gauge, NextFold, PinnedMessage, PinView, SavingsMoney, Statistics
from prompt.system.framing import Language

COMPACTION: Final = CompactionStrategy.name


class Compactions:
    """Makes, lists and undoes compactions of one owner's sessions."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores

    def make(self, session_id: str) -> Record:
        """Replaces all but the newest messages by one summary; see `Folds.compact`."""
        session = self._access.own(session_id)
        if not self._access.strategies.of(session.strategy).sends_records:
            raise InputError("no_effect")
        with self._access.between_turns(session_id) as lease:
            session = self._access.own(session_id)  # a turn may have ended since
            turn_count, rate = session.turn_count - session.is_open, session.compression_rate
            snapshot = self._access.fold_worker.snapshot(session_id, complete_turns=turn_count, rate=rate)
            spec = compaction_fold(snapshot, self._access.settings.preserve_recent_messages)
            if spec is None:
                raise InputError("nothing_to_compact")
            limiter = self._access.runner.limiter
            limiter.begin(self._access.owner)  # it costs what a turn does
            stop = self._access.compacting[session_id] = threading.Event()
            try:
                record = self._access.fold_worker.make_now(
                    session_id, spec, owner=self._access.owner, model=session.model, stop=stop
                )
            finally:
                del self._access.compacting[session_id]
                limiter.end(self._access.owner)
            if record is None or not self._stores.records.adopt(lease, record.id):
                raise InputError("compact_stopped" if stop.is_set() else "compact_failed")
        return record

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction and every later one; see `Folds.restore`."""
        self._access.own(session_id)
        if self._stores.records.get(session_id, record_id).kind != COMPACTION:
            raise InputError("not_a_compaction")
        with self._access.between_turns(session_id) as lease:
            active = self._stores.context(session_id).records
            chains = [self._chain(record) for record in active]
            chain = next((chain for chain in chains if any(step.id == record_id for step in chain)), None)
            if chain is None:
                raise NotFoundError(record_id)
            ids = [step.id for step in chain]
            with self._stores.database.writing():
                self._stores.records.revert(lease, ids[: ids.index(record_id) + 1])
                tokens = self._stores.context(session_id).tokens
                self._stores.sessions.update(session_id, self._access.owner, restored_tokens=tokens)

    def undoable(self, session_id: str) -> tuple[Record, ...]:
        """Returns every compaction that `restore` can undo, newest first."""
        self._access.own(session_id)
        active = self._stores.records.active(session_id)
        return tuple(step for record in reversed(active) for step in self._chain(record))

    def _chain(self, record: Record) -> list[Record]:
        """Returns a compaction and the earlier ones that it replaced, newest first; [] for other records."""
        chain = []
        step = record if record.kind == COMPACTION else None
        while step is not None:
            chain.append(step)
            step = next((source for source in self._sources(step) if source.kind == COMPACTION), None)
        return chain

    def _sources(self, record: Record) -> list[Record]:
        return [self._stores.records.get(record.thread_id, source) for source in record.sources]


class Pins:
    """The pinned messages of one owner's sessions; a running turn goes on with those that it began with."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores

    def view(self, session_id: str) -> PinView:
        """Returns what is pinned and how much room there is; see `Folds.pins`."""
        session = self._access.own(session_id)
        with self._stores.database.reading():
            return self._view(session)

    def pin(self, session_id: str, message_id: str) -> PinView:
        """Pins a message; see `Folds.pin`."""
        session = self._access.own(session_id)
        database = self._stores.database
        # Nobody else pins meanwhile, so what is left of the budget stays true.
        with database.writing(), database.write(session_id=session_id):
            view, entry = self._view(session), self._live(session_id, message_id)
            if any(pinned.message_id == message_id for pinned in view.messages):
                return view
            pin = pin_of(entry)
            if pin.role not in ("human", "ai") or not has_visible(pin.text):
                raise InputError("empty")
            if pin.position <= self._stores.sessions.context_begin(session_id):
                raise InputError("before_reset")
            left_tokens = max(0, view.budget_tokens - view.used_tokens)
            if pin.tokens(self._language(session_id)) > left_tokens:
                raise InputError("pin_budget", str(left_tokens))
            self._stores.pins.add(session_id, message_id, owner=self._access.owner)
            return self._view(session)

    def unpin(self, session_id: str, message_id: str) -> PinView:
        """Unpins a message; see `Folds.unpin`."""
        self._access.own(session_id)
        self._stores.pins.remove(session_id, message_id)
        return self.view(session_id)

    def _live(self, session_id: str, message_id: str) -> ArchivedMessage:
        turn = self._stores.archive.get(session_id, message_id).turn
        said = self._stores.archive.live_turns(session_id, turn, turn)
        found = next((entry for entry in said if entry.message.id == message_id), None)
        if found is None:  # of an earlier attempt
            raise NotFoundError(message_id)
        return found

    def _view(self, session: SessionRow) -> PinView:
        session_id, models = session.session_id, self._access.models
        language = self._language(session_id)
        pins = self._stores.pinned(session_id)
        # Not `input_tokens`: that may wait for the endpoint's list of models.
        window = models.window_tokens(session.model or models.default_name)
        budget = budget_tokens(int(window * self._access.settings.guard_share))
        sent = fitting(pins, budget, language)
        messages = tuple(
            PinnedMessage(pin.message_id, pin.turn, pin.tokens(language), is_sent=pin in sent) for pin in pins
        )
        return PinView(messages, budget, sum(message.tokens for message in messages))

    def _language(self, session_id: str) -> Language:
        return session_language(self._stores.archive.opening(session_id))


def read_savings(access: SessionAccess, session_id: str) -> Savings:
    """Returns what a session's folds have saved since its last reset.

    Raises:
        NotFoundError: There is no such session.
        DatabaseError: The list of what was sent can't be read.
    """
    access.own(session_id)
    sums = access.stores.records.sums(session_id)
    saved = saved_by_model(access.stores.calls.sent(session_id))
    return Savings(
        unsent_tokens=sum(each.unsent_tokens for each in saved),
        fold_tokens=sums.input_tokens + sums.output_tokens,
        is_fold_usage=not sums.estimated_count,
        lost_tokens=sum(each.lost_tokens for each in saved),
        money=_money(access, session_id, saved),
    )


def _money(access: SessionAccess, session_id: str, saved: list[Saved]) -> SavingsMoney | None:
    prices = access.settings.model_prices
    if prices is None:
        return None
    folds = access.owners.token_uses.of_folds(session_id)
    return savings_of(saved, folds, prices, default_model=access.models.default_name)


Command = Literal["compact", "reset"]
_COMMANDS: Final[dict[str, Command]] = {"/compact": "compact", "/reset": "reset"}


class Folds:
    """Reads records and figures, and changes the context by hand between turns.

    Every method that takes a session's id raises `NotFoundError` if this owner has no such session.
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores
        self._fold_worker = access.fold_worker
        self._compactions = Compactions(access)
        self._versions = FoldVersions(access)
        self._pins = Pins(access)

    def records(self, session_id: str, *, last: int | None = None) -> tuple[Record, ...]:
        """Returns the active records, oldest first; with `last`, only that many of the newest."""
        self._access.own(session_id)
        store = self._stores.records
        return tuple(store.active(session_id) if last is None else store.newest(session_id, last))

    def past_records(self, session_id: str, *, last: int) -> tuple[Record, ...]:
        """Returns the newest `last` records that were active before a reset, oldest first."""
        self._access.own(session_id)
        return tuple(self._stores.records.past(session_id, last))

    def statistics(self, session_id: str) -> Statistics:
        """Returns the totals that the panel shows."""
        self._access.own(session_id)
        sums = self._stores.records.sums(session_id)
        client_changes, lost_tokens = self._stores.blocks.losses(session_id, "client")
        saved = round(100 * (1 - sums.summary_chars / sums.original_chars)) if sums.original_chars else 0
        return Statistics(
            record_count=sums.record_count,
            folded_turn_count=sums.folded_turn_count,
            original_chars=sums.original_chars,
            summary_chars=sums.summary_chars,
            saved_percent=saved,
            unsent_tokens=self._stores.calls.unsent_tokens(session_id),
            fold_tokens=sums.input_tokens + sums.output_tokens,
            client_changes=client_changes,
            lost_tokens=lost_tokens,
        )

    def savings(self, session_id: str) -> Savings:
        """Returns what the folds have saved since the last reset, and what they cost; see `read_savings`."""
        return read_savings(self._access, session_id)

    def next_fold(self, session_id: str | None, *, strategy: str) -> NextFold:
        """Returns what isn't folded yet; without a session, what holds for a new one.

        Args:
            session_id: The session, or None.
            strategy: The session's strategy, or the one chosen for a new session.
        """
        chosen, settings = self._access.strategies.of(strategy), self._access.settings
        if session_id is None:
            return chosen.next_fold(SessionSnapshot(0, (), (), settings.compression_rate))
        session = self._access.own(session_id)
        complete_turns = session.turn_count - session.is_open
        snapshot = self._fold_worker.snapshot(
            session_id,
            complete_turns=complete_turns,
            rate=session.compression_rate,
            from_turn=first_turn(chosen, complete_turns + 1),
        )
        # Not `input_tokens`: that may wait for the endpoint's list of models.
        window = self._access.models.window_tokens(session.model or self._access.models.default_name)
        snapshot = snapshot.within(int(window * settings.guard_share))
        is_reset = self._stores.sessions.context_begin(session_id) > 0
        return replace(chosen.next_fold(snapshot), is_reset=is_reset)

    def uses_rate(self, strategy: str) -> bool:
        """Whether the length of this strategy's summaries follows the compression rate."""
        return self._access.strategies.of(strategy).uses_rate

    def chart(self, session_id: str) -> tuple[ChartPoint, ...]:
        """Returns one point per answered turn since the last reset, in order."""
        self._access.own(session_id)
        points = self._stores.calls.series(session_id)
        active = [record.id for record in self._stores.records.active(session_id)]
        adopted = self._stores.records.adoption_turns(session_id, active)
        # An unanswered turn has no point; the next answered turn is then the first whose input has the record.
        folds = {next((point.turn for point in points if point.turn >= turn), 0) for turn in adopted}
        return tuple(ChartPoint(turn, sent, full, has_fold=turn in folds) for turn, sent, full in points)

    def inputs(self, session_id: str, turn: int) -> tuple[CallInput, ...]:
        """Returns what each call of a turn was sent, block by block, and what it cost; see `read_inputs`."""
        return read_inputs(self._access, session_id, turn)

    def request(self, session_id: str, turn: int, *, attempt: int, ordinal: int) -> SentRequest:
        """Returns the body of the request that one of these calls sent; see `read_request`."""
        return read_request(self._access, session_id, turn, attempt=attempt, ordinal=ordinal)

    def called_turns(self, session_id: str) -> tuple[int, ...]:
        """Returns the turns that a model was called in, in order: those whose `inputs` aren't empty."""
        self._access.own(session_id)
        return self._stores.calls.turns(session_id)

    def history(self, session_id: str, turn: int, *, last: int) -> tuple[HistoryTurn, ...]:
        """Returns the newest `last` turns of the whole history up to a turn; see `read_history`."""
        return read_history(self._access, session_id, turn, last=last)

    def gauge(self, session_id: str | None, *, model: str = "") -> Gauge:
        """Returns how much of the context window the last model call took.

        Before the first call, and without a session, that is the estimate for the system prompt.
        """
        if session_id is not None:
            self._access.own(session_id)
        window = self._access.models.window_tokens(model or self._access.models.default_name)
        call = self._stores.calls.last_answered(session_id) if session_id else None
        if call is None:
            return Gauge(self._prompt_tokens(session_id), window, "estimate")
        if call.usage_input_tokens:
            return Gauge(call.usage_input_tokens, window, "usage")
        estimate = round(call.sent_tokens * self._stores.calls.correction(call.session_id))
        return Gauge(estimate, window, "estimate")

    def _prompt_tokens(self, session_id: str | None) -> int:
        """Estimates the system prompt of a session without a call; of a Korean one before its first message."""
        if session_id is None:
            strategy, opening = self._access.strategies.default, None
        else:
            strategy = self._access.strategies.of(self._access.own(session_id).strategy)
            opening = self._stores.archive.opening(session_id)
        system = system_part(session_language(opening), can_recall=strategy.sends_records)
        return estimate_tokens(system.text)

    def command_of(self, text: str) -> Command | None:
        """Returns the command that the text is, None if it's a message."""
        return _COMMANDS.get(text.strip().lower())

    def compact(self, session_id: str) -> Record:
        """Replaces all but the newest messages by one structured summary, and waits until it is active.

        Raises:
            InputError: `no_effect` (the strategy sends no summaries), `nothing_to_compact` (too few messages),
                `compact_failed` (the result wasn't shorter) or `compact_stopped`.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
        """
        return self._compactions.make(session_id)

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction and every later one: what they replaced is sent again from the next turn on.

        Summaries of later messages are set aside, so that coverage has no hole; under `interval` each stands again, in
        the version that its user chose, from the next turn on. Automatic compaction then pauses
        until the context has grown by a tenth.

        Raises:
            InputError: `not_a_compaction`.
            NotFoundError: The record isn't active, and no active compaction was made from it.
            BusyError: A turn is in progress.
        """
        self._compactions.restore(session_id, record_id)

    def reset(self, session_id: str) -> None:
        """Empties the context: nothing said so far is sent again; the transcript stays. See `undo_reset`.

        A turn that waits for a program is closed.

        Raises:
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        with self._access.between_turns(session_id, keeps_waiting=False) as lease:
            active, raw, _ = self._stores.context(session_id)
            if raw:
                self._stores.resets.begin_context(lease, raw[-1].position)
            elif active:
                self._stores.resets.begin_context(lease, active[-1].to_position)

    def undo_reset(self, session_id: str) -> None:
        """Undoes the last reset: the context is again what it was before, with the same records.

        Raises:
            InputError: `no_reset`: there was none, or a turn was run since.
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        with self._access.between_turns(session_id) as lease:
            if not self._stores.resets.undo(lease):
                raise InputError("no_reset")

    def compactions(self, session_id: str) -> tuple[Record, ...]:
        """Returns every compaction that `restore` can undo, newest first."""
        return self._compactions.undoable(session_id)

    def versions(self, session_id: str, record_id: str) -> tuple[Record, ...]:
        """Returns every version of a record, oldest first, the active one included; () if it was never active."""
        return self._versions.all_of(session_id, record_id)

    def use_version(self, session_id: str, record_id: str) -> Record:
        """Makes a version of a record the active one, from the next turn on; a merge that was undone, too.

        Raises:
            InputError: `not_active`: something else stands in its place by now.
        """
        return self._versions.use(session_id, record_id)

    def edit(self, session_id: str, record_id: str, text: str) -> Record:
        """Gives a record other words, as a new version that is active from the next turn on.

        Raises:
            InputError: `empty`, `too_long`, `not_shorter` (than what it covers) or `not_active`.
        """
        return self._versions.edit(session_id, record_id, text)

    def remake(self, session_id: str, record_id: str, *, rate: float, wish: str = "") -> Record:
        """Has a record made anew, as a new version that is active from the next turn on; waits for it.

        Args:
            session_id: The session.
            record_id: The record.
            rate: The share of its source to aim at, 0.1 to 0.5.
            wish: What to heed beside the length, 300 characters at most.

        Raises:
            InputError: `bad_rate`, `too_long`, `stands_verbatim` (its source is too short for a summary), `not_active`,
                or `remake_failed`; then `detail` is the code of what went wrong.
            BusyError: A limit of the server is reached.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        return self._versions.remake(session_id, record_id, rate=rate, wish=wish)

    def undo(self, session_id: str, record_id: str) -> Record | None:
        """Has a record give way to its messages word for word; see `fold_again`, and `use_version` to take it back.

        Returns:
            The version that has the messages; None for a merge, whose sources are active again.

        Raises:
            InputError: `stands_verbatim` or `not_active`.
        """
        return self._versions.undo(session_id, record_id)

    def fold_again(self, session_id: str, record_id: str) -> Record:
        """Folds what was undone, at the session's rate; raises what `remake` does."""
        return self._versions.fold_again(session_id, record_id)

    def pins(self, session_id: str) -> PinView:
        """Returns the pinned messages since the last reset, and how much room there is for them."""
        return self._pins.view(session_id)

    def pin(self, session_id: str, message_id: str) -> PinView:
        """Has a message sent word for word from the next turn on, also once it is folded; until a reset. Idempotent.

        Raises:
            InputError: `empty` (it has no text, or a tool said it), `before_reset` (no input has it any more) or
                `pin_budget`; its `detail` is how many tokens are left.
            NotFoundError: There is no such message in the last attempt of its turn.
        """
        return self._pins.pin(session_id, message_id)

    def unpin(self, session_id: str, message_id: str) -> PinView:
        """Takes `pin` back; idempotent."""
        return self._pins.unpin(session_id, message_id)
