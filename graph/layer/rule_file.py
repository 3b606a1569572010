"""One rules file of a project: what was read of it, and what follows from that."""

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
    """Whether a relative path matches one of the globs, and none that begins with `!`.

    `*` stays inside a name, `**` stands for any number of folders. A glob without a slash is for names in any folder,
    one that ends with a slash for everything below that folder.

    Raises:
        ValueError: See `expand_braces`.
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
    """Returns a glob once for each choice of its braces; those without a comma are no choice.

    Raises:
        ValueError: It has over 1,000 characters or stands for over 64 globs.
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
    matched = {0}  # how many names the parts so far may stand for
    for part in parts:
        if part == _ANY_FOLDERS:
            matched = set(range(min(matched), len(names) + 1)) if matched else matched
        else:
            # fnmatch never backtracks into an earlier star, so that no glob of a stranger can hold the server.
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


RULES_FOLDER: Final = ".cursor/rules"
RULE_SUFFIX: Final = ".mdc"

RuleKind = Literal["always", "globs", "described", "listed"]


class RuleFile(BaseModel):
    """A rules file; only what was read is stored, all else is derived from it.

    Attributes:
        path: Relative to the project's root; invisible characters in it stand as their code points.
        folder: The folder that it is for, relative to the root; "" is the root.
        raw: The text as it was read, at most 32 KiB of it.
        unread_bytes: Bytes of the file behind `raw`.
        bad_count: Places that were no characters; each is U+FFFD in `raw`.
        refusal: Why it wasn't read, or None.
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
        """Its size in UTF-8, what wasn't read included."""
        return len(self.raw.encode()) + self.unread_bytes

    @cached_property
    def cleaned(self) -> CleanedText:
        """The text without what people don't see, front matter included, with the counts of what was taken out."""
        return clean_rules(self.raw)

    @cached_property
    def front_matter(self) -> FrontMatter:
        """What the rule says of itself; a file that isn't a `.mdc` always applies."""
        text = self.cleaned.text
        return (
            parse_front_matter(text) if self.path.endswith(RULE_SUFFIX) else FrontMatter(always_apply=True, body=text)
        )

    @cached_property
    def text(self) -> str:
        """What the model may read of it."""
        return self.front_matter.body.strip("\n")

    @property
    def problem(self) -> PathReason | FrontMatterProblem | None:
        """Why it isn't applied though it is there, or None."""
        return self.refusal or self.front_matter.problem

    @property
    def kind(self) -> RuleKind:
        """When it applies: always, for files that its globs match, when the model reads it, or never by itself."""
        front = self.front_matter
        if front.always_apply:
            return "always"
        if front.globs:
            return "globs"
        return "described" if front.description else "listed"

    @property
    def name(self) -> str:
        """What `read_rule` takes: its path, without `.cursor/rules/` at the root and the suffix."""
        return self.path.removeprefix(f"{RULES_FOLDER}/").removesuffix(RULE_SUFFIX)

    @property
    def import_count(self) -> int:
        """How many imports stand in its text; none is followed."""
        return count_imports(self.text)

    @cached_property
    def shown(self) -> str:
        """The text as it was read, for people: invisible characters as code points, and how much wasn't read."""
        text = show_unseen(self.raw)
        note = f"\n{note_bytes_left_out(self.unread_bytes, self.size_bytes)}" if self.unread_bytes else ""
        return text.removesuffix("\n") + note

    def is_for(self, current_file: str) -> bool:
        """Whether a file lies in the folder that the rules are for; "" is no file, and in the root."""
        return not self.folder or current_file.startswith(f"{self.folder}/")

    def applies_to(self, current_file: str) -> bool:
        """Whether its text, or the line that describes it, is sent while the user is in that file."""
        if self.problem is not None or self.kind == "listed" or not self.is_for(current_file):
            return False
        inside = current_file.removeprefix(f"{self.folder}/") if self.folder else current_file
        return self.kind != "globs" or (bool(inside) and matches_globs(inside, self.front_matter.globs))
