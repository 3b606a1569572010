"""Keeps a long file beside the chat instead of in each input.

The archive has the message's whole text (`message.whole_text`), so that a file is exported, branched and deleted with
its message. Sent, counted and folded are the file's beginning and contents; the model reads the rest with
`look_in_file`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from graph.core.attached import Attachment, map_attached, split_attached
from graph.core.text import estimate_tokens
from prompt.system.framing import CONTENTS_HEAD, SENT_NOTE, Language

MOST_WHOLE_CHARS: Final = 10 * 1024 * 1024
"""The largest message with its whole files: as many characters as an upload may have bytes."""

_LONG_SHARE: Final = 0.25  # of the window
_MESSAGE_SHARE: Final = 0.75
_BEGINNING_SHARE, _MOST_BEGINNING_TOKENS = 16, 2_000
_CONTENTS_SHARE, _MOST_CONTENTS_TOKENS = 32, 1_000
_HEADING_CHARS: Final = 120
_PAGE_LEVEL: Final = 9
_LISTED_SHARE: Final = 4
_MOST_HEADINGS: Final = 10_000  # thinned first: each halving weighs all again
_KNOWN_FILES: Final = 10
_HEADING: Final = re.compile(
    r"(?P<marks>#{1,6})[ \t]+\S"
    r"|(?P<page>— \d{1,5} —$)"
    r"|(?P<chapter>제\s?\d{1,4}\s?[편장]|(?i:chapter|part)\s+(?:\d{1,4}|[IVXLC]{1,7})\b)"
    r"|(?P<section>제\s?\d{1,4}\s?[절조]|(?i:section|article)\s+\d{1,4}\b)"
    r"|(?P<number>\d{1,3}(?:\.\d{1,3}){1,4}|\d{1,3}(?=\.))\.?[ \t]+[A-Z가-힣][^.!?,;:]{0,80}$"
)
_DEFINITION: Final = re.compile(
    r"(?:(?:export|default|public|private|abstract|async|static)\s+){0,4}"
    r"(?:class|def|function|fn|func|interface|struct|enum|trait|impl|type|CREATE\s+TABLE)\s+\S",
)
_CODE: Final = re.compile(
    r"\.(?:py|js|jsx|ts|tsx|java|kt|go|rs|rb|php|c|h|cc|cpp|hpp|cs|swift|scala|sql|sh)$", re.IGNORECASE
)


class Heading(NamedTuple):
    """A line of the contents: its number in the file, how deep it stands, and its text."""

    line: int
    level: int
    text: str


def sent_text(text: str, *, window_tokens: int, most_chars: int) -> str:
    """Returns the message as it is sent to a model: of long files the beginning and the contents."""

    def sent(files: Sequence[Attachment], language: Language) -> list[Attachment]:
        beside = max(0, len(text) - sum(len(file.text) for file in files))
        return sent_files(files, window_tokens=window_tokens, most_chars=max(0, most_chars - beside), language=language)

    return map_attached(text, sent)


def sent_files(
    files: Sequence[Attachment], *, window_tokens: int, most_chars: int, language: Language
) -> list[Attachment]:
    """Returns files as they are sent together: long is what takes a quarter of the window, or else doesn't fit."""
    sent, tokens = list(files), [_tokens(file.text) for file in files]
    by_size = sorted(range(len(files)), key=tokens.__getitem__, reverse=True)
    for index in by_size:
        fits = sum(tokens) <= window_tokens * _MESSAGE_SHARE and sum(len(file.text) for file in sent) <= most_chars
        if fits and tokens[index] <= window_tokens * _LONG_SHARE:
            break
        beginning = _beginning(files[index], window_tokens, language)
        if len(beginning.text) < len(files[index].text):
            sent[index], tokens[index] = beginning, _tokens(beginning.text)
    return sent


def with_whole_files(text: str, whole_text: str) -> str:
    """Returns an edited message with the whole files of the message before in place of their beginnings."""
    whole = {file.name: file for file in split_attached(whole_text)[1]}

    def restored(files: Sequence[Attachment], _: Language) -> list[Attachment]:
        return [whole.get(file.name, file) if file.sent_lines else file for file in files]

    return map_attached(text, restored)


def is_whole_of(whole_text: str, text: str) -> bool:
    """Returns True if a whole text says what a message says, but for files of which the message has the beginning."""
    (typed, whole), (sent_typed, sent) = split_attached(whole_text), split_attached(text)
    return typed == sent_typed and len(whole) == len(sent) and all(map(_is_beginning_of, sent, whole))


def _is_beginning_of(sent: Attachment, whole: Attachment) -> bool:
    return sent == whole or (sent.name == whole.name and bool(sent.sent_lines))


def contents_of(name: str, lines: Sequence[str]) -> list[Heading]:
    """Returns a file's headings: of Markdown, numbered ones, chapters and pages; of code what it defines."""
    if _CODE.search(name):
        defined = ((number, line) for number, line in enumerate(lines, 1) if _DEFINITION.match(line))
        return [Heading(number, 1, line[:_HEADING_CHARS].strip()) for number, line in defined]
    matches = [(number, line, found) for number, line in enumerate(lines, 1) if (found := _HEADING.match(line))]
    # Lines of a list or a log are numbered, too.
    is_listed = sum(bool(found["number"]) for _, _, found in matches) * _LISTED_SHARE > len(lines)
    return [
        Heading(number, _level(found), line[:_HEADING_CHARS].strip())
        for number, line, found in matches
        if not (found["number"] and is_listed)
    ]


def _level(heading: re.Match[str]) -> int:
    if heading["page"]:
        return _PAGE_LEVEL
    if heading["marks"]:
        return len(heading["marks"])
    if heading["number"]:
        return heading["number"].count(".") + 1
    return 1 if heading["chapter"] else 2


@lru_cache(maxsize=_KNOWN_FILES)  # the page draws its field often
def _tokens(text: str) -> int:
    return estimate_tokens(text)


@lru_cache(maxsize=_KNOWN_FILES)
def _beginning(file: Attachment, window_tokens: int, language: Language) -> Attachment:
    lines = file.text.split("\n")
    shown = _first_lines(lines, min(_MOST_BEGINNING_TOKENS, window_tokens // _BEGINNING_SHARE))
    note = SENT_NOTE[language].format(lines=len(shown), all=len(lines), chars=len(file.text))
    listed = _fitting(contents_of(file.name, lines), min(_MOST_CONTENTS_TOKENS, window_tokens // _CONTENTS_SHARE))
    head = [CONTENTS_HEAD[language]] if listed else []
    return Attachment(file.name, "\n".join([*shown, note, *head, *map(_listed, listed)]))


def _first_lines(lines: Sequence[str], most_tokens: int) -> list[str]:
    """Returns the lines that fit; of a first line that doesn't, its beginning."""
    shown: list[str] = []
    for line in lines:
        most_tokens -= estimate_tokens(line) + 1
        if most_tokens < 0:
            break
        shown.append(line)
    return shown or [f"{lines[0][: max(1, most_tokens + estimate_tokens(lines[0]))]}…"]


def _fitting(headings: Sequence[Heading], most_tokens: int) -> list[Heading]:
    """Returns the contents as deep as they fit; of too many of one level every second, fourth and so on."""
    left = list(headings[:: len(headings) // _MOST_HEADINGS + 1])
    while len(left) > 1 and estimate_tokens("\n".join(map(_listed, left))) > most_tokens:
        deepest = max(heading.level for heading in left)
        higher = [heading for heading in left if heading.level < deepest]
        left = higher if len(higher) > 1 else left[::2]
    return left


def _listed(heading: Heading) -> str:
    return f"{heading.line}: {heading.text}"


def long_files(texts: Iterable[str]) -> dict[str, Attachment]:
    """Returns the files of whole texts by name; of several of one name the newest, the others numbered."""
    found: dict[str, Attachment] = {}
    for text in texts:
        for file in split_attached(text)[1]:
            if (older := found.get(file.name)) is not None and older.text != file.text:
                number = next(at for at in range(1, len(found) + 2) if f"{file.name} ({at})" not in found)
                found[f"{file.name} ({number})"] = older
            found[file.name] = file
    return found
