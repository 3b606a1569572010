from __future__ import annotations

from graph.core.remembered import remembered


def test_what_was_read_of_a_text_is_remembered_of_thousands_of_short_ones_and_a_few_long_ones() -> None:
    read: list[str] = []

    @remembered
    def first_word(text: str) -> str:
        read.append(text)
        return text.partition(" ")[0]

    short = [f"{number} was said" for number in range(4_000)]
    long = [f"{number} {'word ' * 500}" for number in range(70)]
    for text in (*short, *long, *short, *long[-60:]):
        assert text.startswith(f"{first_word(text)} ")
    assert read == [*short, *long]
    first_word(long[0])
    assert read[-1] == long[0]


def test_the_same_text_with_other_arguments_is_read_again() -> None:
    read: list[str] = []

    @remembered
    def joined(text: str, other: str = "") -> str:
        read.append(text)
        return text + other

    assert [joined("a", "b"), joined("a", "b"), joined("a", "c"), joined("a")] == ["ab", "ab", "ac", "a"]
    assert read == ["a", "a", "a"]
