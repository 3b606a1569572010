"""What a scripted service holds: sessions and records to be set as a test likes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from graph.value.record import Record
from graph.value.view import (
    ChartPoint,
    ContextNotice,
    FoldWhen,
    KeptLine,
    LiveTurn,
    ModelOption,
    NextFold,
    SessionItem,
    SessionView,
    Statistics,
    Thinking,
    TurnView,
)

COMMANDS: Final[dict[str, Literal["compact", "reset"]]] = {"/compact": "compact", "/reset": "reset"}
START = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


def echo(text: str) -> str:
    return f"들었습니다: {text}"


OFFLINE = ModelOption("offline-mini", is_offline=True)


def make_record(turns: tuple[int, ...], *, original_chars: int = 1500, rate: float = 0.3, summary: str = "") -> Record:
    text = summary or "가" * int(original_chars * rate)
    return Record(
        id=f"record-{turns[0]}",
        thread_id="",
        turns=turns,
        turn_length=len(turns),
        original_chars=original_chars,
        summary_chars=int(original_chars * rate),
        compression_rate=rate,
        summary=text,
        kind="interval",
        level=0,
        from_position=2 * turns[0] - 1,
        to_position=2 * turns[-1],
        status="COMPLETED",
        outcome="compressed",
        created_at=START,
        model="offline-mini",
        target_chars=int(original_chars * rate),
        source_key="",
        source_tokens=900,
        summary_tokens=270,
        input_tokens=1024,
        output_tokens=260,
        is_usage=True,
        seconds=1.2,
    )


@dataclass
class ScriptedSession:
    """One session whose fields a test may set."""

    title: str
    updated_at: datetime
    compression_rate: float = 0.3
    strategy: str = "interval"
    fold_when: FoldWhen = "due"
    model: str = "offline-mini"
    turns: list[TurnView] = field(default_factory=list)
    aside: list[TurnView] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    inactive: list[Record] = field(default_factory=list)
    pinned: list[str] = field(default_factory=list)
    ledger: list[KeptLine] = field(default_factory=list)
    compactions: list[Record] = field(default_factory=list)
    past_records: list[Record] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    live: LiveTurn | None = None
    fold_failures: int = 0
    fold_error_code: str = ""
    unsent_messages: int = 0
    unsent_tokens: int = 0
    spent_tokens: int = 0  # on folds that came to nothing
    pays_from: int | None = 11
    broken_off_count: int = 0
    context_notice: ContextNotice = ""
    next_fold: NextFold | None = None
    project_root: str = ""
    has_memory: bool = True
    client: str = ""
    is_pinned: bool = False
    forked_from: str = ""
    forked_after: int = 0
    thinking: Thinking = ""
    brought_instructions: str = ""
    found_turn: int | None = None
    found_count: int = 0

    def row(self, session_id: str) -> SessionItem:
        return SessionItem(
            session_id,
            self.title,
            self.updated_at,
            len(self.turns),
            self.live is not None,
            self.found_turn,
            found_count=self.found_count,
            client=self.client,
            is_pinned=self.is_pinned,
            forked_from=self.forked_from,
            project_root=self.project_root,
            is_asking=bool(self.turns) and self.turns[-1].status == "asking",
        )

    def view(self, session_id: str) -> SessionView:
        return SessionView(
            session_id=session_id,
            title=self.title,
            compression_rate=self.compression_rate,
            strategy=self.strategy,
            fold_when=self.fold_when,
            model=self.model,
            turn_count=len(self.turns),
            is_running=self.live is not None,
            fold_failures=self.fold_failures,
            fold_error_code=self.fold_error_code,
            unsent_messages=self.unsent_messages,
            context_notice=self.context_notice,
            project_root=self.project_root,
            has_memory=self.has_memory,
            client=self.client,
            is_pinned=self.is_pinned,
            forked_from=self.forked_from,
            forked_after=self.forked_after,
            thinking=self.thinking,
            is_asking=bool(self.turns) and self.turns[-1].status == "asking",
            brought_instructions=self.brought_instructions,
        )

    def statistics(self, ready: Sequence[Record] = ()) -> Statistics:
        others = [record for record in self.records if not any(newer.covers(record) for newer in ready)]
        counted = [*others, *ready]
        original = sum(record.original_chars for record in counted)
        summary = sum(record.summary_chars for record in counted)
        return Statistics(
            record_count=len(counted),
            folded_turn_count=sum(len(record.turns) for record in counted),
            original_chars=original,
            summary_chars=summary,
            saved_percent=round(100 * (1 - summary / original)) if original else 0,
            unsent_tokens=self.unsent_tokens or 630 * len(self.records),
            fold_tokens=self.spent_tokens + sum(record.input_tokens + record.output_tokens for record in self.records),
        )

    @property
    def block_turns(self) -> int:
        return 6 if self.fold_when == "pays" else 3

    def blocks_next(self) -> NextFold:
        """Returns the fold of the block that isn't folded yet."""
        complete = len(self.turns) - (self.live is not None)
        covered = self.records[-1].turns[-1] if self.records else 0
        last = covered + self.block_turns
        chars = sum(_length(turn) for turn in self.turns[:complete] if turn.number > covered)
        return NextFold(
            turns=tuple(range(covered + 1, last + 1)),
            turns_left=max(0, last - complete),
            original_chars=chars,
            summary_chars=int(chars * self.compression_rate),
            is_due=last <= complete,
        )

    def versions_of(self, record_id: str) -> list[Record]:
        """Returns every version of a record, oldest first."""
        every = [*self.records, *self.inactive]
        turns = next(record.turns for record in every if record.id == record_id)
        return sorted((record for record in every if record.turns == turns), key=lambda record: record.version)

    def add_version(self, record_id: str, **changes: object) -> Record:
        """Has a changed copy of a record take its place."""
        newest = self.versions_of(record_id)[-1].version + 1
        record = next(record for record in self.records if record.id == record_id)
        self.inactive.append(record.with_changes(**changes, id=f"{record_id}-v{newest}", version=newest))
        return self.use_version(f"{record_id}-v{newest}")

    def use_version(self, record_id: str) -> Record:
        """Has a record take the place of the active one with its turns."""
        chosen = next(record for record in self.inactive if record.id == record_id)
        index = next(index for index, record in enumerate(self.records) if record.turns == chosen.turns)
        self.inactive.remove(chosen)
        self.inactive.append(self.records[index])
        self.records[index] = chosen
        return chosen

    def fold_before(self, number: int) -> None:
        """Folds the turns before this one if they are a block, or two."""
        count = self.block_turns
        if number > 1 and number % count == 1:
            block = self.turns[number - 1 - count : number - 1]
            original, turns = sum(map(_length, block)), tuple(turn.number for turn in block)
            self.records.append(make_record(turns, original_chars=original, rate=self.compression_rate))


def _length(turn: TurnView) -> int:
    return len(turn.user_text) + len(turn.answer_text)


def chart_of(turns: Sequence[TurnView]) -> tuple[ChartPoint, ...]:
    """A request that grows within three turns and by a summary with every three."""
    return tuple(
        ChartPoint(
            turn=turn.number,
            sent_tokens=300 + 250 * ((turn.number - 1) % 3 + 1) + 90 * ((turn.number - 1) // 3),
            full_tokens=300 + 250 * turn.number,
            has_fold=turn.number > 1 and turn.number % 3 == 1,
        )
        for turn in turns
    )
