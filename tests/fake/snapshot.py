"""Makes snapshots, archived messages and records for the pure rules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens, measure
from graph.fold.spec import FoldSpec
from graph.value.record import ArchivedMessage, Record, RecordKind

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def plain_turn(number: int, words: str = "") -> list[AnyMessage]:
    return [
        HumanMessage(f"Q{number} {words}".strip(), id=f"u{number}"),
        AIMessage(f"A{number} {words}".strip(), id=f"a{number}"),
    ]


def tool_turn(number: int, words: str = "", calls: int = 1) -> list[AnyMessage]:
    made = [tool_call(name="read_file", args={"path": f"f{number}-{k}.py"}, id=f"c{number}-{k}") for k in range(calls)]
    results = [
        ToolMessage(f"R{number} {words}", tool_call_id=str(c["id"]), name="look_up", id=f"t{c['id']}") for c in made
    ]
    return [
        HumanMessage(f"Q{number}", id=f"u{number}"),
        AIMessage("", tool_calls=made, id=f"k{number}"),
        *results,
        AIMessage(f"A{number} {words}", id=f"a{number}"),
    ]


def archived(
    turns: Sequence[Sequence[AnyMessage]], *, first_turn: int = 1, first_position: int = 1
) -> list[ArchivedMessage]:
    flat = [(turn, message) for turn, said in enumerate(turns, start=first_turn) for message in said]
    return [
        ArchivedMessage(position, turn, 1, message, *measure(message), NOON)
        for position, (turn, message) in zip(itertools.count(first_position), flat, strict=False)
    ]


def snapshot_of(
    turns: Sequence[Sequence[AnyMessage]], active: Sequence[Record] = (), *, correction: float = 1.0
) -> SessionSnapshot:
    """All of these turns are complete; the first one follows on the records."""
    first_turn = active[-1].turns[-1] + 1 if active else 1
    first_position = active[-1].to_position + 1 if active else 1
    raw = archived(turns, first_turn=first_turn, first_position=first_position)
    return SessionSnapshot(first_turn - 1 + len(turns), active, raw, 0.3, correction)


def record_of(
    turns: tuple[int, ...], summary: str, *, kind: RecordKind = "interval", version: int = 1, record_id: str = ""
) -> Record:
    return Record(
        id=record_id or f"{kind}-{turns[0]}-{turns[-1]}",
        thread_id="s",
        turns=turns,
        turn_length=len(turns),
        original_chars=1_000,
        summary_chars=len(summary),
        compression_rate=0.3,
        summary=summary,
        kind=kind,
        level=0,
        from_position=2 * turns[0] - 1,
        to_position=2 * turns[-1],
        status="COMPLETED",
        outcome="compressed",
        created_at=NOON,
        model="m",
        target_chars=300,
        source_key="k",
        source_tokens=700,
        summary_tokens=estimate_tokens(summary),
        version=version,
        covered_until_message_id=f"a{turns[-1]}",
        covered_message_count=2 * len(turns),
        covered_token_count=700,
    )


def adopted(spec: FoldSpec, summary: str, record_id: str = "r") -> Record:
    """The record that comes of a fold."""
    return record_of(spec.turns, summary, kind=spec.kind, version=spec.version, record_id=record_id).with_changes(
        from_position=spec.from_position,
        to_position=spec.to_position,
        covered_message_count=spec.covered_message_count,
        covered_token_count=spec.covered_token_count,
        sources=spec.sources,
    )
