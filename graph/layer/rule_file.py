"""A rules file of a project, and the properties derived from its text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from graph.layer.rule_clean import CleanedText, clean_rules, count_imports, show_unseen
from graph.value.error import PathReason
from prompt.system.framing import note_bytes_left_out

_MAX_CHARS: Final = 1_000
_MAX_PATTERNS: Final = 64
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ANY_FOLDERS: Final = "**"


def matches_globs(path: str, globs: Iterable[str]) -> bool:
    """True if a relative path matches one of the globs, and none that starts with `!`.

    `*` stays inside a name, `**` matches any number of folders. A glob without a slash matches names in any folder,
    with a trailing slash everything below that folder.
    """
    names = path.split("/")
    is_wanted = False
    for glob in globs:
        if any(_matches(names, pattern) for pattern in expand_braces(glob.removeprefix("!"))):
            if glob.startswith("!"):
                return False
            is_wanted = True
    return is_wanted


def expand_braces(glob: str) -> list[str]:
    """Expands the braces of a glob; those without a comma are literal.

    Raises `ValueError` above 1,000 characters or 64 globs.
    """
    expanded: list[str] = []
    waiting = [glob]
    while waiting:
        pattern = waiting.pop()
        braces = _BRACES.search(pattern)
        if braces is None:
            expanded.append(pattern)
        else:
            waiting += [pattern[: braces.start()] + choice + pattern[braces.end() :] for choice in braces[1].split(",")]
        if len(glob) > _MAX_CHARS or len(expanded) + len(waiting) > _MAX_PATTERNS:
            raise ValueError(glob[:_MAX_CHARS])
    return expanded


def _matches(names: Sequence[str], glob: str) -> bool:
    parts = (glob.removeprefix("./").lstrip("/") + (_ANY_FOLDERS if glob.endswith("/") else "")).split("/")
    if len(parts) == 1:
        parts.insert(0, _ANY_FOLDERS)
    matched = {0}  # possible numbers of names consumed by the parts so far
    for part in parts:
        if part == _ANY_FOLDERS:
            matched = set(range(min(matched), len(names) + 1)) if matched else matched
        else:
            # fnmatch never backtracks into an earlier star, so that no untrusted glob can block the server.
            matched = {count + 1 for count in matched if count < len(names) and fnmatchcase(names[count], part)}
    return len(names) in matched


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
    """The front matter of a rule, and its body; with a `problem`, the other values keep their defaults."""

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
    """Parses the lines between `---` and `---` at the start of a rule; without them the whole text is the body.

    `description`, `globs` and `alwaysApply` are read, other keys ignored. Globs are a comma list or a YAML list, at
    most 128 after expansion of braces. Ambiguous input is a `problem`, never a guess.
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
    items, depth = [""], 0
    for sign in text:
        depth = max(0, depth + (sign == "{") - (sign == "}"))
        if sign == "," and depth == 0:
            items.append("")
        else:
            items[-1] += sign
    return [item.strip() for item in items]


def _unquoted(text: str) -> str | None:
    """Removes the quotes of a value; None if they aren't closed, or if another one is between them."""
    if not text.startswith(_QUOTES):
        return text
    inner = text[1:-1]
    return inner if len(text) > 1 and text[-1] == text[0] and text[0] not in inner else None


RULES_FOLDER: Final = ".cursor/rules"
RULE_SUFFIX: Final = ".mdc"

RuleKind = Literal["always", "globs", "described", "listed"]


class RuleFile(BaseModel):
    """A rules file; only the text as read is stored, everything else is derived.

    Attributes:
        path: Relative to the project's root; invisible characters are shown as code points.
        folder: The folder to which the file applies, relative to the root; "" is the root.
        raw: The text as read, at most 32 KiB, with U+FFFD for invalid bytes.
        unread_bytes: Bytes of the file after `raw`.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    folder: str = ""
    raw: str = ""
    unread_bytes: int = 0
    bad_count: int = 0
    refusal: PathReason | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.raw.encode()) + self.unread_bytes

    @cached_property
    def cleaned(self) -> CleanedText:
        """The text without invisible content, front matter included, with the counts of removed parts."""
        return clean_rules(self.raw)

    @cached_property
    def front_matter(self) -> FrontMatter:
        """The front matter; a file other than `.mdc` always applies."""
        text = self.cleaned.text
        return (
            parse_front_matter(text) if self.path.endswith(RULE_SUFFIX) else FrontMatter(always_apply=True, body=text)
        )

    @cached_property
    def text(self) -> str:
        return self.front_matter.body.strip("\n")

    @property
    def problem(self) -> PathReason | FrontMatterProblem | None:
        """Why an existing file isn't applied, or None."""
        return self.refusal or self.front_matter.problem

    @property
    def kind(self) -> RuleKind:
        """When it applies: always, for files that match its globs, when the model reads it, or never by itself."""
        front = self.front_matter
        if front.always_apply:
            return "always"
        if front.globs:
            return "globs"
        return "described" if front.description else "listed"

    @property
    def name(self) -> str:
        """The argument of `read_rule`: the path, without `.cursor/rules/` at the root and the suffix."""
        return self.path.removeprefix(f"{RULES_FOLDER}/").removesuffix(RULE_SUFFIX)

    @property
    def import_count(self) -> int:
        return count_imports(self.text)

    @cached_property
    def shown(self) -> str:
        """The text as read, for display: invisible characters as code points, and a note on the unread part."""
        text = show_unseen(self.raw)
        note = f"\n{note_bytes_left_out(self.unread_bytes, self.size_bytes)}" if self.unread_bytes else ""
        return text.removesuffix("\n") + note

    def is_for(self, current_file: str) -> bool:
        """True if a file is in the rules' folder; "" means no file, and counts as in the root."""
        return not self.folder or current_file.startswith(f"{self.folder}/")

    def applies_to(self, current_file: str) -> bool:
        """True if its text, or its description's line, is sent while this file is current."""
        if self.problem is not None or self.kind == "listed" or not self.is_for(current_file):
            return False
        inside = current_file.removeprefix(f"{self.folder}/") if self.folder else current_file
        return self.kind != "globs" or (bool(inside) and matches_globs(inside, self.front_matter.globs))
