"""Describes a fold: the covered turns, the text to summarise and the target length; `fold_of` makes every spec."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from graph.core.day import day_of, range_of, zone_named
from graph.core.ledger import LEDGER_TOKENS
from graph.core.open_question import without_question
from graph.core.text import measure
from graph.core.turn import goes_on, label_of, labelled, text_of
from graph.fold.fact_find import Fact
from graph.fold.fact_line import carried_facts, kept_lines, without_marks
from graph.fold.replaced import is_out, replaced_by
from graph.value.error import InputError
from graph.value.record import ArchivedMessage, LedgerLine, Record, RecordKind
from prompt.summary.summary_generator import MAX_TARGET_CHARS
from prompt.system.framing import Language

BLOCK_TURNS: Final = 3
MIN_RATE: Final = 0.1
MAX_RATE: Final = 0.5
# A draft of so much more than was asked for is taken as it is: a second call costs many times the tokens that it would
# save, and details. The following folds are asked for less instead (`graph.strategy.interval`).
MAX_SHARE: Final = 1.6
_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Block:
    first_turn: int
    last_turn: int


def should_summarize(turn_count: int) -> bool:
    """Returns True if a block is due when this turn starts: exactly at 4, 7, 10, 13 and so on."""
    return turn_count > BLOCK_TURNS and turn_count % BLOCK_TURNS == 1


def due_blocks(complete_turns: int, covered_turn: int) -> tuple[Block, ...]:
    """Returns the complete blocks after `covered_turn` (0 for none), oldest first.

    If another strategy's record ends inside a block, the first block is shorter.
    """
    blocks = []
    first = covered_turn + 1
    for turn in range(first, complete_turns + 1):
        if should_summarize(turn + 1):
            blocks.append(Block(first, turn))
            first = turn + 1
    return tuple(blocks)


def next_block(complete_turns: int, covered_turn: int) -> Block:
    """Returns the first of `due_blocks`, or else the block that further turns will complete."""
    due = due_blocks(complete_turns, covered_turn)
    return due[0] if due else Block(covered_turn + 1, complete_turns + BLOCK_TURNS - complete_turns % BLOCK_TURNS)


def round_rate(rate: float) -> float:
    """Rounds a compression rate to two decimals.

    Raises:
        InputError: The rate is outside 0.1–0.5 (or not a number).
    """
    rounded = round(rate, 2)
    if not MIN_RATE <= rounded <= MAX_RATE:
        raise InputError("bad_rate", f"{MIN_RATE}–{MAX_RATE}")
    return rounded


def target_chars(original_chars: int, compression_rate: float) -> int:
    return int(original_chars * compression_rate)


# Enough for a character of what is asked for at most.
_RATE_DIGITS: Final = 5


def needed_chars(original_chars: int, needed_rate: float) -> int:
    """Returns what a fold was asked for by its `needed_rate`; 0 where that was its target."""
    return round(original_chars * needed_rate)


PromptStyle = Literal["plain", "merge", "rolling", "structured"]

# A call reads some 500 tokens of rules in addition to its source; from a cache the source itself costs a tenth.
VERBATIM_CHARS: Final = 300
CACHED_VERBATIM_CHARS: Final = 600
# A summary has more tokens per character than its source: fewer characters keep it within its tokens.
_DENSITY_MARGIN = 0.95


@dataclass(frozen=True)
class FoldSpec:
    """A fold that is due: what is folded, and what is asked of the summariser.

    Attributes:
        turns: All covered turn numbers, those of its sources included.
        messages: Input of the summariser: messages, or older summaries as messages.
        source_ids: Ids of these messages, for the key; they change when a turn gets another attempt.
        original_chars: Characters covered in the archive.
        source_chars: Characters of the summariser's input; the result must be smaller.
        sources: Ids of the replaced records.
        is_bound: True if the target is only an upper bound, so that a shorter draft is as good.
        max_tokens: Upper bound on the result, estimated; None for no bound.
        until_message_id: The last covered message; "" for the last one of `source_ids`.
        covered_message_count: Covered live messages, those of its sources included.
        version: Version of a rolling summary; 1 for other kinds.
        context_messages: Messages in the context before a compaction; 0 for other kinds.
        answer_tokens: Limit on the summary model's answer; None leaves it to the model.
        is_exact: True if a result must be for exactly these messages. Otherwise any finished result of the same kind
            that leaves no gap fits, so that a slow summary isn't discarded because the chat went on.
        is_waited: True if a turn may wait for it (once, for a bounded time).
        before: Context before the fold, so that "option 2" can be understood.
        after: The texts behind a merge, oldest first.
        context: What else is known of the session, its summaries above all: a figure from there isn't invented.
        message_turns: The turn of each message, 0 for a previous summary; () if unknown.
        carried: Facts of the replaced records, heaviest first.
        instruction: The user's instruction for the summary.
        set_aside: Id of a record to be activated again instead of making a new one.
        kept: The lines of the user's word that the replaced records keep.
        ledger: The lines that hold from all other records; None if no ledger is kept beside the summary.
        ledger_tokens: The room for the ledger.
        days: The days of the covered messages, for the label; see `range_of`.
        turn_days: The day of each turn of the messages.
        less_chars: How much less is asked for, as earlier folds took more than was asked; below 0 for more. Not hashed:
            a prepared fold stays good if one before it is adopted, edited or undone meanwhile; the next one makes up.
        needed_rate: Share of the source that is asked for where it isn't `rate`: more so that facts have room, less
            where tool results and pasted text count less; 0 where the target is asked for.
        verbatim_chars: Below so many characters a block stands verbatim; 0 where the user asks for a summary.
    """

    kind: RecordKind
    level: int
    turns: tuple[int, ...]
    from_position: int
    to_position: int
    messages: tuple[AnyMessage, ...]
    source_ids: tuple[str, ...]
    original_chars: int
    source_chars: int
    source_tokens: int
    target_chars: int
    rate: float
    language: Language
    sources: tuple[str, ...] = ()
    style: PromptStyle = "plain"
    until_message_id: str = ""
    covered_message_count: int = 0
    covered_token_count: int = 0
    version: int = 1
    context_messages: int = 0
    context_messages_after: int = 0
    context_tokens: int = 0
    is_bound: bool = False
    max_tokens: int | None = None
    answer_tokens: int | None = None
    is_exact: bool = True
    is_waited: bool = True
    before: str = ""
    after: tuple[str, ...] = ()
    context: str = ""
    message_turns: tuple[int, ...] = ()
    carried: tuple[Fact, ...] = ()
    instruction: str = ""
    set_aside: str = ""
    less_chars: int = 0
    needed_rate: float = 0.0
    verbatim_chars: int = VERBATIM_CHARS
    kept: tuple[LedgerLine, ...] = ()
    ledger: tuple[LedgerLine, ...] | None = None
    ledger_tokens: int = LEDGER_TOKENS
    days: str = ""
    turn_days: Mapping[int, str] = field(default_factory=dict)

    @property
    def full_chars(self) -> int:
        """What a draft is measured by: the target, or what the source needs of it, within the prompts' limit."""
        wanted_chars = needed_chars(self.source_chars, self.needed_rate) or self.target_chars
        return max(1, min(wanted_chars, MAX_TARGET_CHARS))

    @property
    def asked_chars(self) -> int:
        """Length requested by the prompt: less than that by what earlier folds took too much of theirs."""
        return max(1, self.full_chars - self.less_chars)

    @property
    def picked_chars(self) -> int:
        """Length of picked sentences, which are no notes: the target, if a draft may be so long."""
        return max(self.asked_chars, min(self.target_chars, int(self.full_chars * MAX_SHARE)))

    @property
    def label(self) -> str:
        """Precedes the summary in the model input and counts towards its size."""
        return label_of(self.turns, self.language, self.days)

    @property
    def is_merge(self) -> bool:
        """True if the source consists of summaries, whose words may be carried over."""
        return self.style == "merge"

    @property
    def stands_verbatim(self) -> bool:
        """True if the source is so short that no call can pay off; it is quoted instead."""
        return self.kind == "interval" and self.source_chars < self.verbatim_chars

    def followed_by(self, later: Sequence[str]) -> FoldSpec:
        """Returns a merge with the texts of the records behind it, which carries on no value that these replace."""
        texts = (without_marks(text_of(message)) for message in self.messages)
        gone = replaced_by(tuple(map(without_marks, later)), tuple(texts))
        return replace(self, after=tuple(later), carried=tuple(fact for fact in self.carried if not is_out(fact, gone)))

    def asking_for(self, chars: int) -> FoldSpec:
        """Returns the fold with so many characters asked for; its target stays what the rate says."""
        if chars == self.target_chars:
            return self
        return replace(self, needed_rate=round(chars / max(1, self.source_chars), _RATE_DIGITS))

    def bounded(self, max_tokens: int, *, most_chars: int | None = None) -> FoldSpec:
        """Returns the fold with an upper bound in tokens (estimated) and a matching target, at most `most_chars`."""
        chars = int(max_tokens * _DENSITY_MARGIN * self.source_chars / max(1, self.source_tokens))
        target_chars = max(1, chars if most_chars is None else min(most_chars, chars))
        return replace(self, target_chars=target_chars, max_tokens=max_tokens, is_bound=True)


def fold_of(
    old: Sequence[Record],
    new: Sequence[ArchivedMessage],
    *,
    kind: RecordKind,
    rate: float,
    language: Language,
    style: PromptStyle = "plain",
    cut: Callable[[AnyMessage], AnyMessage] = lambda message: message,
    time_zone: str = "",
) -> FoldSpec:
    """Returns the fold of records (oldest first) and the live messages after them, with the rate's target.

    The summariser reads the records as one first message. `old` or `new` may be empty, not both. Callers that need
    another length or an upper bound replace these fields.
    """
    previous = previous_summary(old, language)
    said = [entry for entry in new if not goes_on(entry.message)]
    messages = (*previous, *(cut(entry.message) for entry in said))
    chars = sum(len(text_of(message)) for message in messages)
    new_tokens = sum(entry.tokens for entry in new)
    zone = zone_named(time_zone)
    days = {entry.turn: day_of(entry.created_at, zone) for entry in new if entry.created_at > _NO_TIME}
    known = [record.days.partition("/")[::2] for record in old if record.days]
    joined_id = ["+".join(record.id for record in old)] if old else []
    return FoldSpec(
        kind=kind,
        level=0,
        turns=tuple(dict.fromkeys([turn for record in old for turn in record.turns] + [entry.turn for entry in new])),
        from_position=old[0].from_position if old else new[0].position,
        to_position=new[-1].position if new else old[-1].to_position,
        messages=messages,
        source_ids=(*joined_id, *(str(entry.message.id) for entry in said)),
        original_chars=sum(record.original_chars for record in old) + sum(entry.chars for entry in new),
        source_chars=chars,
        source_tokens=sum(record.summary_tokens for record in old) + new_tokens,
        target_chars=target_chars(chars, rate),
        rate=rate,
        language=language,
        sources=tuple(record.id for record in old),
        kept=kept_lines(old),
        style=style,
        days=range_of([day for first_last in known for day in first_last] + list(days.values())),
        turn_days=days,
        covered_message_count=sum(record.covered_message_count for record in old) + len(new),
        covered_token_count=sum(record.covered_token_count for record in old) + new_tokens,
        message_turns=(*(0 for _ in previous), *(entry.turn for entry in said)),
        carried=carried_facts(
            old, [text_of(entry.message) for entry in new if isinstance(entry.message, HumanMessage)]
        ),
    )


def fold_of_messages(
    messages: Sequence[AnyMessage], target: int, *, rate: float = 0.0, language: Language = "ko"
) -> FoldSpec:
    """Returns the fold of messages without an archive; turns and positions are counted from 1.

    Messages before the first user message are a turn of their own, as in a session.
    """
    turn, entries = 0, []
    for position, message in enumerate(messages, start=1):
        turn = turn + 1 if isinstance(message, HumanMessage) else max(turn, 1)
        named = message.model_copy(update={"id": f"message-{position}"})
        entries.append(ArchivedMessage(position, turn, 1, named, *measure(named), _NO_TIME))
    # Not "interval", of which short ones stand word for word: whoever asks for a summary wants one.
    spec = fold_of((), entries, kind="compaction", rate=rate, language=language)
    return replace(spec, target_chars=target)


def previous_summary(active: Sequence[Record], language: Language) -> list[SystemMessage]:
    """Returns the active summaries as one message for the summariser; the newest alone has its open question."""
    if not active:
        return []
    if len(active) == 1:
        return [SystemMessage(active[0].summary)]
    texts = [*(without_question(record.summary) for record in active[:-1]), active[-1].summary]
    labels = [label_of(record.turns, language, record.days) for record in active]
    return [SystemMessage("\n".join(map(labelled, labels, texts)))]


def source_key(spec: FoldSpec, *, model: str, prompt_version: str) -> str:
    """Hashes all inputs of a summary, so that a prepared one is used only if nothing has changed.

    The context before the source may be merged meanwhile and isn't hashed. For a fold that isn't exact only the first
    position and the replaced records are hashed, as the chat may go on meanwhile.
    """
    source = [[str(spec.from_position)]]
    if spec.is_exact:
        source = [[source_id, text_of(m)] for source_id, m in zip(spec.source_ids, spec.messages, strict=True)]
        source.append([f"{spec.rate:.2f}", str(spec.target_chars)])
    asked = [spec.instruction] if spec.instruction else []
    text = json.dumps([spec.kind, spec.style, list(spec.sources), source, model, prompt_version, *asked])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
