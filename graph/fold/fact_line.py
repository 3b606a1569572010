"""The line of facts behind a summary: firm facts of what the user said, each with its clause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from graph.fold.fact_compare import HeldFacts
from graph.fold.fact_find import Fact, by_weight, fact_spans, is_instruction
from graph.fold.fact_key import key_of, narrow
from graph.fold.replaced import replaced_by

_MOST_CHARS: Final = 60
_AROUND_CHARS: Final = 200
_CLAUSE_END: Final = re.compile(
    r"[.!?。;](?:\s|$)|,(?![0-9])|:\s|\s[-–—]\s|\n|(?<=[고며])\s|(?<=는데|은데|니까|지만|아서|어서|니라|대신)\s"
    r"|\s(?:and|but|so)\s"
)
_COPULA: Final = re.compile(r"(?:이며|이고|이지만|인데|이에요|예요|입니다)$")
# Rows of tables, queries and logs are no words of the user.
_NO_WORDS: Final = re.compile(
    r"\s{0,20}(?:\||(?:SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|(?:LEFT |INNER )?JOIN|CREATE|ALTER|ORDER BY|GROUP BY)\s)"
    r"|[^|\n]{0,200}\|[^|\n]{0,200}\||[^\t\n]{0,200}\t[^\t\n]{0,200}\t"
)


def facts_for_line(
    facts: Iterable[Fact], said: Sequence[str], *, carried: Iterable[Fact] = (), later: Sequence[str] = ()
) -> tuple[Fact, ...]:
    """Returns the facts that a line may say, each with its clause as its text.

    Args:
        facts: What a summary lacks.
        said: The texts that the user wrote himself, or the summaries that are replaced, oldest first.
        carried: Facts of replaced summaries; a firm one needs no clause.
        later: Texts that stand behind; no value that they replace may be said.
    """
    gone = replaced_by(tuple(later), tuple(said))
    places = {
        fact.identity: (text, start, end)
        for text in said
        for start, end, fact in fact_spans(text)
        if fact.kind != "vague" and not _NO_WORDS.match(text, text.rfind("\n", 0, start) + 1)
    }
    told = {fact.identity for fact in carried} | set(places)
    chosen = []
    for fact in facts:
        place = places.get(fact.identity)
        told_words = fact.clause or fact.text
        clause = told_words if place is None or is_instruction(fact) else _clause(*place)
        if fact.identity in gone or not (fact.identity in told or is_instruction(fact)):
            continue
        is_out = bool(gone) and any(other.identity in gone for _, _, other in fact_spans(clause))
        chosen.append(fact if is_instruction(fact) or is_out else replace(fact, text=clause))
    return tuple(filter(stands_in_line, chosen))


def _clause(text: str, start: int, end: int) -> str:
    """Returns the clause around a fact; of a long one the words next to it."""
    shift = max(0, start - _AROUND_CHARS)
    plain = narrow(text[shift : end + _AROUND_CHARS])
    start, end = start - shift, end - shift
    first = max((match.end() for match in _CLAUSE_END.finditer(plain, 0, start)), default=0)
    found = _CLAUSE_END.search(plain, end)
    last = found.start() if found else len(plain)
    room = max(0, _MOST_CHARS - (end - start)) // 2
    if last - first > _MOST_CHARS:
        first = plain.find(" ", max(first, start - room), start) + 1 or max(first, start - room)
        last = max(end, plain.rfind(" ", end, end + room))
    return _COPULA.sub("", text[shift + first : shift + last].strip(" -*•#>\t"))


LINE_LABELS: Final[Mapping[Literal["ko", "en"], str]] = {"ko": "사실: ", "en": "Facts: "}


def facts_line(missing: Iterable[Fact], language: Literal["ko", "en"], fits: Callable[[str], bool]) -> str:
    """Writes facts in one line, `사실: …` or `Facts: …`, while `fits` accepts it; "" if none fits.

    Skipped are facts that don't fit or are in the line already, and those that say nothing alone (`stands_in_line`).
    Identifiers behind the same words stand together: "the ticket number is A B".
    """
    line, written = "", HeldFacts()
    groups: dict[str, tuple[str, ...]] = {}
    for fact in by_weight(filter(stands_in_line, missing)):
        if fact.text in line if is_instruction(fact) else line and written.has(fact):
            continue
        words, identifier = _divided(fact)
        longer_groups = {**groups, words: (*groups.get(words, ()), identifier)}
        longer = LINE_LABELS[language] + ", ".join(head + " ".join(each) for head, each in longer_groups.items())
        if fits(longer):
            line, groups = longer, longer_groups
            written.add(fact.text)
    return line


def _divided(fact: Fact) -> tuple[str, str]:
    """Returns the words before an identifier, which others may share, and it; another fact and ""."""
    identifier = fact.text.rsplit(None, 1)[-1]
    if fact.kind != "identifier" or key_of(identifier) != fact.key:
        return fact.text, ""
    return fact.text.removesuffix(identifier), identifier


def facts_of_line(line: str) -> Iterator[Fact]:
    """Yields the facts of a line, each with its clause."""
    for group in line.partition(": ")[2].split(", "):
        spans = fact_spans(group)
        words = group[: spans[0][0]] if spans else ""
        for _, _, fact in spans:
            yield replace(fact, clause=group if len(spans) == 1 else words + fact.text)


# Right or wrong alone; other facts need their clause, and counts and names the whole text.
_ALONE: Final = ("identifier", "email", "link", "path", "code")
_IN_CLAUSE: Final = ("money", "date")
_PHONE_DIGITS: Final = 7


def stands_in_line(fact: Fact) -> bool:
    """Returns True for what may stand in a line of facts.

    Rules, prohibitions, identifiers, addresses and phone numbers need no other words; money and dates do.
    """
    is_phone = fact.kind == "number" and sum(map(str.isdigit, fact.text)) >= _PHONE_DIGITS and "," not in fact.text
    is_with_words = fact.kind in _IN_CLAUSE and fact.key != key_of(fact.text)
    return is_instruction(fact) or fact.kind in _ALONE or is_phone or is_with_words
