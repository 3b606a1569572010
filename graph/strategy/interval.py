"""Seed 002's strategy: every three turns become one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import floor
from typing import Final

from graph.core.model_input import History, Messages, ModelInput, SystemPart, assemble
from graph.core.snapshot import SessionSnapshot
from graph.core.turn import text_of
from graph.fold.review import facts_chars, substance_chars
from graph.fold.spec import (
    BLOCK_TURNS,
    CACHED_VERBATIM_CHARS,
    MAX_RATE,
    MIN_RATE,
    VERBATIM_CHARS,
    Block,
    FoldSpec,
    due_blocks,
    fold_of,
    needed_chars,
    next_block,
    target_chars,
)
from graph.strategy.base import Limits
from graph.strategy.merge import due_merge, merge_for_room, raw_stretches
from graph.value.record import ArchivedMessage, Record
from graph.value.view import NextFold
from prompt.summary.summary_generator import MAX_TARGET_CHARS

# A block is asked for so much more or less as earlier folds took less or more than was asked: at least so much that
# with drafts of 160 % of it the summaries take 1.1 times as much. One that is asked for more for its facts would lose
# them with much less.
_ASKED_SHARES: Final = (2 / 3, 1.2)
_LEAST_NEEDED_SHARE: Final = 0.9
_NOTES_SHARE, _DETAIL_SHARE = 0.4, 0.2
# Nobody says a turn in fewer characters.
_TURN_CHARS: Final = 60
# Of a block under the bound for those that stand verbatim, if the user wants it summarised.
_MOST_OF_SHORT: Final = 2 / 3

# Two blocks.
_OWN_TURNS: Final = 2 * BLOCK_TURNS


class IntervalStrategy:
    """Folds turns 3k+1 to 3k+3 together and merges old summaries; sends all summaries, then the raw turns.

    Imported turns may be examples or files of a program: they, and what follows them, stay raw until two blocks of the
    session's own turns stand behind them, as long as there is room.

    Where it folds when it pays, a due block waits, raw, for the next one as long as there is room, and one call makes
    one record of both. One record, because a request, its review and its repair are of one text: a draft for two would
    have to be cut in two by the turn marks that a model may leave out.
    """

    name = "interval"
    sends_records = True
    whole_turns = None
    uses_rate = True

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def next_fold(self, snapshot: SessionSnapshot) -> NextFold:
        limits = self._limits.within(snapshot.input_tokens)
        raw = next((part for part, record in _parts(snapshot) if record is None), [])
        after = (raw[0].turn if raw else snapshot.complete_turns + 1) - 1
        has_room = _excess_tokens(snapshot, (), limits) <= 0
        block = next_block(snapshot.complete_turns, after)
        if _joins(snapshot, limits):
            block = _next_joined(snapshot, block, has_room=has_room)
        first_held, own_turns = _held(snapshot)
        turns_left = block.last_turn - snapshot.complete_turns
        if 0 < first_held <= block.last_turn and has_room:
            turns_left = max(turns_left, _OWN_TURNS - own_turns)
        entries = [entry for entry in raw if entry.turn <= block.last_turn]
        chars = sum(entry.chars for entry in entries)
        is_short = chars < _verbatim_chars(snapshot)
        summary_chars = chars if is_short else min(target_chars(chars, snapshot.rate), MAX_TARGET_CHARS)
        return NextFold(
            turns=tuple(range(block.first_turn, block.last_turn + 1)),
            turns_left=max(0, turns_left),
            original_chars=chars,
            summary_chars=summary_chars,
            is_due=turns_left <= 0,
        )

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        limits = self._limits.within(snapshot.input_tokens)
        blocks = list(_due(snapshot, limits))
        merge = due_merge(
            snapshot.active,
            snapshot.rate,
            limits,
            snapshot.raw,
            language=snapshot.language,
            undone=snapshot.undone,
        )
        if merge is None and (excess := _excess_tokens(snapshot, blocks, limits)) > 0:
            merge = merge_for_room(snapshot, excess, merged_tokens=limits.merged_tokens)
        return tuple(blocks) if merge is None else (*blocks, merge)

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:
        return assemble(system, history, messages)


def _held(snapshot: SessionSnapshot) -> tuple[int, int]:
    """Returns the first imported turn that stays raw, 0 for none, and the number of own turns behind it."""
    first_held = own_turns = own_behind = 0
    first_raw = snapshot.raw[0].turn if snapshot.raw else snapshot.complete_turns + 1
    for turn in range(snapshot.complete_turns, first_raw - 1, -1):
        if turn in snapshot.imported:
            first_held, own_behind = turn, own_turns
        else:
            own_turns += 1
        if own_turns == _OWN_TURNS:
            break
    return first_held, own_behind


def _due(snapshot: SessionSnapshot, limits: Limits) -> Iterator[FoldSpec]:
    """Yields the blocks to fold: those with turns that stay raw, and one that waits, only while there is no room.

    The oldest make up for what the session's folds took more or less than their targets.
    """
    fold = partial(fold_of, (), kind="interval", rate=snapshot.rate, language=snapshot.language)
    fold = partial(fold, time_zone=snapshot.time_zone)
    first_held, _ = _held(snapshot)
    excess_tokens, over_chars = _excess_tokens(snapshot, (), limits), excess_chars(snapshot.active)
    for source, record, waits in _sources(snapshot, joins=_joins(snapshot, limits)):
        if record is not None:
            spec = replace(fold(source), set_aside=record.id)
        elif excess_tokens <= 0 and (waits or 0 < first_held <= source[-1].turn):
            return
        else:
            spec = sized(replace(fold(source), verbatim_chars=_verbatim_chars(snapshot)))
            less_chars = 0 if spec.stands_verbatim else _within(over_chars, spec)
            over_chars -= less_chars
            spec = replace(spec, less_chars=less_chars, before=_text_before(snapshot, spec.from_position))
        excess_tokens -= spec.source_tokens - int(spec.source_tokens * snapshot.rate)
        yield spec


_Source = tuple[list[ArchivedMessage], Record | None, bool]


def _joins(snapshot: SessionSnapshot, limits: Limits) -> bool:
    return (snapshot.fold_when or limits.fold_when) == "pays"


def _sources(snapshot: SessionSnapshot, *, joins: bool) -> Iterator[_Source]:
    """Yields the messages of each due block, its record if that was set aside, and whether it waits for the next one.

    With `joins`, two blocks are one if a summary has room for both. Only the last block waits: others have a record
    behind them.
    """
    parts = list(_parts(snapshot))
    for part, record in parts:
        if record is not None:
            yield part, record, False
            continue
        blocks: list[list[ArchivedMessage]] = []
        for block in due_blocks(snapshot.complete_turns, part[0].turn - 1):
            source = [entry for entry in part if block.first_turn <= entry.turn <= block.last_turn]
            if joins and blocks and _is_single(blocks[-1]) and _fit([*blocks[-1], *source], snapshot.rate):
                blocks[-1] += source
            elif source:
                blocks.append(source)
        is_last = part is parts[-1][0] and all(each.to_position < part[0].position for each in snapshot.active)
        for source in blocks:
            yield source, None, joins and is_last and source is blocks[-1] and _is_single(source)


def _is_single(source: Sequence[ArchivedMessage]) -> bool:
    return source[-1].turn - source[0].turn < BLOCK_TURNS


def _fit(source: Sequence[ArchivedMessage], rate: float) -> bool:
    return target_chars(sum(entry.chars for entry in source), rate) <= MAX_TARGET_CHARS


def _next_joined(snapshot: SessionSnapshot, block: Block, *, has_room: bool) -> Block:
    """Returns the block that is folded next where blocks are joined: `block` itself, or up to the end of the next."""
    sources = _sources(snapshot, joins=True)
    source, waits = next(((source, waits) for source, record, waits in sources if record is None), ([], True))
    if waits and not has_room:
        return block
    behind = next_block(max(snapshot.complete_turns, block.last_turn), block.last_turn)
    return replace(block, last_turn=behind.last_turn if waits else source[-1].turn)


def _verbatim_chars(snapshot: SessionSnapshot) -> int:
    return CACHED_VERBATIM_CHARS if snapshot.reads_cache else VERBATIM_CHARS


def _within(over_chars: int, spec: FoldSpec) -> int:
    least, most = _ASKED_SHARES
    least = _LEAST_NEEDED_SHARE if spec.full_chars > spec.target_chars else least
    most_less = min(floor(spec.full_chars * (1 - least)), spec.full_chars - _TURN_CHARS * len(spec.turns))
    return max(-floor(spec.full_chars * (most - 1)), min(over_chars, most_less))


def sized(spec: FoldSpec) -> FoldSpec:
    """Returns a block that is asked for what notes of its substance need, its facts and 60 characters a turn included.

    Beyond the smallest rate two fifths of what it adds are for more of the substance, or a fifth behind the facts:
    notes at 0.3 take about six tenths of what sentences would.
    """
    if spec.stands_verbatim:
        return spec
    chars, extra_rate = substance_chars(spec.messages, spec.language), max(0.0, spec.rate - MIN_RATE)
    notes_chars = int(chars * (min(spec.rate, MIN_RATE) + _NOTES_SHARE * extra_rate))
    if notes_chars < MAX_TARGET_CHARS:
        facts = facts_chars(spec.messages, spec.language) + int(chars * _DETAIL_SHARE * extra_rate)
        room_chars = min(facts, target_chars(spec.source_chars, MAX_RATE))
        least_chars = min(_TURN_CHARS * len(spec.turns), int(spec.source_chars * _MOST_OF_SHORT))
        notes_chars = max(notes_chars, room_chars, least_chars)
    return spec.asking_for(max(1, notes_chars))


def excess_chars(active: Sequence[Record]) -> int:
    """Returns by how many characters the summaries of blocks are longer than was asked in all; below 0 if shorter.

    What the user edited doesn't count, nor do blocks that stand verbatim or are merged.
    """
    folds = [record for record in active if record.kind == "interval" and not record.edited]
    return sum(record.summary_chars - min(_asked_chars(record), MAX_TARGET_CHARS) for record in folds)


def _asked_chars(record: Record) -> int:
    return needed_chars(record.original_chars, record.needed_rate) or record.target_chars


def _parts(snapshot: SessionSnapshot) -> Iterator[tuple[list[ArchivedMessage], Record | None]]:
    for stretch in raw_stretches(snapshot):
        ids = {entry.message.id for entry in stretch}
        waiting = [record for record in snapshot.set_aside if record.covered_until_message_id in ids]

        def record_at(entry: ArchivedMessage, waiting: Sequence[Record] = waiting) -> Record | None:
            return next((each for each in waiting if each.from_position <= entry.position <= each.to_position), None)

        for record, part in groupby(stretch, key=record_at):
            yield list(part), record


def _text_before(snapshot: SessionSnapshot, position: int) -> str:
    ends = {record.to_position: record.summary for record in snapshot.active}
    texts = {entry.position: text_of(entry.message) for entry in snapshot.raw}
    last = max((earlier for earlier in (*ends, *texts) if earlier < position), default=0)
    return texts.get(last) or ends.get(last, "")


def _excess_tokens(snapshot: SessionSnapshot, blocks: Sequence[FoldSpec], limits: Limits) -> int:
    if limits.room_tokens is None:
        return 0
    folded_tokens = sum(block.source_tokens for block in blocks)
    next_tokens = snapshot.context_tokens - folded_tokens + int(folded_tokens * snapshot.rate)
    return next_tokens - int(limits.room_tokens / snapshot.correction)
