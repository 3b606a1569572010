"""Runs Turnfold's strategies over a script, on the product's pure parts and an archive in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from langchain_core.messages import AnyMessage

from bench.context.measure import Meter
from bench.context.script import ScriptedTurn
from graph.core.model_input import system_part
from graph.core.snapshot import SessionSnapshot
from graph.core.text import measure
from graph.fold.extract import extract_summary
from graph.fold.record import begin_record, end_record, source_of
from graph.fold.request import messages_behind, requests_for
from graph.fold.review import Flaw, SummaryDraft, flaw_of
from graph.fold.spec import FoldSpec
from graph.strategy.base import Strategy
from graph.value.record import ArchivedMessage, Record, to_entry

_BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
_TRIES: Final = 2
_SOURCE_TOKENS: Final = 1_000_000

OnInput = Callable[[int, str], None]


class OurRun:
    """One session under one strategy. Folds are made and adopted at the start of the next turn."""

    def __init__(self, strategy: Strategy, *, rate: float = 0.3) -> None:
        self.meter = Meter()
        self.active: list[Record] = []
        self.first_turn_merges = 0
        self._strategy = strategy
        self._rate = rate
        self._archive: list[ArchivedMessage] = []
        self._system = system_part("ko", can_recall=strategy.sends_records)
        self._made = 0

    def play(self, script: Sequence[ScriptedTurn], on_input: OnInput) -> None:
        """Runs the whole chat; calls `on_input` with each turn's last input."""
        for turn in script:
            began = time.perf_counter()
            for spec in self._strategy.due_folds(self.snapshot(turn.number - 1)):
                self._fold(spec)
            history = [to_entry(record) for record in self.active]
            self.meter.seconds += time.perf_counter() - began
            self._say(turn, turn.messages[0])
            for reply in turn.messages[1:]:
                if reply.type == "ai":
                    began = time.perf_counter()
                    built = self._strategy.assemble(self._system, history, self._working(turn))
                    self.meter.seconds += time.perf_counter() - began
                    text = self.meter.call(turn.number, built.messages, reply)
                self._say(turn, reply)
            self.meter.end_turn()
            on_input(turn.number, text)

    def snapshot(self, complete_turns: int) -> SessionSnapshot:
        """Returns the session's snapshot."""
        covered_to = self.active[-1].to_position if self.active else 0
        return SessionSnapshot(complete_turns, tuple(self.active), self._archive[covered_to:], self._rate)

    def _working(self, turn: ScriptedTurn) -> list[AnyMessage]:
        """Returns the messages that the product would send: the working set, or the last whole turns."""
        if self._strategy.whole_turns is None:
            return [entry.message for entry in self.snapshot(turn.number - 1).raw]
        first = turn.number - self._strategy.whole_turns
        newest = self._archive[-4 * (self._strategy.whole_turns + 1) :]
        return [entry.message for entry in newest if entry.turn >= first]

    def _say(self, turn: ScriptedTurn, message: AnyMessage) -> None:
        chars, tokens = measure(message)
        self._archive.append(
            ArchivedMessage(len(self._archive) + 1, turn.number, 1, message, chars, tokens, _BEGINNING)
        )

    def _fold(self, spec: FoldSpec) -> None:
        """Makes, reviews and adopts one fold as the product does; a rejected one is tried again on the next turn.

        The summariser writes as much as it's asked for.
        """
        source = source_of(spec, is_quoted=True)
        drafts: list[SummaryDraft] = []
        flaw: Flaw | None = None
        for _ in range(_TRIES):
            requests = list(requests_for(spec.messages, spec.target_chars, spec.asked, _SOURCE_TOKENS))
            draft = extract_summary(spec.messages, sum(request.aim_chars for request in requests))
            for place, request in enumerate(requests):
                behind = [] if flaw is None else messages_behind(request, place, drafts[-1], flaw)
                self.meter.summary("\n".join(message.text for message in [*request.messages, *behind]), draft)
            drafts.append(SummaryDraft(draft, 0, 0, is_usage=False))
            flaw = flaw_of(drafts[-1], source)
            if flaw is None:
                break
        self._made += 1
        begun = begin_record("bench", spec, model="extractive", source_key=str(self._made), created_at=_BEGINNING)
        record = end_record(begun, source, drafts, "", seconds=0.0)
        if record.status == "COMPLETED":
            self.first_turn_merges += spec.kind == "merge" and 1 in spec.turns
            kept = [old for old in self.active if old.id not in spec.sources]
            self.active = sorted([*kept, record], key=lambda entry: entry.from_position)
