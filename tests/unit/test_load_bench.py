from __future__ import annotations

from pathlib import Path
from typing import Final, get_args

import pytest

from bench.load.chat import BrokenAnswerError, HeldChat, Sample
from bench.load.kept import lost_of
from bench.load.report import GUIDES, table, write
from bench.load.stage import Figures, Stage, percentile
from prompt.system.framing import Language

LANGUAGES: Final = pytest.mark.parametrize("language", get_args(Language))


def figures(programs: int, pages: int, *, milliseconds: float, memory: float) -> Figures:
    samples = [Sample(milliseconds * number, 2 * milliseconds * number) for number in range(1, 101)]
    stage = Stage("s", programs, pages, 100, 1.0)
    return Figures(stage, samples * bool(programs), samples * bool(pages), [], 0, 50.0, memory, 9)


MEASURED: Final = (
    figures(1, 0, milliseconds=1, memory=300),
    figures(0, 1, milliseconds=2, memory=310),
    figures(100, 0, milliseconds=5, memory=360),
    figures(100, 20, milliseconds=20, memory=500),
)


FIGURES: Final = """\
100 | 100 | 100 | 200
0 | 0 | 0 | 0
0 | 0 | 0 | 0
2.0 | 2.0 | 2.0 | 4.0
50 / 99 | – | 250 / 495 | 1,000 / 1,980
100 / 198 | – | 500 / 990 | 2,000 / 3,960
1.0 / 1.0 | – | 5.0 / 5.0 | 20.0 / 20.0
– | 100 / 198 | – | 1,000 / 1,980
– | 200 / 396 | – | 2,000 / 3,960
– | 1.0 / 1.0 | – | 10.0 / 10.0
9 | 9 | 9 | 9
300 | 310 | 360 | 500
– | – | 0.5 / – | – / 7.0
"""


@LANGUAGES
def test_the_table_has_the_figures_of_each_stage(language: Language) -> None:
    told = [line.split("|", 2)[2].strip(" |") for line in table(MEASURED, language).splitlines()[2:]]
    assert told == FIGURES.splitlines()


def test_both_guides_are_written_between_their_marks_alone(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in GUIDES.values():
        (tmp_path / name).write_text("before\n<!-- make load -->\nold\n<!-- /make load -->\nafter\n", encoding="utf-8")
    write(MEASURED, tmp_path)
    for language, name in GUIDES.items():
        marked = f"before\n<!-- make load -->\n{table(MEASURED, language)}\n<!-- /make load -->\nafter\n"
        assert (tmp_path / name).read_text(encoding="utf-8") == marked


def test_what_the_endpoint_took_is_not_counted() -> None:
    chat = HeldChat("u1", "token")
    name = chat.question(2).split()[0]
    chat.note(2, f"begin-{name}-500 and more end-{name}-3500", first_words=620.0, whole=3_700.0)
    assert chat.samples == [Sample(120.0, 200.0)]


@pytest.mark.parametrize("text", ["", "begin-u1t2-500 and", "and end-u1t2-3500", "begin-u1t1-500 end-u1t1-3500"])
def test_an_answer_without_its_beginning_or_end_is_an_error(text: str) -> None:
    chat = HeldChat("u1", "token")
    with pytest.raises(BrokenAnswerError):
        chat.note(2, text, first_words=620.0, whole=3_700.0)
    assert chat.samples == []


def asked(*turns: int) -> list[tuple[str, str]]:
    """Returns the questions of a user's turns, and the ends of their answers."""
    chat = HeldChat("u1", "token")
    return [(chat.question(turn), f"end-u1t{turn}-3500") for turn in turns]


@pytest.mark.parametrize(
    ("sessions", "errors", "lost"),
    [
        ([asked(1, 2, 3)], [], 0),
        ([asked(1, 3)], [], 1),
        ([asked(1, 2, 3, 3)], [], 1),
        ([asked(1, 2, 3, 4)], ["4 failed"], 0),
        ([asked(1, 2, 3), asked(1, 2)], ["a branch"], 0),
        ([asked(1, 2, 3), asked(1, 2)], [], 2),
        ([[*asked(1, 2), (asked(3)[0][0], "")]], ["3 failed"], 1),
        ([[*asked(1, 2, 3), ("u2t1 another's", "end-u2t1-3500")]], [], 1),
        ([], [], 3),
    ],
)
def test_what_is_missing_doubled_or_strange_is_lost(
    sessions: list[list[tuple[str, str]]], errors: list[str], lost: int
) -> None:
    assert lost_of(HeldChat("u1", "token", said=asked(1, 2, 3), errors=errors), sessions) == lost


@pytest.mark.parametrize(("share", "found"), [(0.5, 2.0), (0.51, 3.0), (0.99, 4.0), (0.25, 1.0)])
def test_a_percentile_is_one_of_the_values(share: float, found: float) -> None:
    assert percentile(share, [4.0, 1.0, 3.0, 2.0]) == found
