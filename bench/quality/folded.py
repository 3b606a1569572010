"""Folds a whole conversation as the default strategy does, without a model, and says what the input then has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from langchain_core.messages import AnyMessage

from graph.core.language import split_sentences
from graph.core.ledger import standing
from graph.core.model_input import line_of, placed_in, system_part
from graph.core.snapshot import SessionSnapshot
from graph.core.text import measure
from graph.core.turn import split_turns, text_of
from graph.fold.extract import TermCounts, count_terms
from graph.fold.record import begin_record, end_record, end_verbatim
from graph.fold.review import facts_to_name
from graph.fold.spec import BLOCK_TURNS, FoldSpec
from graph.model.summariser import ExtractiveSummariser
from graph.strategy.base import Limits
from graph.strategy.interval import IntervalStrategy
from graph.value.record import ArchivedMessage, LedgerLine, Record, to_entry
from prompt.system.framing import Language

_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


class Part(NamedTuple):
    """A record or a line of the ledger in the input: its turns and its sentences."""

    turns: tuple[int, ...]
    sentences: tuple[str, ...]
    is_ledger: bool


@dataclass(frozen=True)
class Folded:
    """A conversation of which all complete blocks are folded.

    Attributes:
        specs: Each fold, with the ledger as it stood before.
        parts: What the next input has of it, in order.
    """

    specs: tuple[FoldSpec, ...]
    parts: tuple[Part, ...]

    @property
    def sentences(self) -> list[str]:
        return [sentence for part in self.parts for sentence in part.sentences]

    @property
    def named(self) -> list[str]:
        """What the requests name to a model that writes the summaries, and the ledger that stands beside them."""
        blocks = [spec for spec in self.specs if not spec.is_merge]
        facts = (facts_to_name(each.messages, each.asked_chars, each.language, has_ledger=True) for each in blocks)
        kept = [sentence for part in self.parts if part.is_ledger for sentence in part.sentences]
        return [*kept, *(fact.text for found in facts for fact in found)]


def folded(messages: Sequence[AnyMessage], rate: float, language: Language) -> Folded:
    """Folds every three turns when they are complete, knowing only what had been said by then."""
    snapshot = SessionSnapshot(0, (), (), rate, language=language)
    strategy, counts, position = IntervalStrategy(Limits()), TermCounts(0, {}), 0
    specs: list[FoldSpec] = []
    for number, turn in enumerate(split_turns(messages), start=1):
        new = [
            ArchivedMessage(at, number, 1, message.model_copy(update={"id": str(at)}), *measure(message), _MOMENT)
            for at, message in enumerate(turn, start=position + 1)
        ]
        position += len(turn)
        counts = count_terms(map(text_of, turn), counts)
        snapshot = replace(snapshot, complete_turns=number, raw=[*snapshot.raw, *new])
        if number % BLOCK_TURNS:
            continue
        for due in strategy.due_folds(snapshot):
            spec = _with_ledger(due, snapshot.active)
            record = _record(spec, counts)
            if record.status == "COMPLETED":
                snapshot = snapshot.adopting(record)
                specs.append(spec)
    placed = placed_in(system_part(language, can_recall=True), [to_entry(record) for record in snapshot.active], ())
    return Folded(
        tuple(specs),
        tuple(
            Part((each.turn,), (line_of(each, language),), is_ledger=True)
            if isinstance(each, LedgerLine)
            else Part(tuple(each["turns"]), tuple(split_sentences(each["summary"])), is_ledger=False)
            for each in placed
            if isinstance(each, LedgerLine | dict)
        ),
    )


def _with_ledger(spec: FoldSpec, active: Sequence[Record]) -> FoldSpec:
    before = [record for record in active if record.to_position < spec.from_position]
    lines = [line for record in before for line in record.ledger]
    return replace(spec, ledger=tuple(standing(lines, {})), context="\n".join(record.summary for record in active))


def _record(spec: FoldSpec, counts: TermCounts) -> Record:
    started = begin_record("bench", spec, model="extractive", source_key="", created_at=_MOMENT)
    if spec.stands_verbatim:
        return end_verbatim(started, spec)
    draft = ExtractiveSummariser().summarise(spec.messages, spec.asked_chars, counts=counts)
    return end_record(started, spec, [draft], "", seconds=0.0)
