"""Reads the front matter of a `.mdc` rule, line by line: a YAML parser refuses the commonest real ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from graph.layer.rule_glob import expand_braces

FrontMatterProblem = Literal["not_closed", "not_a_line", "twice", "bad_description", "bad_globs", "bad_always_apply"]

_FENCE: Final = "---"
_ENTRY: Final = re.compile(r"([A-Za-z_][\w-]*)\s*:(.*)")
_KEYS: Final = ("description", "globs", "alwaysApply")
_BLOCK: Final = re.compile(r"[|>][+-]?\d*[+-]?")
_REMARK: Final = re.compile(r"(?:^|(?<!\s)\s++)#.*")
_FLAGS: Final = {"": False, "false": False, "true": True}
_MAX_GLOBS: Final = 128
_QUOTES: Final = ("'", '"')


@dataclass(frozen=True)
class FrontMatter:
    """What a rule says of itself.

    Attributes:
        description: One line, "" for none.
        globs: Which files it is for.
        always_apply: Whether it always applies.
        body: The rule itself.
        problem: Why the front matter can't be read, or None; then the three values are the initial ones.
    """

    description: str = ""
    globs: tuple[str, ...] = ()
    always_apply: bool = False
    body: str = ""
    problem: FrontMatterProblem | None = None


@dataclass
class _Entry:
    value: str = ""
    lines: list[str] = field(default_factory=list)


class _UnreadableError(Exception):
    def __init__(self, problem: FrontMatterProblem) -> None:
        super().__init__(problem)
        self.problem: FrontMatterProblem = problem


def parse_front_matter(text: str) -> FrontMatter:
    """Parses the lines between `---` and `---` at the start of a rule; without them all is its body.

    `description`, `globs` and `alwaysApply` are read and all other keys ignored. Globs are a comma list or a YAML list,
    at most 128 with each choice of their braces.
    What can't be read for certain is a `problem`, never a guess.
    """
    first, *lines = text.lstrip().split("\n")
    if first.rstrip() != _FENCE:
        return FrontMatter(body=text)
    end = next((number for number, line in enumerate(lines) if line.rstrip() == _FENCE), None)
    if end is None:
        return FrontMatter(problem="not_closed")
    body = "\n".join(lines[end + 1 :])
    try:
        entries = _read_entries(lines[:end])
        return FrontMatter(
            _read_description(entries.get("description", _Entry())),
            _read_globs(entries.get("globs", _Entry())),
            _read_flag(entries.get("alwaysApply", _Entry())),
            body,
        )
    except _UnreadableError as error:
        return FrontMatter(body=body, problem=error.problem)


def _read_entries(lines: Iterable[str]) -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    entry: _Entry | None = None
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if entry is not None and (line[0].isspace() or text.startswith("-")):
            entry.lines.append(text)
            continue
        found = _ENTRY.fullmatch(line)
        if found is None:
            raise _UnreadableError("not_a_line")
        key, entry = found[1], _Entry(found[2].strip())
        if key in entries and key in _KEYS:
            raise _UnreadableError("twice")
        entries[key] = entry
    return entries


def _read_description(entry: _Entry) -> str:
    value = _unquoted(entry.value)
    if entry.lines or value is None or _BLOCK.fullmatch(entry.value):
        raise _UnreadableError("bad_description")
    return value


def _read_flag(entry: _Entry) -> bool:
    value = _unquoted(_REMARK.sub("", entry.value))
    flag = None if entry.lines or value is None else _FLAGS.get(value.lower())
    if flag is None:
        raise _UnreadableError("bad_always_apply")
    return flag


def _read_globs(entry: _Entry) -> tuple[str, ...]:
    texts = [_unquoted(text) for text in _glob_texts(entry)]
    globs = tuple(text for text in texts if text)
    try:
        is_read = None not in texts and sum(len(expand_braces(glob)) for glob in globs) <= _MAX_GLOBS
    except ValueError:
        is_read = False
    if not is_read:
        raise _UnreadableError("bad_globs")
    return globs


def _glob_texts(entry: _Entry) -> Sequence[str]:
    value = entry.value if entry.value.startswith(_QUOTES) else _REMARK.sub("", entry.value)
    if entry.lines:
        if value or not all(line.startswith("- ") for line in entry.lines):
            raise _UnreadableError("bad_globs")
        return [line.removeprefix("- ").strip() for line in entry.lines]
    if value.startswith("[") and value.endswith("]"):
        return _split(value[1:-1])
    whole = _unquoted(value)
    # A comma list may be quoted as a whole or item by item.
    return _split(value if whole is None or any(quote in whole for quote in _QUOTES) else whole)


def _split(text: str) -> list[str]:
    """Splits at the commas that stand outside of braces."""
    items, depth = [""], 0
    for sign in text:
        depth = max(0, depth + (sign == "{") - (sign == "}"))
        if sign == "," and depth == 0:
            items.append("")
        else:
            items[-1] += sign
    return [item.strip() for item in items]


def _unquoted(text: str) -> str | None:
    """Returns a value without its quotes; None if they don't close, or if another one stands between them."""
    if not text.startswith(_QUOTES):
        return text
    inner = text[1:-1]
    return inner if len(text) > 1 and text[-1] == text[0] and text[0] not in inner else None
