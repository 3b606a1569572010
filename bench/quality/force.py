"""Which false statements of a good summary its review sees, by how they are false.

The summary of a block has the hand-written notes of its probes, a line each. One of them is changed by rule: another
figure, a negation dropped or added, a rule that only recommends, another option or person, a limit dropped; or a
consent is added that the user didn't give.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.quality.data import normalise
from bench.quality.probe import NAMES, Probe, Said, Talk, folded_talk, read_talks
from bench.report import Section, percent, table
from graph.fold.review import invented_facts
from graph.fold.spec import FoldSpec
from prompt.system.framing import Language

LEAST_SEEN: Final = 18 / 27
MOST_ALARMS: Final = 6 / 56
_RATE: Final = 0.3
# Figures are compared as such; of these the share must be seen.
FIGURES: Final = ("another number", "another date")
_METHOD: Final = """\
For each block of the two hand-written sets a good summary is made of the notes that stand with its probes, a line each,
and reviewed against its turns and the ledger of those before. Then one line is changed by rule, and it is seen if the
review names something that it didn't name before. "none": the {drafts} unchanged summaries ({notes} notes) in which the
review names anything. Numbers and dates stand apart: the share that is required is of statements alone. On the first run 68 of
147 were seen; whole kinds among the others (a name behind its role, what is declined) have been mended since."""
_LABELS: Final[Mapping[Language, str]] = {"ko": "({turn}턴) {note}", "en": "(turn {turn}) {note}"}
_STRANGERS: Final[Mapping[Language, str]] = {"ko": "설동욱", "en": "Marta Lindqvist"}
_NUMBER: Final = re.compile(r"\d[\d,.:]*\d|\d")
_DAY: Final[Mapping[Language, re.Pattern[str]]] = {
    "ko": re.compile(r"\d{1,2}월 (?P<day>\d{1,2})일"),
    "en": re.compile(r"\b(?P<day>\d{1,2}) (?:March|April|May|June)\b"),
}
_SHIFTED_DAYS: Final = 3
_DAYS: Final = 28
_Changes = Sequence[tuple[str, str]]
Change = Callable[[Probe, Said, Talk], str]
"""Makes the note of what was said false; "" if it can't."""
_DROPPED: Final[Mapping[Language, _Changes]] = {
    "ko": (
        (r"바꾸지 않고 그대로 둠", "바꾸기로 함"),
        (r"절대 안 됨", "해도 됨"),
        (r"(?:금지|규칙): (.*)지 않음", r"결정: \1기로 함"),
        (r"지 않기로 함", "기로 함"),
    ),
    "en": (
        (r"\bnever (\w+)", r"\1"),
        (r"\bdon't (\w+)", r"\1"),
        (r"\bno more than", "more than"),
        (r"\bleave the (.*) alone", r"change the \1"),
        (r"\bno deploys", "deploys are fine"),
        (r"\bno (\w+)", r"a \1"),
    ),
}
_ADDED: Final[Mapping[Language, _Changes]] = {
    "ko": (
        (r"결정: (.*?)(?:로 통일|으로 확정)\.", r"결정: \1 안 쓰기로 함."),
        (r"결정: (.*[^함)])\.", r"결정: \1 안 하기로 함."),
        (r"반드시 (.*?)(?:만|으로 시작|로 시작)\.", r"\1 쓰지 않음."),
        (r"선호: (.*)\.", r"\1 선호하지 않음."),
    ),
    "en": (
        (r"\balways write", "never write"),
        (r"\bmust\b", "must not"),
        (r"Decided: (?!no\b)", "Decided: not "),
        (r"Prefers", "Doesn't prefer"),
        (r"Likes", "Doesn't like"),
        (r"\bonly (\w+) may", r"\1 may not"),
    ),
}
_SOFTENED: Final[Mapping[Language, _Changes]] = {
    "ko": (
        (r"절대 안 됨", "되도록 피하는 게 좋음"),
        (r"(?:금지|규칙): (.*)지 않음", r"권고: \1지 않는 게 좋음"),
        (r"반드시 ", "되도록 "),
        (r"항상 ", "웬만하면 "),
    ),
    "en": (
        (r"\bnever ", "rather not "),
        (r"\bmust\b", "should"),
        (r"\balways ", "preferably "),
        (r"\bdon't ", "better not "),
        (r"\bno more than", "ideally not more than"),
        (r"\bleave ", "preferably leave "),
        (r"\bonly (\w+) may", r"ideally \1 would"),
    ),
}
_UNLIMITED: Final[Mapping[Language, _Changes]] = {
    "ko": ((r"(?:\d+월 \d+일|하자 점검이 끝날 때)까지 ", ""),),
    "en": ((r" until [^.]+", ""),),
}


class Mutation(NamedTuple):
    """A good summary's line and what stands in its place; an added line stands in the place of none."""

    force: str
    block: FoldSpec
    good: tuple[str, ...]
    line: str
    wrong: str

    @property
    def text(self) -> str:
        lines = [self.wrong if line == self.line else line for line in self.good]
        return "\n".join(lines if self.line else [*lines, self.wrong])

    @property
    def is_seen(self) -> bool:
        known = invented_facts("\n".join(self.good), self.block)
        return bool(set(invented_facts(self.text, self.block)) - set(known))


class Draft(NamedTuple):
    """A block and the lines of its good summary, with the probe and what each line says of it."""

    block: FoldSpec
    lines: Mapping[str, tuple[Probe, Said]]

    @property
    def alarms(self) -> tuple[str, ...]:
        return invented_facts("\n".join(self.lines), self.block)


def drafts_of(talk: Talk) -> list[Draft]:
    notes = [(probe, said) for probe in talk.probes for said in (probe.said, probe.now) if said]
    drafts = []
    for block in folded_talk(talk, _RATE).specs:
        told = sorted((each for each in notes if each[1].turn in block.turns), key=lambda each: each[1].turn)
        lines = {_LABELS[talk.language].format(turn=said.turn, note=said.note): (probe, said) for probe, said in told}
        drafts.append(Draft(block, lines))
    return drafts


def mutations_of(talk: Talk) -> Iterator[Mutation]:
    """Yields each line of each good summary in every way that it can be made false."""
    for block, lines in drafts_of(talk):
        good = tuple(lines)
        for line, (probe, said) in lines.items():
            for force, change in FORCES.items():
                note = change(probe, said, talk)
                if note and note != said.note:
                    yield Mutation(force, block, good, line, line.replace(said.note, note))
        for turn, consent in talk.consents:
            if turn in block.turns:
                yield Mutation(CONSENT, block, good, "", _LABELS[talk.language].format(turn=turn, note=consent))


def forces(_: Path) -> Section:
    """Measures which false statements are seen, by force, and the alarms on good summaries."""
    seen: dict[str, Counter[str]] = {force: Counter() for force in (*FORCES, CONSENT)}
    made: dict[str, Counter[str]] = {force: Counter() for force in (*FORCES, CONSENT)}
    alarms, drafts, notes = Counter[str](), Counter[str](), 0
    for language in NAMES:
        for talk in read_talks(language):
            for mutation in mutations_of(talk):
                made[mutation.force][language] += 1
                seen[mutation.force][language] += mutation.is_seen
            for draft in drafts_of(talk):
                notes += len(draft.lines)
                drafts[language] += 1
                alarms[language] += bool(draft.alarms)
    told = [force for force in made if force not in FIGURES]

    def of(forces: Sequence[str]) -> list[str]:
        parts = [(_sum(seen, forces, each), _sum(made, forces, each)) for each in (("ko",), ("en",), ("ko", "en"))]
        return [f"{part} of {whole}" for part, whole in parts]

    rows = [[force, *of([force])] for force in made] + [["all statements", *of(told)]]
    of_drafts = [f"{alarms[language]} of {drafts[language]}" for language in NAMES]
    rows.append(["none: alarms", *of_drafts, f"{alarms.total()} of {drafts.total()}"])
    seen_share = _sum(seen, told, NAMES) / _sum(made, told, NAMES)
    alarm_share = alarms.total() / drafts.total()
    return Section(
        "False statements that the review sees",
        _METHOD.format(drafts=drafts.total(), notes=notes),
        list(table(["made false by", "Korean", "English", "both"], rows)),
        [
            (
                seen_share >= LEAST_SEEN,
                f"false statements of good summaries: {percent(seen_share)} are seen (at least 18 of 27)",
            ),
            (alarm_share <= MOST_ALARMS, f"good summaries: {percent(alarm_share)} raise an alarm (at most 6 of 56)"),
        ],
    )


def _sum(counts: Mapping[str, Counter[str]], names: Sequence[str], languages: Iterable[str]) -> int:
    return sum(counts[force][language] for force in names for language in languages)


def _another_number(probe: Probe, said: Said, talk: Talk) -> str:
    """Changes the first digit of the probe's number into one that nobody said."""
    if probe.kind != "number":
        return ""
    numbers = (match for match in _NUMBER.finditer(said.note) if normalise(match[0]) in said.words[-1])
    match = max(numbers, key=lambda match: len(match[0]))
    others = (f"{(int(match[0][0]) + step - 1) % 9 + 1}{match[0][1:]}" for step in range(1, 9))
    return _with_unsaid(said.note, match, others, talk)


def _another_date(_: Probe, said: Said, talk: Talk) -> str:
    match = _DAY[talk.language].search(said.note)
    if not match:
        return ""
    day, rest = match["day"], range(_SHIFTED_DAYS, _DAYS)
    others = (_moved(match, (int(day) + shift - 1) % _DAYS + 1) for shift in rest)
    return _with_unsaid(said.note, match, others, talk)


def _moved(match: re.Match[str], day: int) -> str:
    start, end = match.start("day") - match.start(), match.end("day") - match.start()
    return f"{match[0][:start]}{day}{match[0][end:]}"


def _with_unsaid(note: str, match: re.Match[str], others: Iterable[str], talk: Talk) -> str:
    """Returns a note with the first of these in the place of a match that nobody said, beside what stands there."""
    said = "\n".join(text for _, text in talk.said)
    start, end = match.span()
    sign, unit = note[max(0, start - 1) : start].strip(), note[end : end + 1].strip(" .,:")
    other = next(each for each in others if f"{sign}{each}{unit}" not in said)
    return f"{note[:start]}{other}{note[end:]}"


def _changed(changes: Mapping[Language, _Changes], kinds: Sequence[str]) -> Change:
    def change(probe: Probe, said: Said, talk: Talk) -> str:
        for pattern, wrong in changes[talk.language] if probe.kind in kinds else ():
            if re.search(pattern, said.note, re.IGNORECASE):
                return re.sub(pattern, wrong, said.note, count=1, flags=re.IGNORECASE)
        return ""

    return change


def _other_option(probe: Probe, said: Said, _: Talk) -> str:
    if not probe.other:
        return ""
    chosen, other = probe.other
    return said.note.replace(chosen, other)


def _other_person(_: Probe, said: Said, talk: Talk) -> str:
    named = [person for person in talk.people if person in said.note]
    others = [person for person in talk.people if person not in said.note]
    return said.note.replace(named[0], others[0]) if named else ""


def _stranger(_: Probe, said: Said, talk: Talk) -> str:
    named = [person for person in talk.people if person in said.note]
    return said.note.replace(named[0], _STRANGERS[talk.language]) if named else ""


CONSENT: Final = "consent invented"
FORCES: Final[Mapping[str, Change]] = {
    "another number": _another_number,
    "another date": _another_date,
    "negation dropped": _changed(_DROPPED, ("rule", "decision")),
    "negation added": _changed(_ADDED, ("rule", "decision", "preference")),
    "must becomes should": _changed(_SOFTENED, ("rule",)),
    "limit dropped": _changed(_UNLIMITED, ("rule",)),
    "another option": _other_option,
    "person swapped": _other_person,
    "person whom nobody named": _stranger,
}
