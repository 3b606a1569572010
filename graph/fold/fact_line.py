"""The line of facts behind a summary, and the facts and rules of records that a replacing one carries on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, Literal, cast

from graph.core.language import split_sentences
from graph.core.open_question import question_start, without_question
from graph.core.text import estimate_tokens
from graph.fold.fact_compare import HeldFacts
from graph.fold.fact_find import Fact, by_weight, fact_as_written, fact_spans, facts_in, is_instruction
from graph.fold.fact_key import key_of, narrow
from graph.fold.fact_rule import asked_clauses, clauses_of, is_about, lifts_rule
from graph.fold.replaced import replaced_by, superseded
from graph.value.record import LedgerLine, Record, WordKind

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


_LINE_SHARE: Final = 1 / 3
_MOST_LIFTING: Final = 100
# So many turns are merged again that their text is an outline: what is right or wrong letter for letter is all that can
# be kept of most.
_OLD_LINE_SHARE: Final = 2 / 3
# Labels of records and marks of turns: their numbers are no facts.
_MARK: Final = re.compile(
    r"\[(?:\d+-\d+턴|Turns \d+-\d+)\](?: \(\d{4}-\d\d-\d\d[0-9 ~-]{0,13}\))?"
    r"|\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)",
    re.IGNORECASE,
)


def without_marks(text: str) -> str:
    return _MARK.sub(" ", text).strip()


def line_in(summary: str) -> str:
    """Returns the line of facts behind the text of a summary, before its question; "" without one."""
    lines = summary.split("\n")
    places = question_start(lines) - 1, len(lines) - 1
    return next((lines[at] for at in places if at > 0 and lines[at].startswith(tuple(LINE_LABELS.values()))), "")


def without_line(summary: str) -> str:
    line = line_in(summary)
    text, _, question = summary.rpartition(f"\n{line}")
    return text + question if line else summary


def carried_facts(records: Sequence[Record], since: Iterable[str] = ()) -> tuple[Fact, ...]:
    """Returns the facts of records (oldest first), heaviest first; each once. `since` has the user's words after them.

    None is a rule of the user's, which the ledger keeps (`kept_lines`), a value that a later sentence replaced, or of a
    question that a later record answers. Weight depends on the kind alone. Among equal weights, the first facts of each
    record precede all second ones, the newest record first: so no record loses all of its facts to the others.
    """
    if not records:
        return ()
    found: dict[tuple[str, str], tuple[tuple[int, int], Fact]] = {}
    summaries = [*(without_question(record.summary) for record in records[:-1]), records[-1].summary]
    texts = [without_marks(without_line(summary)) for summary in summaries]
    readings = list(map(facts_in, texts))
    gone = superseded((*texts, *since))
    for age, (record, summary, reading) in enumerate(reversed([*zip(records, summaries, readings, strict=True)])):
        counts: Counter[float] = Counter()
        for fact in _held(record, reading, summary):
            if fact.identity in gone:
                continue
            rank = counts[fact.weight], age
            counts[fact.weight] += 1
            known = found.get(fact.identity)
            if known is None or rank < known[0]:
                found[fact.identity] = rank, fact
    return tuple(fact for _, fact in sorted(found.values(), key=lambda each: (-each[1].weight, each[0])))


def carried_line(
    facts: Iterable[Fact],
    language: Literal["ko", "en"],
    max_tokens: int,
    *,
    level: int = 1,
    fits: Callable[[str], bool] = lambda _: True,
) -> str:
    """Writes the line of facts that a record carries on: up to a third of its tokens, two of a merge of merges."""
    most_tokens = max_tokens * (_OLD_LINE_SHARE if level > 1 else _LINE_SHARE)
    return facts_line(facts, language, lambda line: estimate_tokens(line) <= most_tokens and fits(line))


def kept_lines(records: Sequence[Record]) -> tuple[LedgerLine, ...]:
    """Returns the lines of the user's word that records (oldest first) keep.

    Records made before there were lines have the user's rules among their facts, also those that they were found to
    lack; they count as said in the first turn. A later summary tells what was taken back.
    """
    found: list[LedgerLine] = []
    old: list[LedgerLine] = []
    for record in records:
        for sentence in islice(filter(lifts_rule, split_sentences(without_marks(record.summary))), _MOST_LIFTING):
            lifting = clauses_of(sentence)
            taken = (line for line in old if any(is_about(asked, lifting) for asked in asked_clauses(line.text)))
            found += (LedgerLine(record.turns[-1], "lifted", line.id) for line in taken)
        rules = () if record.ledger or record.days else tuple(_rules_of(record))
        old += rules
        found += (*record.ledger, *rules)
    return tuple(dict.fromkeys(found))


def _rules_of(record: Record) -> Iterator[LedgerLine]:
    """Yields the rules among a record's facts, but none that the user took out of the summary.

    A summary's own sentences may read like a rule that no user gave, so they count only if the record was never
    compared with its source.
    """
    compared = (*record.kept_facts, *(() if record.edited else record.missing_facts))
    facts = map(fact_as_written, compared) if compared else facts_in(without_marks(without_line(record.summary)))
    for fact in facts:
        if is_instruction(fact) and not fact.stands_for_nothing:
            yield LedgerLine(record.turns[0], cast("WordKind", fact.kind), fact.text)


def _held(record: Record, reading: Sequence[Fact], summary: str) -> Iterator[Fact]:
    """Yields the other facts of a record's summary: first the stored ones, then others found in the text and the line.

    Stored facts are the user's; without any, all may be.
    """
    facts = [fact for fact in reading if not is_instruction(fact)]
    kinds = {fact.key: fact for fact in facts}
    told = {fact.identity: fact for fact in facts_of_line(line_in(summary)) if not is_instruction(fact)}
    # What only the line has counts as missing.
    compared = (*record.kept_facts, *record.missing_facts)
    stored = (fact_as_written(each, kinds) for each in compared)
    for fact in filter(HeldFacts(summary).has, (fact for fact in stored if not is_instruction(fact))):
        yield replace(told.get(fact.identity, fact), text=fact.text, is_of_user=True)
    for fact in (*facts, *told.values()):
        if fact.kind != "vague":
            yield replace(fact, is_of_user=not compared)
