"""Sessions as files: as Markdown to read, and as the lines of an export to take back in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from graph.value.error import InputError
from graph.value.record import Record
from graph.value.view import Rating, TurnView
from prompt.system.framing import CLOSED_ANSWER, RECORD_LABEL, SPEAKER, SUMMARY_HEADING, Language

# Characters of all lines: thousands of turns. They are held in memory, and written in one transaction.
IMPORT_CHARS: Final = 20_000_000
_THUMBS: Final[Mapping[Rating, str]] = {1: "👍", -1: "👎"}
_TURN: Final[Mapping[Language, str]] = {"ko": "{number}턴", "en": "Turn {number}"}


def bounded(lines: Iterable[str]) -> Iterator[str]:
    """Yields the lines of an export that aren't blank.

    Raises:
        InputError: `import_too_large`: they have over `IMPORT_CHARS` characters.
    """
    left = IMPORT_CHARS
    for line in lines:
        left -= len(line)
        if left < 0:
            raise InputError("import_too_large", f"{IMPORT_CHARS:,}")
        if line.strip():
            yield line


def to_markdown(title: str, turns: Sequence[TurnView], records: Sequence[Record], language: Language) -> str:
    """Returns a session to read: each turn with its question quoted, then the summaries in force."""
    parts = [f"# {title}", *(_turn_text(turn, language) for turn in turns)]
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
