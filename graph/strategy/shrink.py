"""Ways to shrink a model input that exceeds the guard's limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.extract import extract_summary
from graph.core.fold_spec import FoldSpec, fold_of
from graph.core.model_input import KEPT_CHARS, SHORTENED
from graph.core.review import label_of
from graph.core.snapshot import SessionSnapshot
from graph.core.token import estimate_tokens
from graph.core.turn import is_complete, split_turns, text_of
from graph.record import ArchivedMessage, HistoryEntry, Record
from graph.strategy.compaction import context_tokens, message_count
from graph.strategy.merge import merge_fold, merge_for_room, raw_stretches, unbroken
from prompt.system.framing import SHORTENED_NOTE, note_cut

_LEAST_SHARE: Final = 10
_GOOD_SHARE: Final = 4
_VERBATIM_SHARE: Final = 0.3
_MIN_RESULT_CHARS: Final = 200
_NOTE_TOKENS: Final = 40


def guard_fold(
    snapshot: SessionSnapshot, sizes: Mapping[str, int], excess_tokens: int, *, merged_tokens: int, least_tokens: int
) -> FoldSpec | None:
    """Returns the next fold that makes an input smaller by what it's too large; None if none does.

    The newest exchanges matter most for what is asked now: records are merged before a raw turn is folded. Then the
    oldest raw turns go, as few as do, together with the records if more would have to go without them.

    Args:
        snapshot: The session's snapshot.
        sizes: The tokens of each block of the input by its id: records and messages.
        excess_tokens: By how much the input is too large.
        merged_tokens: The most that a merged record may be.
        least_tokens: The least that a record must be allowed to say anything.
    """
    gentle = merge_for_room(snapshot, excess_tokens, merged_tokens=merged_tokens, sizes=sizes)
    if gentle is not None:
        return gentle
    active, stretches = snapshot.active, raw_stretches(snapshot)
    is_whole = len(unbroken(active, snapshot.raw)) == 1
    record_tokens = sum(sizes.get(record.id, 0) for record in active)
    if is_whole and (left := record_tokens - excess_tokens) >= max(least_tokens, record_tokens // _LEAST_SHARE):
        return merge_fold(active, snapshot.rate, min(left, record_tokens // 2))
    if not stretches:
        return None
    # Records take part in a fold of raw turns if they end where these begin.
    old = active if is_whole and active[-1].to_position < stretches[0][0].position else ()
    covered: list[ArchivedMessage] = []
    for _, turn in groupby(stretches[0], key=lambda entry: entry.turn):
        covered += turn
        freed_tokens = sum(sizes.get(str(entry.message.id), 0) for entry in covered)
        if (left := freed_tokens - excess_tokens) >= max(least_tokens, freed_tokens // _GOOD_SHARE):
            return _raw_fold(snapshot, (), covered, left)
        source_tokens = freed_tokens + (record_tokens if old else 0)
        if (left := source_tokens - excess_tokens) >= max(least_tokens, source_tokens // _LEAST_SHARE):
            return _raw_fold(snapshot, old, covered, left)
    return _raw_fold(snapshot, old, covered, least_tokens)


def _raw_fold(
    snapshot: SessionSnapshot, old: Sequence[Record], covered: Sequence[ArchivedMessage], max_tokens: int
) -> FoldSpec:
    """Returns the fold of these records and the raw messages behind them into one, at most half of what they are."""
    spec = fold_of(old, covered, kind="compaction", rate=snapshot.rate, style="rolling")
    max_tokens = max(1, min(max_tokens, spec.source_tokens // 2))
    return replace(
        spec,
        target_chars=max(1, int(max_tokens * spec.source_chars / max(1, spec.source_tokens))),
        context_messages=message_count(snapshot),
        context_messages_after=len(snapshot.complete_raw) - len(covered) + 1,
        context_tokens=context_tokens(snapshot),
        is_bound=True,
        max_tokens=max_tokens,
    )


def shorten_verbatim(history: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """Returns the history with word-for-word records as short summaries, for one call; each says that it is one."""
    return [_shortened(entry) if entry["kind"] == "verbatim" else entry for entry in history]


def _shortened(entry: HistoryEntry) -> HistoryEntry:
    picked = extract_summary([HumanMessage(entry["summary"])], int(len(entry["summary"]) * _VERBATIM_SHARE))
    text = f"{SHORTENED_NOTE} {picked}"
    tokens = estimate_tokens(label_of(entry["turns"]) + text)
    if tokens >= entry["summary_tokens"]:
        return entry
    return {**entry, "kind": SHORTENED, "summary": text, "summary_tokens": tokens}


def without_oldest(
    history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]
) -> tuple[list[HistoryEntry], list[AnyMessage]] | None:
    """Returns the input without its oldest record, or its oldest complete turn; None if only an open turn is left."""
    if history:
        return list(history[1:]), list(messages)
    turns = split_turns(messages)
    if not turns or not is_complete(turns[0]):
        return None
    return [], [message for turn in turns[1:] for message in turn]


def cut_results(messages: Sequence[AnyMessage], excess_tokens: int) -> list[AnyMessage]:
    """Cuts tool results, the longest first, until about that many tokens are saved; each says how much is missing."""
    cut = list(messages)
    longest_first = sorted(
        (index for index, message in enumerate(cut) if isinstance(message, ToolMessage)),
        key=lambda index: len(text_of(cut[index])),
        reverse=True,
    )
    for index in longest_first:
        if excess_tokens <= 0:
            break
        text = text_of(cut[index])
        tokens = estimate_tokens(text)
        share = max(0.0, 1 - (excess_tokens + _NOTE_TOKENS) / max(1, tokens))
        keep = max(_MIN_RESULT_CHARS, int(len(text) * share))
        if keep >= len(text):
            continue
        shorter = note_cut(text, keep, why="fit the window")
        marked = {**cut[index].additional_kwargs, KEPT_CHARS: keep}
        cut[index] = cut[index].model_copy(update={"content": shorter, "additional_kwargs": marked})
        excess_tokens -= tokens - estimate_tokens(shorter)
    return cut
