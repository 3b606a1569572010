"""Fills a real archive with sessions, so that the product's own search can be measured on them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from graph.store.search import SearchStore
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.transfer import export_lines, import_lines

_OWNER: Final = "bench"
_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
_BUSY_SECONDS: Final = 30


@contextmanager
def search_over(path: Path, sessions: Mapping[str, Sequence[str]]) -> Iterator[SearchStore]:
    """Yields the search over a new SQLite file.

    Args:
        path: The file; there must be none yet.
        sessions: By id, what the user says in each turn, from turn 1 on.
    """
    with closing(open_sqlite(path, busy_timeout_seconds=_BUSY_SECONDS)) as database:
        head = next(iter(export_lines(database)))
        import_lines(database, [head, *_lines(sessions)], owner=_OWNER)
        yield SearchStore(database)


def _lines(sessions: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for session_id, texts in sessions.items():
        yield _row("session", session_id, created_at=_MOMENT, updated_at=_MOMENT, compression_rate=0.3,
                   strategy="interval", model="", turn_count=len(texts), title="", title_folded="")  # fmt: skip
        for number, text in enumerate(texts, start=1):
            message_id = f"{session_id}-{number}"
            yield _row("turn", session_id, number=number, attempt=1, status="finished", user_message_id=message_id,
                       model="", is_casual=False, stop_requested=False, error_code="", error_detail="",
                       started_at=_MOMENT, history_tokens=0, partial_text="")  # fmt: skip
            yield _row("message", session_id, position=number, message_id=message_id, turn=number, attempt=1,
                       role="human", chars=len(text), tokens=0, created_at=_MOMENT,
                       content=json.dumps(text, ensure_ascii=False))  # fmt: skip


def _row(table: str, session_id: str, **values: Any) -> str:  # noqa: ANN401  # a column's value
    return json.dumps({"table": table, "row": {"session_id": session_id, "owner": _OWNER, **values}})
