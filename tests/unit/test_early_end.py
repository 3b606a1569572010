from __future__ import annotations

import json

import pytest

from graph.model.early_end import EarlyEnd, EarlyEndSignal, repeats_itself

SENTENCE = "The customer service team has been happy to assist you with the move. "
PARAGRAPH = "".join(f"Point {name} of the list is about the {name} of the office, as was said. " for name in "abcdef")
TABLE = "| Name | Amount | Day |\n|---|---|---|\n" + "".join(
    f"| supplier {number} | {number * 7} | - |\n" for number in range(200)
)
CODE = "".join(f"    rows[{number}] = read(source, {number})\n" for number in range(200))


def ends_at(text: str, *, pieces: int = 7) -> int | None:
    """After how many characters a text is ended that comes in pieces of that size; None if it isn't."""
    end = EarlyEnd()
    for start in range(0, len(text), pieces):
        try:
            end.hear(text[start : start + pieces])
        except EarlyEndSignal:
            return start + pieces
    return None


@pytest.mark.parametrize(
    ("passage", "most_chars"),
    [
        (SENTENCE, 2_500),
        ("이 부분은 아직 정해지지 않았습니다. ", 2_500),
        ("I'm sorry.\n", 2_500),
        (PARAGRAPH, 4_600),
        ("네, ", 4_600),
        ("| | | |\n", 4_600),
        ("\n", 4_600),
        ("ㅋ", 4_600),
    ],
)
@pytest.mark.parametrize("pieces", [1, 7, 400])
def test_an_answer_that_only_repeats_itself_is_ended(passage: str, most_chars: int, pieces: int) -> None:
    text = "There were three points. First of all, " + passage * (9_000 // len(passage))
    assert (end := ends_at(text, pieces=pieces)) is not None
    assert end <= most_chars + pieces


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        CODE,
        "ㅋ" * 1_500 + "정말요?" + "ㅋ" * 1_500,
        ("-" * 400 + "\n") * 6,
        json.dumps([0] * 1_200),
        "".join(f"{number}. I must not plan work on a Friday.\n" for number in range(300)),
        SENTENCE * 20,
        (SENTENCE * 20 + PARAGRAPH) * 4,
        "\n\n".join([TABLE[:900], CODE[:900]] * 6),
        " " * 3_000 + "x",
    ],
    ids=[
        "table",
        "code",
        "laughter",
        "separators",
        "zeros",
        "numbered",
        "twenty times",
        "with a break",
        "both",
        "blanks",
    ],
)
def test_tables_code_lists_separators_and_laughter_are_not(text: str) -> None:
    assert ends_at(text) is None


def test_the_shortest_and_the_longest_passage_that_counts() -> None:
    assert repeats_itself("abc" * 700)
    assert not repeats_itself("ab" * 1_000)
    assert repeats_itself("ab" * 2_000)
    long = "".join(chr(0x4E00 + number) for number in range(666))
    assert repeats_itself(long * 7)
    assert not repeats_itself("".join(chr(0x4E00 + number) for number in range(668)) * 7)


def test_what_a_try_has_said_does_not_count_in_the_next_one() -> None:
    end = EarlyEnd()
    end.hear(SENTENCE * 25)
    end.restart()
    end.hear(SENTENCE * 25)
    limited = EarlyEnd(most_chars=10)
    limited.hear("0123456789")
    with pytest.raises(EarlyEndSignal):
        limited.hear("!")
