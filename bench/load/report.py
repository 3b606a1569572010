"""The table of what was measured, in the words of either guide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.load.chat import Sample
from bench.load.stage import Figures, Stage, percentile
from prompt.system.framing import Language

GUIDES: Final[dict[Language, str]] = {"en": "docs/scale.md", "ko": "docs/scale.ko.md"}
_PLACE: Final = re.compile(r"(?<=<!-- make load -->\n).*?(?=<!-- /make load -->)", re.DOTALL)
_ROWS: Final[dict[Language, tuple[str, ...]]] = {
    "en": (
        "answers",
        "errors",
        "turns lost or doubled",
        "answers a second",
        "program, first words: median / p99, ms",
        "program, whole answer: median / p99, ms",
        "program, p99 ÷ that of one: first words / whole answer",
        "page, first words: median / p99, ms",
        "page, whole answer: median / p99, ms",
        "page, p99 ÷ that of one: first words / whole answer",
        "connections to the database at most",
        "memory of both servers at most, MB",
        "memory for each further program / page, MB",
    ),
    "ko": (
        "답",
        "오류",
        "잃거나 겹친 턴",
        "초당 답",
        "프로그램, 첫 글자: 중앙값 / p99, ms",
        "프로그램, 답 전체: 중앙값 / p99, ms",
        "프로그램, p99 ÷ 하나일 때의 p99: 첫 글자 / 답 전체",
        "페이지, 첫 글자: 중앙값 / p99, ms",
        "페이지, 답 전체: 중앙값 / p99, ms",
        "페이지, p99 ÷ 하나일 때의 p99: 첫 글자 / 답 전체",
        "데이터베이스 연결, 최대",
        "두 서버의 메모리, 최대 MB",
        "프로그램 / 페이지가 하나 늘 때의 메모리, MB",
    ),
}
_WORDS: Final[dict[Language, tuple[str, str]]] = {"en": ("programs", "pages"), "ko": ("프로그램", "페이지")}
_OF_ONE: Final = 2  # the first stages: one program, one page
_NONE: Final = "–"


def table(figures: Sequence[Figures], language: Language) -> str:
    """Returns the figures as a table, a stage a column; the first two are of one program and of one page."""
    columns = [[_head(each.stage, language), "---:", *_cells(each, figures)] for each in figures]
    titles = ["", "---", *_ROWS[language]]
    return "\n".join(f"| {' | '.join(row)} |" for row in zip(titles, *columns, strict=True))


def write(figures: Sequence[Figures], root: Path) -> None:
    """Puts the table into both guides, between their marks."""
    for language, name in GUIDES.items():
        guide = root / name
        # No word of the table has a backslash, which would mean something here.
        guide.write_text(
            _PLACE.sub(f"{table(figures, language)}\n", guide.read_text(encoding="utf-8")), encoding="utf-8"
        )


def _head(stage: Stage, language: Language) -> str:
    programs, pages = _WORDS[language]
    return ", ".join(f"{word}: {count}" for count, word in ((stage.programs, programs), (stage.pages, pages)) if count)


def _cells(each: Figures, figures: Sequence[Figures]) -> Iterator[str]:
    yield from (str(len(each.program) + len(each.page)), str(len(each.errors)), str(each.lost))
    yield f"{each.per_second:.1f}"
    for samples, of_one in ((each.program, figures[0].program), (each.page, figures[1].page)):
        yield from _times(samples)
        yield _ratios(samples, of_one)
    yield from (str(each.connections), f"{each.memory:.0f}", _memory_each(each, figures))


def _times(samples: Sequence[Sample]) -> Iterator[str]:
    for values in _by_sight(samples):
        yield f"{percentile(0.5, values):,.0f} / {percentile(0.99, values):,.0f}" if values else _NONE


def _ratios(samples: Sequence[Sample], of_one: Sequence[Sample]) -> str:
    if not samples or not of_one:
        return _NONE
    pairs = zip(_by_sight(samples), _by_sight(of_one), strict=True)
    return " / ".join(f"{percentile(0.99, these) / percentile(0.99, ones):.1f}" for these, ones in pairs)


def _by_sight(samples: Sequence[Sample]) -> tuple[list[float], list[float]]:
    return [each.first_words for each in samples], [each.whole for each in samples]


def _memory_each(each: Figures, figures: Sequence[Figures]) -> str:
    """Returns what each program and page needs that the stage before hadn't; a stage adds one kind alone."""
    number = figures.index(each)
    if number < _OF_ONE:
        return _NONE
    before = figures[number - 1]
    grown = each.memory - before.memory
    counts = (each.stage.programs, before.stage.programs), (each.stage.pages, before.stage.pages)
    return " / ".join(f"{grown / (now - then):.1f}" if now > then else _NONE for now, then in counts)
