"""Ways to shrink a model input that exceeds the guard's limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.model_input import KEPT_CHARS, SHORTENED, WHOLE_CHARS, History, Messages
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens
from graph.core.turn import extract_current_turn, is_complete, label_of, split_turns, text_of
from graph.fold.extract import extract_summary
from graph.fold.spec import FoldSpec, fold_of
from graph.strategy.merge import merge_fold, merge_for_room, raw_stretches, unbroken
from graph.value.record import ArchivedMessage, HistoryEntry, Record
from prompt.system.framing import SHORTENED_NOTE, Language, note_cut

_LEAST_SHARE: Final = 10
_GOOD_SHARE: Final = 4
_VERBATIM_SHARE: Final = 0.3
_MIN_RESULT_CHARS: Final = 200
_NOTE_TOKENS: Final = 40
_LEAST_ROUNDS: Final = 2


def guard_fold(
    snapshot: SessionSnapshot, sizes: Mapping[str, int], excess_tokens: int, *, merged_tokens: int, least_tokens: int
) -> FoldSpec | None:
    """Returns the next fold to remove the excess from an input; None if there is nothing to fold.

    Records are merged before a raw turn is folded, as the newest exchanges matter most for the current question. Then
    the fewest oldest raw turns that suffice are folded, together with the records if that leaves more turns raw.
    `least_tokens` is the smallest useful bound on a record.
    """
    gentle = merge_for_room(snapshot, excess_tokens, merged_tokens=merged_tokens, sizes=sizes)
    if gentle is not None:
        return gentle
    active, stretches = snapshot.active, raw_stretches(snapshot)
    is_whole = len(unbroken(active, snapshot.raw)) == 1
    record_tokens = sum(sizes.get(record.id, 0) for record in active)
    if is_whole and (left := record_tokens - excess_tokens) >= max(least_tokens, record_tokens // _LEAST_SHARE):
        return merge_fold(active, snapshot.rate, min(left, record_tokens // 2), snapshot.language)
    if not stretches:
        return None
    # Records join a fold of raw turns if they end where the turns begin.
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
    """Returns the fold of records and the following raw messages into at most half their tokens."""
    spec = fold_of(
        old,
        covered,
        kind="compaction",
        rate=snapshot.rate,
        language=snapshot.language,
        style="rolling",
        time_zone=snapshot.time_zone,
    )
    max_tokens = max(1, min(max_tokens, spec.source_tokens // 2))
    return replace(
        spec,
        target_chars=max(1, int(max_tokens * spec.source_chars / max(1, spec.source_tokens))),
        context_messages=snapshot.message_count,
        context_messages_after=len(snapshot.complete_raw) - len(covered) + 1,
        context_tokens=snapshot.context_tokens,
        is_bound=True,
        max_tokens=max_tokens,
    )


def shorten_verbatim(history: History, language: Language) -> list[HistoryEntry]:
    """Returns the history with verbatim records as short, marked summaries for one call."""
    return [_shortened(entry, language) if entry["kind"] == "verbatim" else entry for entry in history]


def _shortened(entry: HistoryEntry, language: Language) -> HistoryEntry:
    picked = extract_summary([HumanMessage(entry["summary"])], int(len(entry["summary"]) * _VERBATIM_SHARE))
    text = f"{SHORTENED_NOTE[language]} {picked}"
    tokens = estimate_tokens(label_of(entry["turns"], language, entry.get("days", "")) + text)
    if tokens >= entry["summary_tokens"]:
        return entry
    return {**entry, "kind": SHORTENED, "summary": text, "summary_tokens": tokens}


def without_oldest(
    history: History, messages: Messages, sizes: Mapping[str, int], excess_tokens: int
) -> tuple[History, Messages] | None:
    """Returns the input without its oldest records, then its oldest complete turns; None if there are none.

    The rest of a turn whose beginning a compaction covers counts as the oldest turn. No more is left out than frees
    `excess_tokens`.
    """
    turns = split_turns(messages)
    rest = messages[: len(messages) - sum(map(len, turns))]
    parts = [rest, *turns] if rest else turns
    blocks = [[entry["id"]] for entry in history]
    blocks += [[str(message.id) for message in turn] for turn in parts if is_complete(turn)]
    freed = accumulate(sum(sizes.get(block_id, 0) for block_id in block) for block in blocks)
    count = next((count for count, tokens in enumerate(freed, start=1) if tokens >= excess_tokens), len(blocks))
    if count == 0:
        return None
    left_out = max(0, count - len(history))
    return history[count:], [message for turn in parts[left_out:] for message in turn] if left_out else messages


def without_oldest_round(messages: Messages) -> Messages | None:
    """Returns the messages without the open turn's oldest round of calls.

    None with fewer than two rounds, or if a program ran some of its calls.
    """
    opened = extract_current_turn(messages)
    rounds = [index for index, message in enumerate(opened) if isinstance(message, AIMessage)]
    if len(rounds) < _LEAST_ROUNDS:
        return None
    first, second = (len(messages) - len(opened) + index for index in rounds[:2])
    if any(isinstance(message, ToolMessage) and not message.name for message in messages[first:second]):
        return None
    return [*messages[:first], *messages[second:]]


def cut_results(
    messages: Messages, excess_tokens: int, language: Language, *, least_chars: int = _MIN_RESULT_CHARS
) -> list[AnyMessage]:
    """Cuts tool results, the longest first, until about `excess_tokens` are saved; each notes its missing length.

    At least `least_chars` of each result stay. A result that is cut already still notes its original length. Those of
    a program's tools, which have no name, stay whole.
    """
    cut = list(messages)
    longest_first = sorted(
        (index for index, message in enumerate(cut) if isinstance(message, ToolMessage) and message.name),
        key=lambda index: len(text_of(cut[index])),
        reverse=True,
    )
    for index in longest_first:
        if excess_tokens <= 0:
            break
        text, marks = text_of(cut[index]), cut[index].additional_kwargs
        tokens = estimate_tokens(text)
        whole_chars = int(marks.get(WHOLE_CHARS, len(text)))
        retained_chars = int(marks.get(KEPT_CHARS, whole_chars))
        share = max(0.0, 1 - (excess_tokens + _NOTE_TOKENS) / max(1, tokens))
        keep = max(least_chars, int(len(text) * share))
        if keep >= retained_chars:
            continue
        shorter = note_cut(text, keep, why="fit the window", language=language, whole_chars=whole_chars)
        if estimate_tokens(shorter) >= tokens:
            continue
        marked = {**marks, KEPT_CHARS: keep, WHOLE_CHARS: whole_chars}
        cut[index] = cut[index].model_copy(update={"content": shorter, "additional_kwargs": marked})
        excess_tokens -= tokens - estimate_tokens(shorter)
    return cut
