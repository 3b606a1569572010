"""Sessions as files: as Markdown to read, and as the lines of an export to take back in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from graph.core.language import session_language
from graph.service.access import SessionAccess, new_session_id
from graph.service.turn_stream import read_transcript
from graph.store.session_import import import_sessions
from graph.value.error import InputError, PathError
from graph.value.record import Record
from graph.value.view import Rating, TurnView
from prompt.system.framing import CLOSED_ANSWER, RECORD_LABEL, SPEAKER, SUMMARY_HEADING, Language

# Characters of all lines: thousands of turns. They are held in memory, and written in one transaction.
IMPORT_CHARS: Final = 20_000_000
_THUMBS: Final[Mapping[Rating, str]] = {1: "👍", -1: "👎"}
_TURN: Final[Mapping[Language, str]] = {"ko": "{number}턴", "en": "Turn {number}"}


def take_in(access: SessionAccess, lines: Iterable[str]) -> tuple[str, ...]:
    """Takes in the sessions of an export and returns their ids.

    Raises:
        InputError: `not_an_export` or `import_too_large`; nothing is stored.
        NewerDatabaseError: A newer version wrote the export.
        BusyError: Somebody else takes in the same session at this moment.
    """
    access.check_admitted()

    def allowed(row: dict[str, Any]) -> dict[str, Any]:
        strategy = row["strategy"] if row["strategy"] in access.strategies.by_name else ""
        return {**row, "strategy": strategy, "project_root": _allowed_root(access, row.get("project_root", ""))}

    return import_sessions(
        access.stores.database,
        _bounded(lines),
        owner=access.owner,
        new_session_id=new_session_id,
        allowed=allowed,
    )


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    left = IMPORT_CHARS
    for line in lines:
        left -= len(line)
        if left < 0:
            raise InputError("import_too_large", f"{IMPORT_CHARS:,}")
        if line.strip():
            yield line


def _allowed_root(access: SessionAccess, root: str) -> str:
    """Returns the folder if it may be a project here, else ""."""
    try:
        return str(access.roots.resolve(root)) if root else ""
    except PathError:
        return ""


def to_markdown(access: SessionAccess, session_id: str) -> str:
    """Returns a session to read: each turn with its question quoted, then the summaries in force.

    Raises:
        NotFoundError: The owner has no such session.
    """
    with access.stores.database.reading():
        session = access.own(session_id)
        turns = read_transcript(access, session_id, last=max(1, session.turn_count)).turns
        records = access.stores.records.active(session_id)
        language = session_language(access.stores.archive.opening(session_id))
    parts = [f"# {session.title}", *(_turn_text(turn, language) for turn in turns)]
    if records:
        parts += [f"## {SUMMARY_HEADING[language].strip('[]')}", *(_record_text(each, language) for each in records)]
    return "\n\n".join(parts) + "\n"


def _turn_text(turn: TurnView, language: Language) -> str:
    """Renders a turn. What the user said is quoted, so that no line of it is taken for a heading of another turn."""
    said = SPEAKER[language]
    answer = turn.answer_text or CLOSED_ANSWER.get((turn.status, language), "")
    parts = [
        f"## {_TURN[language].format(number=turn.number)}",
        f"**{said['human']}**",
        _quoted(turn.user_text),
        f"**{said['ai']}** · {turn.model}" if turn.model else f"**{said['ai']}**",
        "\n".join(f"- {said['tool']}: `{step.name}`" for step in turn.steps),
        answer,
        _THUMBS.get(turn.rating, ""),
    ]
    return "\n\n".join(part for part in parts if part)


def _record_text(record: Record, language: Language) -> str:
    label = RECORD_LABEL[language].format(first=record.turns[0], last=record.turns[-1]).strip()
    return f"**{label}**\n\n{_quoted(record.summary)}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or ">"
