"""The tool that reads what of a long file isn't sent: lines that have some words, or lines by number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from langchain_core.tools import BaseTool, ToolException

from graph.core.attached import Attachment
from graph.core.text import estimate_tokens
from graph.search.term import broad_words, cut_around, matches_well, weighed
from graph.tool.tool_context import build_tool
from prompt.system.framing import Language
from prompt.tool import words
from prompt.tool.words import DESCRIPTIONS, file_passage

_FOUND_TOKENS: Final = 1_200
_FOUND_PASSAGES: Final = 8
_AROUND: Final = 2
_NEIGHBOUR_SHARE: Final = 0.5
_LINE_CHARS: Final = 600
_NAMED: Final = 20
_RANGE: Final = re.compile(r"\D{0,20}(\d{1,9})(?:\D{1,9}(\d{1,9}))?\D{0,20}")

FileReader = Callable[[], Mapping[str, Attachment]]
"""Returns the long files of the chat by name; called when the tool is."""


class _Passage(NamedTuple):
    name: str
    lines: list[str]  # of the whole file
    first: int
    last: int  # or behind the end
    score: float

    @property
    def shown(self) -> list[str]:
        return self.lines[self.first - 1 : self.last]


def build_look_in_file(read: FileReader, result_chars: int, language: Language) -> BaseTool:
    """Returns `look_in_file`; its result is bounded as that of `recall` is, read by number as any tool's."""
    described = DESCRIPTIONS[language]

    def look_in_file(query: str = "", lines: str = "", name: str = "") -> str:
        files = _named(read(), name, language)
        if query.strip():
            passages = _found(files, query)
            return _rendered(passages, query, _FOUND_TOKENS, language) or words.file_nothing(
                query[:200], files, language
            )
        asked = _RANGE.fullmatch(lines.strip())
        if asked is None or len(files) != 1:
            raise ToolException(words.file_needs([*files][:_NAMED], language))
        (file,) = files.values()
        first = int(asked[1])
        return _lines(file, first, int(asked[2] or first), result_chars, language)

    arguments = {"query": described.file_query, "lines": described.file_lines, "name": described.file_name}
    return build_tool(look_in_file, described.file, **arguments)


def look_in_files(files: Mapping[str, Attachment], question: str, language: Language, *, max_tokens: int) -> str:
    """Returns the passages that match a question well, for a model that can't call the tool; "" for none."""
    matching = [passage for passage in _found(files, question) if matches_well("\n".join(passage.shown), question)]
    return _rendered(matching, question, min(_FOUND_TOKENS, max_tokens), language)


def _named(files: Mapping[str, Attachment], name: str, language: Language) -> Mapping[str, Attachment]:
    """Returns the file of a name, also in other letters or in part, or all files; raises `ToolException`."""
    wanted = name.strip().lower()
    near = {key: file for key, file in files.items() if wanted in key.lower()}
    if not near:
        raise ToolException(words.file_needs([*files][:_NAMED], language))
    return {key: file for key, file in near.items() if wanted == key.lower()} or near


def _found(files: Mapping[str, Attachment], query: str) -> list[_Passage]:
    """Returns passages with the query's words, the best first; a word counts the more, the fewer lines have it."""
    phrases = broad_words(query)
    surfaces = [found for _, found in weighed(phrases, [1.0] * len(phrases))]
    by_file: list[tuple[str, list[str], dict[int, set[int]]]] = []
    counts, line_count = [0] * len(surfaces), 0
    for name, file in files.items():
        lines, folded = file.text.split("\n"), file.text.lower().split("\n")
        hits: dict[int, set[int]] = {}
        for index, phrases_of in enumerate(surfaces):
            for number, line in enumerate(folded, 1):
                if any(surface in line for surface in phrases_of):
                    hits.setdefault(number, set()).add(index)
                    counts[index] += 1
        by_file.append((name, lines, hits))
        line_count += len(lines)
    weights = [math.log1p(line_count / count) if count else 0.0 for count in counts]
    ranked = sorted(
        (
            _Passage(name, lines, max(1, number - _AROUND), number + _AROUND, _score(number, hits, weights))
            for name, lines, hits in by_file
            for number in hits
        ),
        key=lambda passage: (-passage.score, passage.first),
    )
    return list(_apart(ranked))[:_FOUND_PASSAGES]


def _score(number: int, hits: Mapping[int, set[int]], weights: Sequence[float]) -> float:
    near: set[int] = set()
    for other in range(number - _AROUND, number + _AROUND + 1):
        near |= hits.get(other, set())
    own = hits[number]
    return sum(weights[index] * (1.0 if index in own else _NEIGHBOUR_SHARE) for index in near)


def _apart(ranked: Iterable[_Passage]) -> Iterator[_Passage]:
    """Yields passages none of whose middle lines an earlier one has shown."""
    shown: set[tuple[str, int]] = set()
    for passage in ranked:
        lines = {(passage.name, number) for number, _ in enumerate(passage.shown, passage.first)}
        if not lines <= shown and len(lines & shown) <= _AROUND:
            shown |= lines
            yield passage


def _rendered(passages: Iterable[_Passage], query: str, limit_tokens: int, language: Language) -> str:
    phrases = broad_words(query)
    parts: list[str] = []
    left = limit_tokens - estimate_tokens(words.FILE_WARNING[language])
    for passage in passages:
        shown = [cut_around(line, phrases, _LINE_CHARS) for line in passage.shown]
        part = file_passage(passage.name, len(passage.lines), [*enumerate(shown, passage.first)])
        left -= estimate_tokens(part)
        if left < 0:
            break
        parts.append(part)
    return "\n".join([words.FILE_WARNING[language], *parts]) if parts else ""


def _lines(file: Attachment, first: int, last: int, most_chars: int, language: Language) -> str:
    """Returns the lines of a range as far as they fit, and says where to read on."""
    lines = file.text.split("\n")
    if not 1 <= first <= len(lines):
        raise ToolException(words.file_has(file.name, len(lines), language))
    last = min(max(first, last), len(lines))
    room = most_chars - len(words.FILE_WARNING[language]) - len(words.file_more(last, last, language)) - 200
    shown: list[tuple[int, str]] = []
    for number in range(first, last + 1):
        line = lines[number - 1]
        room -= len(line) + len(str(number)) + 2
        if room < 0 and shown:
            break
        shown.append((number, line if room >= 0 else line[: max(1, len(line) + room)] + "…"))
    part = file_passage(file.name, len(lines), shown)
    more = words.file_more(shown[-1][0] + 1, last, language) if shown[-1][0] < last else ""
    return "\n".join(filter(None, [words.FILE_WARNING[language], part, more]))
