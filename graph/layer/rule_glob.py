"""Matches a path against the globs of a rule: `*`, `?`, `[…]`, `{a,b}`, `**` and a leading `!`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

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
        if any([_matches(names, pattern) for pattern in expand_braces(glob.removeprefix("!"))]):
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
