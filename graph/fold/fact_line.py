"""The line of facts behind a summary: firm facts of what the user said, each with its clause."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, groupby
from typing import Final, Literal, NamedTuple

from graph.fold.fact_compare import present_in
from graph.fold.fact_find import Fact, by_weight, fact_spans, is_instruction
from graph.fold.fact_key import key_of, narrow
from graph.fold.fact_rule import instruction_key

_MOST_CHARS: Final = 60
_AROUND_CHARS: Final = 200
_BEFORE_CHARS: Final = 24
_MOST_NAMED: Final = 500
_CLAUSE_END: Final = re.compile(
    r"[.!?。;](?:\s|$)|,(?![0-9])|:\s|\s[-–—]\s|\n|(?<=[고며])\s|(?<=는데|은데|니까|지만|아서|어서|니라|대신)\s"
    r"|\s(?:and|but|so)\s"
)
_COPULA: Final = re.compile(r"(?:이며|이고|이지만|인데|이에요|예요|입니다)$")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s")
# Rows of tables, queries and logs are no words of the user.
_NO_WORDS: Final = re.compile(
    r"\s{0,20}(?:\||(?:SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|(?:LEFT |INNER )?JOIN|CREATE|ALTER|ORDER BY|GROUP BY)\s)"
    r"|[^|\n]{0,200}\|[^|\n]{0,200}\||[^\t\n]{0,200}\t[^\t\n]{0,200}\t"
)
_REPLACED_BEHIND: Final = re.compile(
    r"\s?(?:[이가은는을를]\s)?\s?(?:말고|아니라|아니고|아니에요|아닙니다|대신|취소|→|->)"
)
_REPLACED_BEFORE: Final = re.compile(
    r"(?:\bnot|instead of|rather than|no longer|forget|\(was|cancel|(?:moved|changed) from)"
    r"\s(?:the\s|on\s|at\s|for\s)?\Z",
    re.IGNORECASE,
)
_CORRECTS: Final = re.compile(
    r"정정|변경|바꿔|바꿀|바꾸|바뀌|바뀐|수정|취소|당겨|당길|미뤄|미룰|잘못|아니라|말고|대신"
    r"|(?<![A-Za-z])(?i:correct(?:ed|ion)|chang(?:ed?|ing)|actually|instead|make it|moved?|cancel(?:led)?|no longer"
    r"|wrong)(?![A-Za-z])"
)


class _Line(NamedTuple):
    """A line or a sentence, with start, end and fact of each of its facts."""

    text: str
    spans: Sequence[tuple[int, int, Fact]]


def facts_for_line(facts: Iterable[Fact], said: Sequence[str], *, carried: Iterable[Fact] = ()) -> tuple[Fact, ...]:
    """Returns the facts that a line may say, each with its clause as its text.

    Args:
        facts: What a summary lacks.
        said: The texts that the user wrote himself, or the summaries that are replaced, oldest first.
        carried: Facts of replaced summaries; a firm one needs no clause.
    """
    lines = [line for text in said for line in _lines(text)]
    gone = _perhaps_replaced(lines)
    places = {fact.identity: (line, start, end) for line, spans in lines for start, end, fact in spans}
    told = {fact.identity for fact in carried} | set(places)
    chosen = []
    for fact in facts:
        place = places.get(fact.identity)
        clause = fact.text if place is None or is_instruction(fact) else _clause(*place)
        if fact.identity in gone or fact.identity not in told:
            continue
        is_out = bool(gone) and any(other.identity in gone for _, _, other in fact_spans(clause))
        chosen.append(fact if is_instruction(fact) or is_out else replace(fact, text=clause))
    return tuple(filter(stands_in_line, chosen))


def _perhaps_replaced(lines: Sequence[_Line]) -> frozenset[tuple[str, str]]:
    """Returns the identities of the facts that a later sentence may replace.

    It says so ("3일 말고 5일", "not 3 but 5"), or it corrects something: then earlier facts of the same kind about the
    same thing are replaced. In doubt a fact is, too: it had better be in no line than be wrong in one.
    """
    gone: set[tuple[str, str]] = set()
    named: list[tuple[Fact, str]] = []
    for sentence, spans in (part for line in lines for part in _sentences(line)):
        replaced = {fact.identity for start, end, fact in spans if _is_replaced(sentence, start, end, fact)}
        current = {fact.identity: fact.kind for _, _, fact in spans if fact.identity not in replaced}
        if _CORRECTS.search(sentence):
            kinds, about = set(current.values()), _words(sentence)
            earlier = (each for each in named[-_MOST_NAMED:] if each[0].kind in kinds)
            replaced |= {fact.identity for fact, said in earlier if about & _words(said) - set(fact.key.split("|"))}
        gone = (gone | replaced).difference(current)
        named += [(fact, sentence) for _, _, fact in spans]
    return frozenset(gone)


@lru_cache(maxsize=_MOST_NAMED)
def _words(sentence: str) -> frozenset[str]:
    return frozenset(instruction_key(sentence).split("|"))


def _is_replaced(sentence: str, start: int, end: int, fact: Fact) -> bool:
    if is_instruction(fact):
        return False
    before = sentence[max(0, start - _BEFORE_CHARS) : start]
    return bool(_REPLACED_BEHIND.match(sentence, end) or _REPLACED_BEFORE.search(before))


def _lines(text: str) -> Iterator[_Line]:
    lines = text.split("\n")
    ends = list(accumulate(len(line) + 1 for line in lines))
    told = [span for span in fact_spans(text) if span[2].kind != "vague"]
    for index, spans in groupby(told, key=lambda span: bisect_right(ends, span[0])):
        line, start = lines[index], ends[index] - len(lines[index]) - 1
        if not _NO_WORDS.match(line):
            yield _Line(line, [(first - start, last - start, fact) for first, last, fact in spans])


def _sentences(line: _Line) -> Iterator[_Line]:
    ends = [*(match.end() for match in _SENTENCE_END.finditer(line.text)), len(line.text)]
    for index, spans in groupby(line.spans, key=lambda span: bisect_right(ends, span[0])):
        start = ends[index - 1] if index else 0
        yield _Line(
            line.text[start : ends[index]], [(first - start, last - start, fact) for first, last, fact in spans]
        )


def _clause(line: str, start: int, end: int) -> str:
    """Returns the clause around a fact; of a long one the words next to it."""
    shift = max(0, start - _AROUND_CHARS)
    plain = narrow(line[shift : end + _AROUND_CHARS])
    start, end = start - shift, end - shift
    first = max((match.end() for match in _CLAUSE_END.finditer(plain, 0, start)), default=0)
    found = _CLAUSE_END.search(plain, end)
    last = found.start() if found else len(plain)
    room = max(0, _MOST_CHARS - (end - start)) // 2
    if last - first > _MOST_CHARS:
        first = plain.find(" ", max(first, start - room), start) + 1 or max(first, start - room)
        last = max(end, plain.rfind(" ", end, end + room))
    return _COPULA.sub("", line[shift + first : shift + last].strip(" -*•#>\t"))


LINE_LABELS: Final[Mapping[Literal["ko", "en"], str]] = {"ko": "사실: ", "en": "Facts: "}


class FactLine(NamedTuple):
    """A line of facts, "" if none fits, and the facts in it, in order."""

    text: str
    facts: tuple[Fact, ...]


def facts_line(missing: Iterable[Fact], language: Literal["ko", "en"], max_chars: int) -> FactLine:
    """Writes facts in one line, `사실: …` or `Facts: …`, in at most `max_chars` characters.

    Skipped are facts that don't fit or are in the line already, and those that say nothing alone (`stands_in_line`).
    """
    return line_within(missing, language, lambda line, _: len(line) <= max_chars)


def line_within(missing: Iterable[Fact], language: Literal["ko", "en"], fits: Callable[[str, Fact], bool]) -> FactLine:
    """Writes the same line while `fits` accepts it; `fits` gets the longer line and the fact added to it."""
    line = ""
    taken: list[Fact] = []
    last: Fact | None = None
    for fact in by_weight(filter(stands_in_line, missing)):
        if fact.text in line if is_instruction(fact) else line and present_in([fact], line):
            taken.append(fact)
            continue
        longer = LINE_LABELS[language] + fact.text if last is None else f"{line}{_between(last, fact)}{fact.text}"
        if fits(longer, fact):
            line, last = longer, fact
            taken.append(fact)
    return FactLine(line, tuple(taken))


# Right or wrong alone; other facts need their clause, and counts and names the whole text.
_ALONE: Final = ("identifier", "email", "link", "path", "code")
_IN_CLAUSE: Final = ("money", "date")
_PHONE_DIGITS: Final = 7


def is_said_alone(fact: Fact) -> bool:
    """Returns True for rules, prohibitions, identifiers, addresses and phone numbers, which need no other words."""
    digits = sum(map(str.isdigit, fact.text))
    is_phone = fact.kind == "number" and digits >= _PHONE_DIGITS and "," not in fact.text
    return is_instruction(fact) or fact.kind in _ALONE or is_phone


def stands_in_line(fact: Fact) -> bool:
    """Returns True for what may stand in a line of facts: what is said alone, money and dates with more words."""
    return is_said_alone(fact) or (fact.kind in _IN_CLAUSE and fact.key != key_of(fact.text))


def _between(last: Fact, fact: Fact) -> str:
    """Returns the separator of two facts: a space between identifiers, which takes the fewest tokens, else ", "."""
    is_list = last.kind == fact.kind == "identifier" and not any(char.isspace() for char in last.text + fact.text)
    return " " if is_list else ", "
