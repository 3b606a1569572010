"""What a turn and a page know of a session: one value, which holds as long as the session's revision does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from langchain_core.messages import AnyMessage

from graph.core.instruction import own_block
from graph.core.language import session_language
from graph.core.pin import STANDING, BlockKind, ContextBlock, Pin
from graph.core.snapshot import SessionSnapshot, without_overlap
from graph.core.text import estimate_tokens
from graph.store.archive import OPENINGS
from graph.store.call import ModelCall, RecentCalls
from graph.store.session import SessionRow
from graph.store.turn_row import TurnRow
from graph.value.record import ArchivedMessage, Record
from prompt.system.framing import Language


@dataclass(frozen=True, kw_only=True)
class SessionState:
    """A session's context, and what is sent beside it, as of one revision.

    Attributes:
        last: The session's last turn, as it was when it last began, ended or waited: not what was streamed since.
        active: The records that an input may contain, oldest first: those up to the first gap in coverage.
        left_out: Active records behind a gap; their messages are in `raw`.
        raw: The live messages that no record covers, oldest first, from the turn `from_turn` on: that of the first of
            `whole_turns` turns before the last one, or the first of all.
        imported: Those of the raw turns that a program sent with their answers.
        set_aside: Records that may be active again, newest first; see `StandingRecords`.
        undone: The first and last position of each merge that the user undid.
        first_said: The user's first messages.
        pins: The pinned messages since the last reset, in order.
        blocks: The newest block of each kind that stays from turn to turn.
        default_language: The language of fixed sentences as long as the chat has no words.
        first_turn: The first turn after the last reset.
        has_long_files: Whether questions since the last reset have files of which only the beginning is sent.
        for_all: The owner's instructions for all chats.
    """

    row: SessionRow
    default_language: Language
    last: TurnRow | None = None
    active: Sequence[Record] = ()
    left_out: Sequence[Record] = ()
    raw: Sequence[ArchivedMessage] = ()
    imported: frozenset[int] = frozenset()
    set_aside: Sequence[Record] = ()
    undone: frozenset[tuple[int, int]] = frozenset()
    first_said: Sequence[AnyMessage] = ()
    pins: tuple[Pin, ...] = ()
    blocks: Mapping[BlockKind, ContextBlock] = field(default_factory=dict)
    calls: RecentCalls = field(default_factory=RecentCalls)
    first_turn: int = 1
    from_turn: int = 1
    whole_turns: int | None = None
    has_long_files: bool = False
    for_all: str = ""

    @cached_property
    def language(self) -> Language:
        """The language of fixed sentences.

        That of the program's system message, else of the user's first message with words, else the default.
        """
        return self.row.language or session_language(self.first_said, self.default_language)

    def said(self, entries: Sequence[ArchivedMessage], *, is_long: bool = False) -> SessionState:
        """Returns the state once these messages are archived; `is_long`: with files of which the beginning is sent."""
        asked = [entry.message for entry in entries if entry.message.type == "human"]
        return replace(
            self,
            raw=[*self.raw, *entries],
            first_said=[*self.first_said, *asked][:OPENINGS],
            has_long_files=self.has_long_files or is_long,
        )

    def within(self, whole_turns: int | None) -> SessionState:
        """Returns the state with the raw messages of the last turn and of `whole_turns` before it; None for all."""
        from_turn = 1 if whole_turns is None else max(1, self.row.turn_count - whole_turns)
        if self.from_turn >= from_turn:
            return replace(self, whole_turns=whole_turns)
        raw = [entry for entry in self.raw if entry.turn >= from_turn]
        return replace(self, raw=raw, from_turn=from_turn, whole_turns=whole_turns)

    def called(self, call: ModelCall) -> SessionState:
        """Returns the state once this call is stored."""
        return replace(self, calls=self.calls.followed_by(call))

    @property
    def own_block(self) -> str:
        """The user's instructions as the next turn is sent them.

        In a chat that a program began its own system message rules, and not the text for all chats.
        """
        return own_block("" if self.row.client else self.for_all, self.row.instructions, self.language)

    @property
    def tokens(self) -> int:
        """Our estimate for the context."""
        return sum(record.summary_tokens for record in self.active) + sum(entry.tokens for entry in self.raw)

    @cached_property
    def _front_tokens(self) -> dict[BlockKind, int]:
        return {kind: estimate_tokens(self.blocks[kind].text) for kind in STANDING if kind in self.blocks}

    def snapshot(self, *, complete_turns: int, rate: float, time_zone: str = "") -> SessionSnapshot:
        """Returns what a strategy decides by."""
        return SessionSnapshot(
            complete_turns,
            self.active,
            self.raw,
            rate,
            self.calls.ratio,
            self.row.restored_tokens,
            language=self.language,
            front_tokens=self._front_tokens,
            pin_tokens=sum(pin.tokens(self.language) for pin in self.pins),
            undone=self.undone,
            set_aside=without_overlap(self.set_aside, self.active),
            imported=frozenset(turn for turn in self.imported if turn <= complete_turns),
            time_zone=time_zone,
            reads_cache=self.calls.reads_cache,
            fold_when=self.row.fold_when,
        )
