"""What a scripted service holds: sessions and records to be set as a test likes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from graph.record import Record
from graph.view import (
    ContextNotice,
    LiveTurn,
    ModelOption,
    NextFold,
    TurnView,
)

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
    """One session, open to whoever scripts it."""

    title: str
    updated_at: datetime
    compression_rate: float = 0.3
    strategy: str = "interval"
    model: str = "offline-mini"
    turns: list[TurnView] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    compactions: list[Record] = field(default_factory=list)
    live: LiveTurn | None = None
    fold_failures: int = 0
    fold_error_code: str = ""
    unsent_messages: int = 0
    context_notice: ContextNotice = ""
    next_fold: NextFold | None = None
