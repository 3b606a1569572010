"""Merges old records into one of the next level, so that the input stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, TypeVar

from langchain_core.messages import HumanMessage

from graph.core.open_question import without_answered, without_question
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens, sum_tokens
from graph.core.turn import label_of, text_of
from graph.fold.fact_line import carried_line, without_line
from graph.fold.spec import BLOCK_TURNS, FoldSpec, fold_of
from graph.strategy.base import Limits
from graph.value.record import ArchivedMessage, Record, to_entry
from prompt.system.framing import Language

# Of the sources; what is merged is half of them at most.
_MERGED_SHARE: Final = 0.35
_TURN_CHARS: Final = 40
# Models that keep everything exactly write more than requested, and the line must still fit.
_TEXT_SHARE: Final = 0.85
_T = TypeVar("_T", Record, ArchivedMessage)


def due_merge(
    active: Sequence[Record],
    rate: float,
    limits: Limits,
    raw: Sequence[ArchivedMessage] = (),
    *,
    language: Language,
    undone: Collection[tuple[int, int]] = (),
) -> FoldSpec | None:
    """Returns the due merge: the oldest 8 records of a level, or None.

    The newest 16 records are never merged. A turn is summarised again once per level, so at most log8(records) times.
    Records with an uncovered message of `raw` between them aren't merged, nor are those that the user undid (`undone`
    has the positions of undone merges). The length follows from the sources and the budget, not from `rate`.
    """
    sent = without_answered([to_entry(record) for record in active], language)
    if sum(entry["summary_tokens"] for entry in sent) <= limits.records_budget_tokens:
        return None
    old = active[: len(active) - _first(active[::-1], limits.newest_records + 1) + 1]
    apart = [record for record in old if record.is_undone or _is_within(record, undone)]
    # The lowest level first: its records are the largest and the most.
    together = limits.merged_together
    due = next((run for run in _runs(old, raw, apart) if sum(map(_blocks_of, run)) >= together), None)
    if due is None:
        return None
    sources = due[: _first(due, together)]
    tokens = sum(record.summary_tokens for record in sources)
    bound_tokens = _bound_tokens(tokens, limits.merged_tokens)
    if sources[0].level:
        bound_tokens = min(bound_tokens, limits.merged_tokens)  # or the input would grow with every level
    return merge_fold(sources, rate, max(1, bound_tokens), language, is_newest=sources[-1] is active[-1])


def _blocks_of(record: Record) -> int:
    """Returns how many records of one block a record stands for: two where both were folded by one call."""
    return max(1, len(record.turns) // BLOCK_TURNS) if record.kind == "interval" else 1


def _first(records: Sequence[Record], blocks: int) -> int:
    """Returns how many of the first records stand for so many blocks; one more than there are if all don't."""
    for count, record in enumerate(records, start=1):
        blocks -= _blocks_of(record)
        if blocks <= 0:
            return count
    return len(records) + 1


def _bound_tokens(tokens: int, merged_tokens: int) -> int:
    """Returns the upper bound on a merge: `merged_tokens` or 35 % of its sources' tokens, half of them at most."""
    return min(tokens // 2, max(merged_tokens, int(tokens * _MERGED_SHARE)))


def _is_within(record: Record, ranges: Collection[tuple[int, int]]) -> bool:
    return any(first <= record.from_position and record.to_position <= last for first, last in ranges)


def merge_for_room(
    snapshot: SessionSnapshot,
    excess_tokens: int,
    *,
    merged_tokens: int,
    sizes: Mapping[str, int] | None = None,
) -> FoldSpec | None:
    """Returns the smallest merge that frees enough tokens; None if none does.

    Records of one level are tried first, from the lowest level and the oldest records on, then records of all levels
    together: so a turn is summarised again a few times at most. `sizes` has the records' tokens in the input by id,
    where they differ from `summary_tokens`. Where the room requires it, the bound is `merged_tokens` only.
    """
    for group in _groups(snapshot):
        for count in range(2, len(group) + 1):
            sources = group[:count]
            tokens = sum((sizes or {}).get(record.id, record.summary_tokens) for record in sources)
            least = min(merged_tokens, tokens // 2)
            size = max(least, min(_bound_tokens(tokens, merged_tokens), tokens - excess_tokens))
            if tokens - size >= excess_tokens:
                is_newest = sources[-1] is snapshot.active[-1]
                return merge_fold(sources, snapshot.rate, size, snapshot.language, is_newest=is_newest)
    return None


def unbroken(
    active: Sequence[Record], raw: Sequence[ArchivedMessage], apart: Sequence[Record] = ()
) -> list[list[Record]]:
    """Splits the records wherever an uncovered message or an excluded record lies between two of them."""
    positions = [*(entry.position for entry in raw), *(record.from_position for record in apart)]
    return _split(
        [record for record in active if record not in apart],
        lambda last, record: any(last.to_position < position < record.from_position for position in positions),
    )


def raw_stretches(snapshot: SessionSnapshot) -> list[list[ArchivedMessage]]:
    """Splits the raw messages of complete turns where an active record lies between two; no stretch is empty."""
    begins = [record.from_position for record in snapshot.active]
    return _split(
        snapshot.complete_raw, lambda last, entry: any(last.position < begin < entry.position for begin in begins)
    )


def _split(entries: Sequence[_T], is_gap: Callable[[_T, _T], bool]) -> list[list[_T]]:
    stretches: list[list[_T]] = []
    for entry in entries:
        if not stretches or is_gap(stretches[-1][-1], entry):
            stretches.append([])
        stretches[-1].append(entry)
    return stretches


def _runs(active: Sequence[Record], raw: Sequence[ArchivedMessage], apart: Sequence[Record] = ()) -> list[list[Record]]:
    stretches = unbroken(active, raw, apart)
    runs = [list(run) for stretch in stretches for _, run in groupby(stretch, key=lambda record: record.level)]
    return sorted(runs, key=lambda run: run[0].level)


def _groups(snapshot: SessionSnapshot) -> Iterator[Sequence[Record]]:
    """Yields the groups that may be merged in order of preference; groups with the newest record come last."""
    for old in (snapshot.active[:-1], snapshot.active):
        yield from _runs(old, snapshot.raw)
        yield from unbroken(old, snapshot.raw)


def merge_fold(
    sources: Sequence[Record], rate: float, max_tokens: int, language: Language, *, is_newest: bool = True
) -> FoldSpec:
    """Returns the fold of adjacent records, oldest first, into one of the next level with at most `max_tokens`.

    Their lines of facts aren't condensed but carried on; the target of the text is the rest of the bound, and at least
    40 characters a turn if the bound has room for them. Questions that later records answer aren't read: with
    `is_newest`, the last source has none behind it.
    """
    last = sources[-1]
    answered = sources[:-1] if is_newest else sources
    read = [record.with_changes(summary=without_question(record.summary)) for record in answered]
    read += [last] if is_newest else []
    labels = [label_of(record.turns, language, record.days) for record in sources]
    messages = tuple(
        HumanMessage(label + without_line(record.summary)) for label, record in zip(labels, read, strict=True)
    )
    spec = fold_of(read, (), kind="merge", rate=rate, language=language, style="merge")
    spec = replace(
        spec,
        messages=messages,
        message_turns=(),
        source_ids=tuple(record.id for record in sources),
        source_chars=sum(len(text_of(message)) for message in messages),
        source_tokens=sum_tokens(messages),
        level=max(record.level for record in sources) + 1,
        until_message_id=last.covered_until_message_id,
        is_waited=False,
    )
    line = carried_line(spec.carried, language, max_tokens, level=spec.level)
    room_tokens = max_tokens - estimate_tokens(line)
    most, usual = (spec.bounded(max(1, int(room_tokens * share))) for share in (1, _TEXT_SHARE))
    return replace(
        usual,
        target_chars=min(most.target_chars, max(usual.target_chars, _TURN_CHARS * len(spec.turns))),
        max_tokens=max_tokens,
        source_chars=sum(len(label + record.summary) for label, record in zip(labels, sources, strict=True)),
        source_tokens=sum(record.summary_tokens for record in sources),
    )
