"""When old records become one of the next level, so that the input stays bounded; sends nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from langchain_core.messages import HumanMessage

from graph.core.fold_spec import FoldSpec, fold_of
from graph.core.review import label_of
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import text_of
from graph.record import ArchivedMessage, Record
from graph.strategy.base import Limits

# Without this cap, merging short records would hardly shrink them, and the input would grow by levels.
_MERGED_SHARE: Final = 0.28


def due_merge(
    active: Sequence[Record], rate: float, limits: Limits, raw: Sequence[ArchivedMessage] = ()
) -> FoldSpec | None:
    """Returns the one merge that is due: the oldest 8 records of one level, or None.

    The newest 16 records are never merged. A turn is re-summarised once a level, so at most log8(records) times.

    Args:
        active: The records in force, oldest first.
        rate: The compression rate in force now; the merge only keeps it, its length comes from the budget.
        limits: The budget and how many become one.
        raw: The messages that no record covers; records with one of these between them aren't merged.
    """
    if sum(record.summary_tokens for record in active) <= limits.records_budget_tokens:
        return None
    old = active[: max(0, len(active) - limits.newest_records)]
    # The lowest level first: its records are the largest and the most.
    due = next((run for run in _runs(old, raw) if len(run) >= limits.merged_together), None)
    if due is None:
        return None
    sources = due[: limits.merged_together]
    share_tokens = int(sum(record.summary_tokens for record in sources) * _MERGED_SHARE)
    return merge_fold(sources, rate, min(limits.merged_tokens, max(1, share_tokens)))


def merge_for_room(
    snapshot: SessionSnapshot,
    excess_tokens: int,
    *,
    merged_tokens: int,
    sizes: Mapping[str, int] | None = None,
) -> FoldSpec | None:
    """Returns the merge that makes so much room and says the most; None if none does.

    Two records or more of one level first, the lowest level and the oldest records before the others; then all
    levels together. So a turn is re-summarised a few times at most, however small the window is.

    Args:
        snapshot: The session's snapshot.
        excess_tokens: By how much the input is too large.
        merged_tokens: The most that a merged record may be.
        sizes: What the records take in the input, by their ids, where that isn't what they take by themselves.
    """
    for group in _groups(snapshot):
        for count in range(2, len(group) + 1):
            sources = group[:count]
            tokens = sum((sizes or {}).get(record.id, record.summary_tokens) for record in sources)
            size = min(merged_tokens, tokens // 2)
            if tokens - size >= excess_tokens:
                return merge_fold(sources, snapshot.rate, size)
    return None


def unbroken(active: Sequence[Record], raw: Sequence[ArchivedMessage]) -> list[list[Record]]:
    """Splits the records where a message that none of them covers lies between two."""
    positions = [entry.position for entry in raw]
    stretches: list[list[Record]] = []
    for record in active:
        last = stretches[-1][-1] if stretches else None
        if last is None or any(last.to_position < position < record.from_position for position in positions):
            stretches.append([])
        stretches[-1].append(record)
    return stretches


def raw_stretches(snapshot: SessionSnapshot) -> list[list[ArchivedMessage]]:
    """Splits the raw messages of complete turns where a record in force lies between two; none is empty."""
    begins = [record.from_position for record in snapshot.active]
    stretches: list[list[ArchivedMessage]] = []
    for entry in snapshot.complete_raw:
        last = stretches[-1][-1] if stretches else None
        if last is None or any(last.position < begin < entry.position for begin in begins):
            stretches.append([])
        stretches[-1].append(entry)
    return stretches


def _runs(active: Sequence[Record], raw: Sequence[ArchivedMessage]) -> list[list[Record]]:
    """Returns the runs of records of one level, the lowest level first, of one level the oldest."""
    stretches = unbroken(active, raw)
    runs = [list(run) for stretch in stretches for _, run in groupby(stretch, key=lambda record: record.level)]
    return sorted(runs, key=lambda run: run[0].level)


def _groups(snapshot: SessionSnapshot) -> Iterator[Sequence[Record]]:
    for old in (snapshot.active[:-1], snapshot.active):
        yield from _runs(old, snapshot.raw)
        yield from unbroken(old, snapshot.raw)


def merge_fold(sources: Sequence[Record], rate: float, max_tokens: int) -> FoldSpec:
    """Returns the fold of these records, which follow each other, into one of the next level.

    Args:
        sources: The records, oldest first.
        rate: The compression rate in force now.
        max_tokens: Hard bound on the result.
    """
    messages = tuple(HumanMessage(label_of(record.turns) + record.summary) for record in sources)
    spec = replace(
        fold_of(sources, (), kind="merge", rate=rate, style="merge"),
        messages=messages,
        source_ids=tuple(record.id for record in sources),
        source_chars=sum(len(text_of(message)) for message in messages),
        level=max(record.level for record in sources) + 1,
        until_message_id=sources[-1].covered_until_message_id,
        is_waited=False,
    )
    return spec.bounded(max_tokens)
