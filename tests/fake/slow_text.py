"""Makes texts that cost a regular expression as much time as any: out of the expression itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from re import _parser  # its public name, sre_parse, is deprecated
from typing import Any, Final, NamedTuple

# A repetition of fewer is no loop.
_LEAST_TIMES: Final = 5
_GENERIC: Final = " \n\t0aA가ㄱ漢é_-.,:;!?\"'`“”「」()[]{}<>/\\|*#=+@%$&~^\u200b\x00"
_GENERIC_PUMPS: Final = ("1,", "12 ", "a, ", "a b ", "<a ", "“a", "a\t", "\r\n", "- ", "> ", "a.", "1.", "가 ")
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
_LAST_IS_INNER: Final = _REPEATS | {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}

Node = tuple[Any, Any]
"""An operation of a parsed expression and its argument, as `re` keeps them."""


class SlowText(NamedTuple):
    """A text of any length: what it begins with, what is repeated, and the end."""

    before: str
    pump: str
    end: str

    def of(self, size: int) -> str:
        """Returns it with about `size` characters."""
        return self.before + self.pump * max(1, size // len(self.pump)) + self.end


class _Loop(NamedTuple):
    """A repetition: what leads to it, what it repeats, and what must follow."""

    before: str
    body: Sequence[Node]
    rest: Sequence[Node]


def slow_texts(pattern: str, flags: int) -> list[SlowText]:
    """Returns texts of each loop of an expression: what leads to it, what it takes, and an end that fails.

    An expression without a loop has none: it looks at a few characters from each place.
    """
    tree = list(_parser.parse(pattern, flags))
    has_lines = bool(flags & re.MULTILINE)
    signs = list(_different_signs(tree))
    texts = chain.from_iterable(_texts_of(loop, signs) for loop in _loops(tree, "a"))
    started = [started for sign in signs for loop in _loops(tree, sign) for started in _started(loop, sign)]
    again = (
        SlowText("", text, "") for start in dict.fromkeys(started) for text in (start, *[f"{start}\n"] * has_lines)
    )
    generic = (SlowText("", pump, end) for pump in (*signs, *_GENERIC_PUMPS) for end in ("", "\x00"))
    return list(dict.fromkeys(chain(texts, again, generic))) if any(_loops(tree, "a")) else []


def _texts_of(loop: _Loop, signs: Sequence[str]) -> Iterator[SlowText]:
    bodies = dict.fromkeys(_sample(way, sign, times) for way in _ways(loop.body) for sign in signs for times in (0, 3))
    pumps = [body for body in bodies if body]
    failing = islice((sign for sign in ("\x00", "0", "A", "!", " ", "\n") if sign not in bodies), 2)
    ends = dict.fromkeys(["", *failing, _sample(loop.rest, "a")[:-1] + "\x00"])
    for pump in pumps:
        yield from (SlowText(loop.before, pump, end) for end in ends)


def _started(loop: _Loop, sign: str) -> Iterator[str]:
    """Yields what begins a loop again and again."""
    yield from filter(None, (loop.before, *(loop.before + _sample(way, sign) for way in _ways(loop.body))))


def _loops(nodes: Sequence[Node], sign: str, before: str = "") -> Iterator[_Loop]:
    """Yields the loops of a sequence and of all within it; they are reached by this sign wherever it is allowed."""
    for index, (operation, argument) in enumerate(nodes):
        reached = before + _sample(nodes[:index], sign)
        if str(operation) in _REPEATS:
            _, most, body = argument
            if int(most) >= _LEAST_TIMES:
                yield _Loop(reached, list(body), nodes[index + 1 :])
        for inner in _inner(operation, argument):
            yield from _loops(inner, sign, reached)


def _inner(operation: object, argument: Any) -> list[list[Node]]:  # noqa: ANN401  # as the operation has it
    """Returns the sequences that an operation has within it."""
    name = str(operation)
    if name in _LAST_IS_INNER:
        return [list(argument[-1])]
    if name == "ATOMIC_GROUP":
        return [list(argument)]
    if name == "BRANCH":
        return [list(way) for way in argument[1]]
    return [list(way) for way in argument[1:] if way is not None] if name == "GROUPREF_EXISTS" else []


def _ways(body: Sequence[Node]) -> list[list[Node]]:
    """Returns what a loop may repeat: each of its alternatives."""
    if len(body) == 1:
        (operation, argument) = body[0]
        if str(operation) in {"BRANCH", "SUBPATTERN", "ATOMIC_GROUP"}:
            return [way for inner in _inner(operation, argument) for way in _ways(inner)]
    return [list(body)]


def _sample(nodes: Sequence[Node], sign: str, times: int = 0) -> str:
    """Returns a text that a sequence takes: of this sign wherever it is allowed, each repetition so many times."""
    return "".join(_sample_of(operation, argument, sign, times) for operation, argument in nodes)


def _sample_of(operation: object, argument: Any, sign: str, times: int) -> str:  # noqa: ANN401  # as above
    name = str(operation)
    if name == "LITERAL":
        return chr(argument)
    if name in {"NOT_LITERAL", "ANY", "IN"}:
        return next((each for each in (sign, *_GENERIC, *_named(argument)) if _takes(operation, argument, each)), "")
    if name in _REPEATS:
        least, most, body = argument
        return _sample(list(body), sign, times) * min(int(most), max(int(least), times))
    if name == "ASSERT_NOT" or (name == "ASSERT" and argument[0] > 0):
        return ""
    ways = [_sample(way, sign, times) for way in _inner(operation, argument)]
    return next((way for way in ways if way.startswith(sign)), "".join(ways[:1]))


def _takes(operation: object, argument: Any, sign: str) -> bool:  # noqa: ANN401  # as the operation has it
    """Whether a class of signs has this one; case aside, which only adds signs of the same kind."""
    name = str(operation)
    if name == "ANY":
        return sign != "\n"
    if name in {"LITERAL", "NOT_LITERAL"}:
        return bool(ord(sign) == argument) == (name == "LITERAL")
    if name == "RANGE":
        return bool(argument[0] <= ord(sign) <= argument[1])
    if name == "CATEGORY":
        return re.fullmatch(_CATEGORIES[str(argument)], sign) is not None
    is_negated = str(argument[0][0]) == "NEGATE"
    return any(_takes(within, value, sign) for within, value in argument[is_negated:]) != is_negated


def _named(argument: Any) -> Iterator[str]:  # noqa: ANN401  # as the operation has it
    """Yields the signs that a class names, of a range the first one."""
    for operation, value in argument if isinstance(argument, list) else ():
        if str(operation) == "LITERAL":
            yield chr(value)
        elif str(operation) == "RANGE":
            yield chr(value[0])


def _different_signs(tree: Sequence[Node]) -> Iterator[str]:
    """Yields signs of which each belongs to other classes of the expression than those before it."""
    classes = list(_classes(tree))
    seen: set[tuple[bool, ...]] = set()
    named = (sign for _, argument in classes for sign in _named(argument))
    for sign in chain(_GENERIC, named):
        belongs = tuple(_takes(operation, argument, sign) for operation, argument in classes)
        if belongs not in seen:
            seen.add(belongs)
            yield sign


def _classes(nodes: Sequence[Node]) -> Iterator[Node]:
    for operation, argument in nodes:
        if str(operation) in {"IN", "ANY", "NOT_LITERAL"}:
            yield operation, argument
        for inner in _inner(operation, argument):
            yield from _classes(inner)
