"""Runs Turnfold's strategies over a script, on the product's pure parts and an archive in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from langchain_core.messages import AnyMessage

from bench.context.measure import Meter
from bench.context.script import ScriptedTurn
from graph.core.extract import extract_summary
from graph.core.fold_record import source_of
from graph.core.fold_spec import FoldSpec
from graph.core.model_input import system_part
from graph.core.review import Flaw, SummaryDraft, flaw_of, label_of, review_drafts
from graph.core.snapshot import SessionSnapshot
from graph.core.summary_request import messages_behind, requests_for
from graph.core.token import estimate_tokens, measure
from graph.record import ArchivedMessage, Record, to_entry
from graph.strategy.base import Strategy

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
        """Makes, reviews and adopts one fold as the product does; a rejected one is tried again on the next turn."""
        source = source_of(spec, is_quoted=True)
        drafts: list[SummaryDraft] = []
        flaw: Flaw | None = None
        for _ in range(_TRIES):
            draft = extract_summary(spec.messages, spec.target_chars)
            for request in requests_for(spec.messages, spec.target_chars, spec.asked, _SOURCE_TOKENS):
                behind = [] if flaw is None else messages_behind(request, 0, drafts[-1], flaw)
                self.meter.summary("\n".join(message.text for message in [*request.messages, *behind]), draft)
            drafts.append(SummaryDraft(draft, 0, 0, is_usage=False))
            flaw = flaw_of(drafts[-1], source)
            if flaw is None:
                break
        review = review_drafts(drafts, source)
        if review.text:
            self._adopt(spec, review.text, is_verbatim=review.is_verbatim)

    def _adopt(self, spec: FoldSpec, text: str, *, is_verbatim: bool) -> None:
        self._made += 1
        self.first_turn_merges += spec.kind == "merge" and 1 in spec.turns
        record = Record(
            id=f"r{self._made}",
            thread_id="bench",
            turns=spec.turns,
            turn_length=len(spec.turns),
            original_chars=spec.original_chars,
            summary_chars=len(text),
            compression_rate=spec.rate,
            summary=text,
            kind="verbatim" if is_verbatim else spec.kind,
            level=spec.level,
            from_position=spec.from_position,
            to_position=spec.to_position,
            status="COMPLETED",
            outcome="compressed",
            created_at=_BEGINNING,
            model="extractive",
            target_chars=spec.target_chars,
            source_key="",
            source_tokens=spec.source_tokens,
            summary_tokens=estimate_tokens(label_of(spec.turns, spec.language) + text),
            sources=spec.sources,
            version=spec.version,
        )
        gone = set(spec.sources)
        kept = [old for old in self.active if old.id not in gone]
        self.active = sorted([*kept, record], key=lambda entry: entry.from_position)
