"""Reads what a model input says of the project: what the session was primed with, and what was noted since."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import BaseMessage, SystemMessage

from graph.core.turn import is_note
from prompt.project import memory as words
from prompt.system.framing import PERSISTENT_HEADING
from prompt.tool import project as told

_KEY: Final = "projectMemory:"
_INDENT: Final = "    "
_LABELS: Final = (
    words.PROJECT,
    words.ACTIVE_PLAN,
    words.ACTIVE_TASK,
    words.DECISIONS,
    words.OPEN_FILES,
    words.SUMMARY,
)
_DATES: Final = "|".join([r"\d{4}-\d\d-\d\d", *map(re.escape, words.UNDATED.values())])
_EXTRAS: Final = "|".join(map(re.escape, [*words.OLD.values(), *words.GONE.values()]))
_MARKS: Final = re.compile(rf" \(((?:{_DATES})(?:, (?:{_EXTRAS}))*)\)(?:, |$)")
_COUNTED: Final = [re.escape(words.older_decisions(0, "ko")), re.escape(words.older_decisions(0, "en"))]
_OLDER: Final = re.compile(f"(?:{'|'.join(_COUNTED)}), ".replace("0", r"\d+"))
_LISTED: Final = re.compile(r"- (?P<id>\S+?)(?: \[(?P<mark>[^\]]*)\]| \((?P<date>\d{4}-\d\d-\d\d)\))?: (?P<text>.+)")
# That there are none, or more before these.
_NO_PATH: Final = re.compile(r"- \(.*\)")
_SECTIONS: Final = {
    heading: label
    for label, headings in (
        (words.DECISIONS, told.DECISIONS),
        (words.ACTIVE_TASK, told.TASKS),
        (words.ACTIVE_PLAN, told.PLANS),
        (words.OPEN_FILES, told.FILES),
    )
    for heading in headings.values()
}


@dataclass(frozen=True)
class Noted:
    """One thing that stands in the project's memory.

    Attributes:
        marks: Its date and what else is said of it, as in "2026-11-20, old"; "" for what a tool listed without a date.
    """

    text: str
    marks: str = ""


@dataclass(frozen=True)
class Listed:
    """A plan, task or decision as a tool lists it.

    Attributes:
        is_active: Whether it is the active one.
        is_done: Whether it is done.
    """

    id: str
    text: str
    date: str = ""
    is_active: bool = False
    is_done: bool = False


Project = Mapping[str, tuple[Noted, ...]]
"""What stands under each label of `prompt.project.memory`, the newest last; the dialog's are the user's messages."""


def read_primed(messages: Sequence[BaseMessage]) -> Project | None:
    """Returns what the system prompt says of the project's memory; None if it says nothing.

    A label counts at the first character of a line of memory, the first time, and not within the recent dialog: so no
    title, summary or message can imitate one.
    """
    if not messages or not isinstance(messages[0], SystemMessage):
        return None
    lines = list(_memory_lines(messages[0].text))
    if not lines:
        return None
    end = next((at for at, line in enumerate(lines) if line == f"{words.RECENT_DIALOG}:"), len(lines))
    found: dict[str, tuple[Noted, ...]] = {words.RECENT_DIALOG: tuple(_said(lines[end + 1 :]))}
    for line in lines[:end]:
        label, _, value = line.partition(": ")
        if label in _LABELS and label not in found:
            is_list = label in (words.DECISIONS, words.OPEN_FILES)
            found[label] = _items(value) if is_list else (_item(value),)
    return found


def read_notes(messages: Sequence[BaseMessage]) -> Project:
    """Returns what the tools listed last in this conversation, under each label that they listed."""
    noted: dict[str, tuple[Noted, ...]] = {}
    for message in filter(is_note, messages):
        for label, lines in sections_of(message.text).items():
            noted[label] = tuple(_noted(label, lines))
    return noted


def sections_of(result: str) -> dict[str, list[str]]:
    """Returns the lists in a tool's result: the lines under the label of each."""
    sections: dict[str, list[str]] = {}
    label = ""
    for line in result.splitlines():
        if line in _SECTIONS:
            label = _SECTIONS[line]
            sections[label] = []
        elif label:
            sections[label].append(line)
    return sections


def read_listed(line: str) -> Listed | None:
    """Returns the plan, task or decision of a line; None if the line has none."""
    if (found := _LISTED.fullmatch(line)) is None:
        return None
    mark = found["mark"]
    is_active, is_done = mark in told.ACTIVE.values(), mark in told.DONE.values()
    return Listed(found["id"], found["text"], found["date"] or "", is_active, is_done)


def _memory_lines(prompt: str) -> Iterator[str]:
    """Yields the lines of the value of `projectMemory` in the persistent block."""
    lines = iter(prompt.splitlines())
    if all(line != PERSISTENT_HEADING for line in lines):
        return
    for line in lines:
        if not line:  # the block ends here
            return
        if line.startswith(_KEY):
            break
    for line in lines:
        if not line.startswith(_INDENT):
            return
        yield line.removeprefix(_INDENT)


def _items(value: str) -> tuple[Noted, ...]:
    """Returns the things of a line, without the count of older ones before them."""
    counted = _OLDER.match(value)
    start, items = counted.end() if counted else 0, []
    for marks in _MARKS.finditer(value, start):
        items.append(Noted(value[start : marks.start()], marks[1]))
        start = marks.end()
    return tuple(items) or (_item(value),)


def _item(value: str) -> Noted:
    """Returns the one thing of a line: marks within its own text aren't its marks."""
    marks = next((found for found in _MARKS.finditer(value) if found.end() == len(value)), None)
    return Noted(value[: marks.start()], marks[1]) if marks else Noted(value)


def _said(lines: Sequence[str]) -> Iterator[Noted]:
    """Yields the user's messages of the recent dialog."""
    messages: list[str] = []
    for line in lines:
        if line.startswith(("USER: ", "ASSISTANT: ")):
            messages.append(line)
        elif messages:
            messages[-1] += f"\n{line.strip()}"
    for message in messages:
        if message.startswith("USER: "):
            yield _item(message.removeprefix("USER: "))


def _noted(label: str, lines: Sequence[str]) -> Iterator[Noted]:
    if label == words.OPEN_FILES:
        yield from (Noted(line.removeprefix("- ")) for line in lines if not _NO_PATH.fullmatch(line))
        return
    for listed in map(read_listed, lines):
        if listed is not None and (label == words.DECISIONS or listed.is_active):
            yield Noted(listed.text, listed.date)
