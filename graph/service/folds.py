"""Reads a session's folds and their figures, and changes them as their user says: compact, reset, edit, undo, pin."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from textwrap import wrap
from typing import Final, Literal

from graph.core.attached import Attachment
from graph.core.cost import Saved, break_even, net_tokens, pace_of, saved_by_model, savings_of
from graph.core.language import split_sentences
from graph.core.ledger import ledger_tokens, line_tokens, lines_of, standing, with_room
from graph.core.open_question import without_question
from graph.core.pin import budget_tokens, fitting, pin_of
from graph.core.snapshot import SessionSnapshot
from graph.core.text import check_text, estimate_tokens, has_visible, plain_text, title_of
from graph.core.turn import label_of, text_of
from graph.fold.fact_check import compare_facts, count_facts, lacking_facts, left_out_at
from graph.fold.fact_find import fact_as_written, facts_in
from graph.fold.fact_line import without_line
from graph.fold.review import invented_facts, quote
from graph.fold.spec import FoldSpec, round_rate
from graph.node.fold_worker import FoldWorker
from graph.service.access import Choices, SessionAccess
from graph.store.record import RecordSums
from graph.store.session import SessionRow
from graph.store.token_use import TokenUseStore
from graph.strategy.compaction import CompactionStrategy, compaction_fold
from graph.strategy.strategies import regeneration_fold
from graph.tool.recall import build_recall, opened_turns
from graph.tool.tool_context import PastTurns
from graph.value.error import InputError, NotFoundError, TurnfoldError
from graph.value.record import ArchivedMessage, LedgerLine, Record, RecordKind, to_entry
from graph.value.view import (
    EXAMPLE_MODEL,
    ChartPoint,
    FactCount,
    FoldWhen,
    Gauge,
    KeptLine,
    LedgerView,
    MissingFact,
    NamedImage,
    NextFold,
    Passages,
    PastStatistics,
    PinnedMessage,
    PinView,
    Savings,
    SavingsMoney,
    Statistics,
    TurnOptions,
)
from graph.worker.next_input import NextInputs, unsaved_session
from prompt.system.framing import SPEAKER, TURN_QUOTE, Language

COMPACTION: Final = CompactionStrategy.name
MOST_INSTRUCTION_CHARS: Final = 300
_MOST_CLAUSE_CHARS: Final = 200
_NO_COST: Final = {"input_tokens": 0, "output_tokens": 0, "is_usage": False, "seconds": 0.0, "error_code": ""}

Command = Literal["compact", "reset"]
_COMMANDS: Final[dict[str, Command]] = {"compact": "compact", "reset": "reset"}
_COMMAND: Final = re.compile(r"/(compact|reset)(?:\s*:\s*|\s+|\Z)(.*)", re.IGNORECASE | re.DOTALL)


class Folds:
    """The folds of one owner's sessions.

    Methods that take a session id raise `NotFoundError` for an unknown session or record.
    """

    def __init__(
        self,
        access: SessionAccess,
        *,
        choices: Choices,
        fold_worker: FoldWorker,
        token_uses: TokenUseStore,
        past_turns: Callable[..., PastTurns],
        next_inputs: NextInputs,
    ) -> None:
        self._access = access
        self._stores = access.stores
        self._choices = choices
        self._settings = choices.settings
        self._models = choices.models
        self._strategies = choices.strategies
        self._fold_worker = fold_worker
        self._token_uses = token_uses
        self._past_turns = past_turns
        self._next_inputs = next_inputs
        self._unsaved = unsaved_session(access.owner, choices.settings.compression_rate)

    def records(self, session_id: str, *, last: int | None = None) -> tuple[Record, ...]:
        """Returns the active records, oldest first; with `last`, only that many of the newest."""
        self._access.own(session_id)
        store = self._stores.records
        return tuple(store.active(session_id) if last is None else store.newest(session_id, last))

    def past_records(self, session_id: str, *, last: int) -> tuple[Record, ...]:
        """Returns the newest `last` records that were active before a reset, oldest first."""
        self._access.own(session_id)
        return tuple(self._stores.records.past(session_id, last))

    def recall(self, session_id: str, *, query: str = "", turns: str = "") -> Passages:
        """Returns what the model's tool `recall` would show in the session's next turn; see `graph.tool.recall`."""
        row = self._access.own(session_id)
        past = self._past_turns(session_id, self._access.owner, open_turn=row.turn_count + 1 - row.is_open)
        tool = build_recall(past, self._stores.state(session_id).language)
        asked = {"query": query, "turns": turns}
        message = tool.invoke({"type": "tool_call", "id": session_id, "name": tool.name, "args": asked})
        return Passages(message.text, opened_turns(tool.name, message.text) or (), is_error=message.status == "error")

    def statistics(self, session_id: str, *, ready: Sequence[Record] = ()) -> Statistics:
        """Returns the totals that the panel shows, counting `ready` folds as the next turn will."""
        self._access.own(session_id)
        sums = self._stores.records.sums(session_id, ready=ready)
        client_changes, lost_tokens = self._stores.blocks.losses(session_id, "client")
        return Statistics(
            **_totals(sums),
            unsent_tokens=self._stores.calls.unsent_tokens(session_id),
            client_changes=client_changes,
            lost_tokens=lost_tokens,
        )

    def past_statistics(self, session_id: str) -> PastStatistics:
        """Returns the totals of what came before the last reset."""
        self._access.own(session_id)
        sums = self._stores.records.sums(session_id, is_past=True)
        unsent_tokens = self._stores.calls.past_unsent_tokens(session_id)
        return PastStatistics(**_totals(sums), unsent_tokens=unsent_tokens, is_fold_usage=not sums.estimated_count)

    def savings(self, session_id: str, *, ready: Sequence[Record] = ()) -> Savings:
        """Returns what folds saved since the last reset, and what they cost; the next turn will use `ready` folds."""
        session = self._access.own(session_id)
        sums, folds = self._stores.records.sums(session_id), self._stores.records.fold_counts(session_id, ready=ready)
        calls = self._stores.calls.sent(session_id)
        saved = saved_by_model(calls)
        savings = Savings(
            unsent_tokens=sum(each.unsent_tokens for each in saved),
            full_tokens=sum(call.full_tokens for call in calls),
            fold_tokens=sums.input_tokens + sums.output_tokens,
            is_fold_usage=not sums.estimated_count,
            lost_tokens=sum(each.lost_tokens for each in saved),
            net_tokens=net_tokens(saved, input_tokens=sums.input_tokens, output_tokens=sums.output_tokens),
            cached_tokens=sum(each.unsent_tokens for each in saved if each.is_cached),
            money=self._money(session_id, saved),
            has_example=any(each.model == EXAMPLE_MODEL for each in saved),
            broken_off_count=folds.broken_off_count,
        )
        if savings.is_paid_back:
            return savings
        prices, turn = self._settings.model_prices, session.turn_count - session.is_open
        pace = pace_of(calls, folds, savings, prices, turn=turn, default_model=self._models.default_name)
        return replace(savings, pays_from=break_even(pace) if pace else None)

    def _money(self, session_id: str, saved: list[Saved]) -> SavingsMoney | None:
        prices = self._settings.model_prices
        if prices is None:
            return None
        folds = self._token_uses.of_folds(session_id)
        return savings_of(saved, folds, prices, default_model=self._models.default_name)

    def next_fold(self, session_id: str | None, *, strategy: str, fold_when: FoldWhen | None = None) -> NextFold:
        """Returns what isn't folded yet, under this strategy; without a session, as for a new one with `fold_when`."""
        chosen, settings = self._strategies.of(strategy), self._settings
        if session_id is None:
            return chosen.next_fold(SessionSnapshot(0, (), (), settings.compression_rate, fold_when=fold_when or ""))
        session = self._access.own(session_id)
        complete_turns = session.turn_count - session.is_open
        snapshot = self._fold_worker.snapshot(
            session_id,
            complete_turns=complete_turns,
            rate=session.compression_rate,
            whole_turns=chosen.whole_turns,
        )
        # Not `input_tokens`: that may wait for the endpoint's list of models.
        window = self._models.window_tokens(session.model or self._models.default_name)
        snapshot = snapshot.within(int(window * settings.guard_share))
        is_reset = session.context_from_position > 0
        following = replace(chosen.next_fold(snapshot), is_reset=is_reset)
        model = self._models.known_name(session.model)
        if not following.is_due or not model:
            return following
        specs = chosen.due_folds(snapshot)
        ready, is_making = self._fold_worker.outlook(session_id, specs, owner=self._access.owner, model=model)
        for record in ready:
            snapshot = snapshot.adopting(record)
        behind = chosen.next_fold(snapshot)
        is_held = self._fold_worker.is_held(session_id)
        return replace(behind, is_due=True, is_reset=is_reset, is_making=is_making, is_held=is_held, ready=ready)

    def expect_message(self, session_id: str) -> None:
        """Says that a message will follow the running answer: where folds would keep it waiting, none begins before."""
        self._access.own(session_id)
        self._fold_worker.expect(session_id)

    def uses_rate(self, strategy: str) -> bool:
        """Whether the length of this strategy's summaries follows the compression rate."""
        return self._strategies.of(strategy).uses_rate

    def chart(self, session_id: str) -> tuple[ChartPoint, ...]:
        """Returns one point per answered turn since the last reset, in order."""
        self._access.own(session_id)
        points = self._stores.calls.series(session_id)
        active = [record.id for record in self._stores.state(session_id).active]
        adopted = self._stores.records.adoption_turns(session_id, active)
        # An unanswered turn has no point; the next answered turn is then the first whose input has the record.
        folds = {next((point.turn for point in points if point.turn >= turn), 0) for turn in adopted}
        return tuple(ChartPoint(turn, sent, full, has_fold=turn in folds) for turn, sent, full in points)

    def gauge(
        self,
        session_id: str | None,
        *,
        options: TurnOptions | None = None,
        language: Language | None = None,
        files: Iterable[Attachment | NamedImage] = (),
    ) -> Gauge:
        """Returns how full the window will be at the next call, without the words of the question.

        Args:
            session_id: The session; None for one that the next message creates.
            options: The settings of the next turn that differ from the session's; invalid ones are passed over.
            language: That of a session without words, the server's if None.
            files: What goes with the question.
        """
        session = self._unsaved if session_id is None else self._access.own(session_id)
        if options is not None:
            with suppress(TurnfoldError):
                session = replace(session, **self._choices.changes_of(session, options))
        if session_id is None and language is None:
            language = self._stores.default_language
        models, calls = self._models, self._stores.calls
        name = session.model or models.default_name
        sent_tokens = self._next_inputs.of(session, language, files).sent_tokens
        last = calls.last_answered(session_id) if session_id else None
        return Gauge(
            # The estimate as the provider counts, by what it has reported of earlier calls.
            self._stores.state(session_id).calls.correction.tokens(sent_tokens) if session_id else sent_tokens,
            models.window_tokens(name),
            is_guess=models.is_window_guessed(name),
            reported_tokens=last.usage_input_tokens if last else None,
        )

    def sent_files(
        self,
        session_id: str | None,
        files: Sequence[Attachment | NamedImage],
        *,
        options: TurnOptions,
        language: Language,
    ) -> list[Attachment | NamedImage]:
        """Returns what goes with a question as it would be sent: of long files the beginning."""
        session = self._unsaved if session_id is None else self._access.own(session_id)
        with suppress(TurnfoldError):
            session = replace(session, **self._choices.changes_of(session, options))
        return self._next_inputs.sent_files(self._models.known_name(session.model), files, language)

    # The context is changed by hand between turns.

    def command_of(self, text: str) -> tuple[Command, str] | None:
        """Returns the command in the text and the words after it; None for a message."""
        found = _COMMAND.fullmatch(text.strip())
        return None if found is None else (_COMMANDS[found[1].lower()], found[2].strip())

    def compact(self, session_id: str, *, instruction: str = "") -> Record:
        """Replaces all but the newest messages by one structured summary, and waits until it is active.

        Args:
            session_id: The session.
            instruction: The user's instruction for the summary, 300 characters at most.

        Raises:
            InputError: `no_effect` (the strategy sends no summaries), `nothing_to_compact` (too few messages),
                `compact_failed` (the result wasn't shorter), `compact_stopped` or `too_long` (the instruction).
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
        """
        session = self._access.own(session_id)
        if not self._strategies.of(session.strategy).sends_records:
            raise InputError("no_effect")
        instruction = _checked_instruction(instruction)
        with self._access.between_turns(session_id) as lease:
            session = self._access.own(session_id)  # a turn may have ended since
            turn_count, rate = session.turn_count - session.is_open, session.compression_rate
            snapshot = self._fold_worker.snapshot(session_id, complete_turns=turn_count, rate=rate)
            spec = compaction_fold(snapshot, self._settings.preserve_recent_messages)
            if spec is None:
                raise InputError("nothing_to_compact")
            limiter = self._access.runner.limiter
            limiter.begin(self._access.owner)  # it costs what a turn does
            stop = self._access.compacting[session_id] = threading.Event()
            try:
                record = self._fold_worker.make_now(
                    session_id,
                    replace(spec, instruction=instruction),
                    owner=self._access.owner,
                    model=session.model,
                    stop=stop,
                )
            finally:
                del self._access.compacting[session_id]
                limiter.end(self._access.owner)
            if record is None or not self._stores.records.adopt(lease, record.id):
                raise InputError("compact_stopped" if stop.is_set() else "compact_failed")
        return record

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction and every later one: what they replaced is sent again from the next turn on.

        Summaries of later messages are set aside, so that coverage has no hole; under `interval` each stands again, in
        its user's version, from the next turn on. Automatic compaction pauses until the context has grown by a tenth.

        Raises:
            InputError: `not_a_compaction`, or `not_active`: neither is it, nor a compaction made from it.
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        if self._stores.records.get(session_id, record_id).kind != COMPACTION:
            raise InputError("not_a_compaction")
        with self._access.between_turns(session_id) as lease:
            chains = [self._chain(record) for record in self._stores.state(session_id).active]
            chain = next((chain for chain in chains if any(step.id == record_id for step in chain)), None)
            if chain is None:
                raise InputError("not_active")
            ids = [step.id for step in chain]
            with self._stores.database.writing():
                self._stores.records.revert(lease, ids[: ids.index(record_id) + 1])
                tokens = self._stores.state(session_id).tokens
                self._stores.sessions.update(session_id, self._access.owner, restored_tokens=tokens)

    def compactions(self, session_id: str) -> tuple[Record, ...]:
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

    def reset(self, session_id: str) -> None:
        """Empties the context: earlier messages aren't sent again, and a turn waiting for a program is closed.

        Raises `BusyError` if a turn is in progress.
        """
        self._access.own(session_id)
        with self._access.between_turns(session_id, keeps_waiting=False) as lease:
            state = self._stores.state(session_id)
            active, raw = state.active, state.raw
            if raw:
                self._stores.resets.begin_context(lease, raw[-1].position)
            elif active:
                self._stores.resets.begin_context(lease, active[-1].to_position)

    def undo_reset(self, session_id: str) -> None:
        """Undoes the last reset, with the same records.

        Raises:
            InputError: `no_reset`: there was none, or a turn was run since.
            BusyError: A turn is in progress.
        """
        self._access.own(session_id)
        with self._access.between_turns(session_id) as lease:
            if not self._stores.resets.undo(lease):
                raise InputError("no_reset")

    # A fold is steered by versions, also while a turn runs: that goes on with what it began with.

    def versions(self, session_id: str, record_id: str) -> tuple[Record, ...]:
        """Returns every version of a record, oldest first, the active one included; () if it was never active."""
        self._access.own(session_id)
        self._stores.records.get(session_id, record_id)
        return tuple(self._stores.versions.of(session_id, record_id))

    def use_version(self, session_id: str, record_id: str) -> Record:
        """Activates a version of a record, or an undone merge, from the next turn on.

        Raises `InputError`: `not_active`: it was replaced meanwhile.
        """
        self._access.own(session_id)
        record = self._stores.records.get(session_id, record_id)
        with self._paced(record):
            if not self._stores.versions.use(session_id, record_id):
                raise InputError("not_active")
        return record

    def edit(self, session_id: str, record_id: str, text: str) -> Record:
        """Stores an edited text as a new version, active from the next turn on.

        Raises `InputError`: `empty`, `too_long`, `not_shorter` (than its source) or `not_active`.
        """
        self._access.own(session_id)
        text = plain_text(text).strip()
        check_text(text, max_chars=self._settings.message_chars)
        record = self._stores.records.get(session_id, record_id)
        if len(text) > record.original_chars:
            raise InputError("not_shorter", f"{len(text)} > {record.original_chars}")
        spec = self._spec(record, rate=record.compression_rate)
        kept_facts, missing_facts = compare_facts(text, spec)
        # What the user adds isn't invented.
        invented = set(invented_facts(text, spec)) & set(record.invented_facts)
        edited = record.with_changes(
            **_NO_COST,
            id=f"rec-{secrets.token_urlsafe(9)}",
            source_key=f"edit-{secrets.token_urlsafe(12)}",
            kind=spec.kind,
            outcome="compressed",
            created_at=self._access.clock(),
            summary=text,
            summary_chars=len(text),
            summary_tokens=estimate_tokens(spec.label + text),
            kept_facts=kept_facts,
            missing_facts=missing_facts,
            invented_facts=tuple(fact for fact in record.invented_facts if fact in invented),
            wish="",
            edited=True,
        )
        return self._added(edited, of=record_id)

    @staticmethod
    def lacking(record: Record) -> tuple[str, ...]:
        """Returns the facts that neither a summary nor the line behind it has, weightiest first."""
        return lacking_facts(record.summary, record.missing_facts)

    @staticmethod
    def lacks_firm(record: Record) -> bool:
        """Whether a rule, a prohibition or an identifier is missing from a summary."""
        return any(fact_as_written(text).is_firm for text in Folds.lacking(record))

    @staticmethod
    def count_facts(record: Record) -> tuple[FactCount, ...]:
        """Counts by class what a summary has of its facts."""
        return count_facts([record])

    def fact_counts(self, session_id: str) -> tuple[FactCount, ...]:
        """Counts by class what all summaries in force have of their facts."""
        self._access.own(session_id)
        return count_facts(self._stores.state(session_id).active)

    @staticmethod
    def left_out_at(record: Record, rate: float) -> tuple[str, ...]:
        """Estimates which facts a summary of this rate would leave out, weightiest first."""
        return left_out_at(record, rate)

    def missing_facts(self, session_id: str, record_id: str) -> tuple[MissingFact, ...]:
        """Returns the facts that a summary lacks, weightiest first, each where the covered messages have it."""
        self._access.own(session_id)
        record = self._stores.records.get(session_id, record_id)
        lacking = self.lacking(record)
        covered = self._covered_messages(record) if lacking else []
        # What the user said precedes what an answer repeats.
        entries = [entry for role in ("human", "ai") for entry in covered if entry.message.type == role]
        return tuple(_place_of(fact, entries) for fact in lacking)

    def add_fact(self, session_id: str, record_id: str, fact: str) -> Record:
        """Adds the sentence that has a missing fact to a summary, by an `edit`, which see; of its active version.

        Returns that version as it is if the fact isn't missing from it any more.
        """
        self._access.own(session_id)
        chosen = self._stores.records.get(session_id, record_id)
        record = chosen if self._stores.records.is_prepared(chosen) else self._active_version(chosen)
        if record is None:
            raise InputError("not_active")
        missing = self.missing_facts(session_id, record.id)
        place = next((place for place in missing if place.text == fact), None)
        if place is None:
            return record
        language = self._stores.state(session_id).language
        added = place.clause
        if place.message_id:
            speaker = SPEAKER[language][place.role]
            added = TURN_QUOTE[language].format(turn=place.turn, speaker=speaker, text=added)
        text = without_question(without_line(record.summary))  # both stay the last lines
        return self.edit(session_id, record.id, f"{text}\n{added}{record.summary[len(text) :]}")

    def remake(self, session_id: str, record_id: str, *, rate: float, instruction: str = "") -> Record:
        """Has a record regenerated, as a new version that is active from the next turn on; waits for it.

        Args:
            session_id: The session.
            record_id: The record.
            rate: The share of its source to aim at, 0.1 to 0.5.
            instruction: The user's instruction for the summary, 300 characters at most.

        Raises:
            InputError: `bad_rate`, `too_long`, `not_active`, or `remake_failed`; then `detail` is the code of what went
                wrong: `summary_inflated` if no summary is shorter than its source.
            BusyError: A limit of the server is reached.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        session = self._access.own(session_id)
        rate, instruction = round_rate(rate), _checked_instruction(instruction)
        record = self._stores.records.get(session_id, record_id)
        spec = replace(self._spec(record, rate=rate), instruction=instruction, before=self._text_before(record))
        if self._active_version(record) is None and not self._stores.records.is_prepared(record):
            raise InputError("not_active")
        limiter = self._access.runner.limiter
        limiter.begin(self._access.owner)  # it costs what a turn does
        try:
            made, code = self._fold_worker.regenerate(session_id, spec, owner=self._access.owner, model=session.model)
        finally:
            limiter.end(self._access.owner)
        if made is None or made.kind == "verbatim":
            raise InputError("remake_failed", code or "summary_inflated")
        self._adopt(record)
        with self._paced(record):
            adopted = self._stores.versions.adopt(made, of=record_id)
        if adopted is None:
            raise InputError("not_active")
        return adopted

    def fold_again(self, session_id: str, record_id: str) -> Record:
        """Folds what was undone, or too short to fold, at the session's rate; raises what `remake` does."""
        return self.remake(session_id, record_id, rate=self._access.own(session_id).compression_rate)

    def undo(self, session_id: str, record_id: str) -> Record | None:
        """Replaces a record by its messages word for word; see `use_version` to take it back.

        Returns the version with the messages; None for a merge, whose sources are active again.

        Raises `InputError`: `stands_verbatim` or `not_active`.
        """
        self._access.own(session_id)
        record = self._stores.records.get(session_id, record_id)
        if record.kind == "verbatim":
            raise InputError("stands_verbatim")
        if record.kind == "merge":
            if not self._stores.versions.undo_merge(session_id, record_id):
                raise InputError("not_active")
            return None
        return self._added(self._undone(record), of=record_id)

    def _undone(self, record: Record) -> Record:
        """Returns the messages that a record covers, word for word, as another record."""
        language = self._stores.state(record.thread_id).language
        text = quote([entry.message for entry in self._covered_messages(record)], language)
        return record.with_changes(
            **_NO_COST,
            id=f"rec-{secrets.token_urlsafe(9)}",
            source_key=f"undo-{secrets.token_urlsafe(12)}",
            kind="verbatim",
            outcome="inflated",
            created_at=self._access.clock(),
            summary=text,
            summary_chars=len(text),
            summary_tokens=estimate_tokens(label_of(record.turns, language, record.days) + text),
            kept_facts=(),
            missing_facts=(),
            needed_rate=0.0,
            invented_facts=(),
            wish="",
            edited=False,
        )

    def _active_version(self, record: Record) -> Record | None:
        ids = {version.id for version in self._stores.versions.of(record.thread_id, record.id)}
        return next((each for each in self._stores.records.active(record.thread_id) if each.id in ids), None)

    def _text_before(self, record: Record) -> str:
        """Returns the summary right before a record, "" for none."""
        active = self._stores.records.active(record.thread_id)
        return next((each.summary for each in reversed(active) if each.to_position < record.from_position), "")

    def _added(self, record: Record, *, of: str) -> Record:
        before = self._stores.records.get(record.thread_id, of)
        self._adopt(before)
        with self._paced(before):
            added = self._stores.versions.add(record, owner=self._access.owner, of=of)
            if added is None:
                raise InputError("not_active")
        return added

    def _adopt(self, record: Record) -> None:
        """Adopts a finished fold before the turn that would: what the user makes of it holds whatever changes."""
        if self._stores.records.is_prepared(record):
            with self._access.between_turns(record.thread_id) as lease:
                self._stores.records.adopt(lease, record.id)

    @contextmanager
    def _paced(self, record: Record) -> Iterator[None]:
        """Changes a record; the next compaction waits once one is undone, and no longer once that is taken back."""
        session_id, database = record.thread_id, self._stores.database
        with database.writing(), database.write(session_id=session_id):
            was_undone = self._is_undone(record)
            yield
            if self._kind(record) != "compaction" or self._is_undone(record) == was_undone:
                return
            restored_tokens = 0 if was_undone else self._stores.state(session_id).tokens
            self._stores.sessions.update(session_id, self._access.owner, restored_tokens=restored_tokens)

    def _is_undone(self, record: Record) -> bool:
        """Whether a version with the messages themselves is active."""
        active = self._active_version(record)
        return active is not None and active.is_undone

    def _spec(self, record: Record, *, rate: float) -> FoldSpec:
        """Returns the fold of what a record covers."""
        session_id = record.thread_id
        with self._stores.database.reading():
            sources = [self._stores.records.get(session_id, source) for source in record.sources]
            language = self._stores.state(session_id).language
            entries = self._covered_messages(record, behind=sources)
            kind = self._kind(record)
        spec = regeneration_fold(record, sources, entries, kind=kind, rate=rate, language=language)
        spec = replace(spec, days=record.days)  # a version has the label of the first
        return replace(spec, ledger=()) if record.ledger else spec

    def _covered_messages(self, record: Record, *, behind: Sequence[Record] = ()) -> list[ArchivedMessage]:
        """Returns the live messages that a record covers after these of its sources."""
        first = behind[-1].to_position + 1 if behind else record.from_position
        return self._stores.archive.live_within(record.thread_id, [(first, record.to_position)])

    def _kind(self, record: Record) -> RecordKind:
        """Returns what a record was before it was undone."""
        kinds = (version.kind for version in self._stores.versions.of(record.thread_id, record.id))
        return next((kind for kind in (record.kind, *kinds) if kind != "verbatim"), "interval")

    # Messages are pinned, also while a turn runs.

    def pins(self, session_id: str) -> PinView:
        """Returns the pinned messages since the last reset, and how much room there is for them."""
        session = self._access.own(session_id)
        with self._stores.database.reading():
            return self._pin_view(session)

    def pin(self, session_id: str, message_id: str) -> PinView:
        """Has a message sent word for word from the next turn on, even once folded, until a reset. Idempotent.

        Raises:
            InputError: `empty` (no text, or of a tool), `before_reset` or `pin_budget`, whose `detail`
                is the tokens of the message > those left.
            NotFoundError: There is no such message in the last attempt of its turn.
        """
        session = self._access.own(session_id)
        database = self._stores.database
        # Nobody else pins meanwhile, so what is left of the budget stays true.
        with database.writing(), database.write(session_id=session_id):
            view, entry = self._pin_view(session), self._live_message(session_id, message_id)
            if any(pinned.message_id == message_id for pinned in view.messages):
                return view
            pin = pin_of(entry)
            if pin.role not in ("human", "ai") or not has_visible(pin.text):
                raise InputError("empty")
            if pin.position <= session.context_from_position:
                raise InputError("before_reset")
            left_tokens = max(0, view.budget_tokens - view.used_tokens)
            tokens = pin.tokens(self._stores.state(session_id).language)
            if tokens > left_tokens:
                raise InputError("pin_budget", f"{tokens} > {left_tokens}")
            self._stores.pins.add(session_id, message_id, owner=self._access.owner)
            return self._pin_view(session)

    def unpin(self, session_id: str, message_id: str) -> PinView:
        """Takes `pin` back; idempotent."""
        self._access.own(session_id)
        self._stores.pins.remove(session_id, message_id)
        return self.pins(session_id)

    # Lines of the ledger are struck out and restored, also while a turn runs.

    def ledger(self, session_id: str) -> LedgerView:
        """Returns the lines that the user's folded turns keep word for word, also those that aren't sent."""
        session = self._access.own(session_id)
        with self._stores.database.reading():
            return self._ledger_view(session)

    def strike(self, session_id: str, line_id: str, *, is_struck: bool = True) -> LedgerView:
        """Strikes a line out, from the next turn on, or restores it, also one that a later sentence took back.

        Idempotent. Raises `NotFoundError` if no record in force has the line.
        """
        session = self._access.own(session_id)
        with self._stores.database.writing(), self._stores.database.write(session_id=session_id):
            if all(line.id != line_id for line in self._ledger_view(session).lines):
                raise NotFoundError(line_id)
            strikes = self._stores.state(session_id).row.strikes | {line_id: is_struck}
            struck = tuple(name if is_out else f"+{name}" for name, is_out in strikes.items())
            self._stores.sessions.update(session_id, self._access.owner, struck=struck)
            return self._ledger_view(replace(session, struck=struck))

    def _ledger_view(self, session: SessionRow) -> LedgerView:
        state = self._stores.state(session.session_id)
        language, budget = state.language, ledger_tokens(self._input_tokens(session))
        history = [to_entry(record) for record in state.active]
        held = standing(lines_of(history), session.strikes)
        sent = with_room(held, budget, language)
        said = [LedgerLine(*line) for entry in history for line in entry.get("ledger", ())]
        lifted = {line.text for line in said if line.kind == "lifted"}
        # A record that stands word for word says its lines itself.
        verbatim = [line for line in said if line not in lines_of(history)]

        def state_of(line: LedgerLine) -> Literal["sent", "no_room", "struck", "taken_back"]:
            if session.strikes.get(line.id):
                return "struck"
            if line.id in lifted and line.id not in session.strikes:
                return "taken_back"
            return "sent" if line in sent or line in verbatim else "no_room"

        shown = {line.text: line for line in reversed(said) if line.kind != "lifted"}
        lines = tuple(KeptLine(line.id, *line, state_of(line)) for line in reversed(shown.values()))
        return LedgerView(lines, budget, sum(line_tokens(line, language) for line in sent))

    def _input_tokens(self, session: SessionRow) -> int:
        # Not `input_tokens` of the models: that may wait for the endpoint's list.
        window = self._models.window_tokens(session.model or self._models.default_name)
        return int(window * self._settings.guard_share)

    def _live_message(self, session_id: str, message_id: str) -> ArchivedMessage:
        turn = self._stores.archive.get(session_id, message_id).turn
        entries = self._stores.archive.live_turns(session_id, turn, turn)
        found = next((entry for entry in entries if entry.message.id == message_id), None)
        if found is None:  # of an earlier attempt
            raise NotFoundError(message_id)
        return found

    def _pin_view(self, session: SessionRow) -> PinView:
        state = self._stores.state(session.session_id)
        language, pins = state.language, state.pins
        budget = budget_tokens(self._input_tokens(session))
        sent = fitting(pins, budget, language)
        messages = tuple(
            PinnedMessage(pin.message_id, pin.turn, pin.tokens(language), title_of(pin.text), is_sent=pin in sent)
            for pin in pins
        )
        return PinView(messages, budget, sum(message.tokens for message in messages))


def _totals(sums: RecordSums) -> dict[str, int]:
    return {
        "record_count": sums.record_count,
        "folded_turn_count": sums.folded_turn_count,
        "original_chars": sums.original_chars,
        "summary_chars": sums.summary_chars,
        "saved_percent": round(100 * (1 - sums.summary_chars / sums.original_chars)) if sums.original_chars else 0,
        "fold_tokens": sums.input_tokens + sums.output_tokens,
    }


def _checked_instruction(instruction: str) -> str:
    instruction = plain_text(instruction).strip()
    if len(instruction) > MOST_INSTRUCTION_CHARS:
        raise InputError("too_long", f"{len(instruction)} > {MOST_INSTRUCTION_CHARS}")
    return instruction


def _place_of(fact: str, entries: Sequence[ArchivedMessage]) -> MissingFact:
    """Returns a fact with the first sentence that has it; as it is if none has."""
    written = " ".join(fact.split())
    found = [
        (entry, sentence)
        for entry in entries
        for sentence in split_sentences(text_of(entry.message))
        if written in sentence
    ]
    if not found:
        return MissingFact(fact, fact)
    # A sentence may have "16" in "116" alone.
    whole = (place for place in found if any(each.text == fact for each in facts_in(place[1])))
    entry, sentence = next(whole, found[0])
    return MissingFact(fact, _clause(sentence, written), entry.turn, entry.message.type, str(entry.message.id))


def _clause(sentence: str, fact: str) -> str:
    """Returns a sentence; of a long one the part that has the fact, or the fact alone."""
    parts = wrap(sentence, _MOST_CLAUSE_CHARS, break_long_words=False, break_on_hyphens=False)
    return next((part for part in parts if fact in part), fact)
