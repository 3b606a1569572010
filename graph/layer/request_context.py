"""Takes over what a request says of its context: which keys, how long, as which paths, and what stays of others."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import Final, Literal

from graph.core.text import plain_text
from graph.layer.context_key import CURRENT_FILE, PROJECT_ROOT, SELECTION, WORKING_DIRECTORY
from graph.layer.scope import ContextSnapshot
from prompt.system.context_layer import note_left_out
from prompt.system.framing import Language

RequestPolicy = Literal["merge", "request"]

SELECTION_CHARS: Final = 8_000
PATH_CHARS: Final = 4_096
_PATHS: Final = (PROJECT_ROOT, CURRENT_FILE)


def apply_request(
    stored: ContextSnapshot, request: Mapping[str, object], *, policy: RequestPolicy, language: Language
) -> dict[str, str]:
    """Returns the volatile values of a request.

    A strict allow-list: of a request `currentFile`, `selection` and `projectRoot` are taken, each a text; every other
    key is dropped, the server's own `workingDirectory` too. Relative paths are resolved against the server's directory,
    if that is among the stored values, by their letters alone: nothing is looked up on the disk. A path over 4,096
    characters is dropped, as its beginning would name another file. A selection has at most 8,000 characters, the note
    of what was cut included. A blank `currentFile` or `selection` takes back an earlier one; a blank `projectRoot` says
    nothing.

    Args:
        stored: The values so far; in a project the server's `workingDirectory` and `projectRoot` among them.
        request: What the caller says.
        policy: "merge" keeps what earlier requests said and this one doesn't; "request" doesn't. A selection isn't
            kept for another file.
        language: Of the note.
    """
    said = _accepted(request, stored.get(WORKING_DIRECTORY, ""), language)
    kept = {key: stored.get(key, "") for key in (WORKING_DIRECTORY, PROJECT_ROOT)}
    if policy == "merge":
        kept[CURRENT_FILE] = stored.get(CURRENT_FILE, "")
        if said.get(CURRENT_FILE, kept[CURRENT_FILE]) == kept[CURRENT_FILE]:
            kept[SELECTION] = stored.get(SELECTION, "")
    return {key: value for key, value in {**kept, **said}.items() if value}


def _accepted(request: Mapping[str, object], directory: str, language: Language) -> dict[str, str]:
    accepted: dict[str, str] = {}
    for key in (*_PATHS, SELECTION):
        value = request.get(key)
        if not isinstance(value, str):
            continue
        text = plain_text(value)
        if key == SELECTION:
            accepted[key] = _cut(text, language) if text.strip() else ""
        elif not text.strip():
            accepted |= {key: ""} if key == CURRENT_FILE else {}
        elif len(path := os.path.normpath(os.path.join(directory, text))) <= PATH_CHARS:  # noqa: PTH118  # a text, no file
            accepted[key] = path
    return accepted


def _cut(selection: str, language: Language) -> str:
    if len(selection) <= SELECTION_CHARS:
        return selection
    longest_note = note_left_out(len(selection), len(selection), language)
    kept_chars = SELECTION_CHARS - len(longest_note)
    return selection[:kept_chars] + note_left_out(len(selection) - kept_chars, len(selection), language)
