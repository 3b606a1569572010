"""What folds keep: answers of bfcl-memory, arguments of later tool calls of tau-bench, and facts of all data sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import starmap
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from bench.quality.contender import (
    AVERAGE,
    PICKED,
    RATES,
    SUM,
    WINDOW,
    Shorten,
    contenders,
    count_chars,
    named,
    picked,
    window,
)
from bench.quality.data import (
    Question,
    cut_json,
    has_answer,
    key_lines,
    normalise,
    read_marked,
    read_questions,
    read_runs,
    read_sessions,
)
from bench.report import Requirement, Section, percent, table
from graph.core.text import message_tokens
from graph.core.turn import split_turns, text_of
from graph.fold.extract import TermCounts, count_terms, extract_summary
from graph.fold.fact_compare import missing_from
from graph.fold.fact_find import facts_of
from graph.fold.fact_check import MOST_FACTS, check_facts
from graph.fold.review import Review
from graph.fold.spec import BLOCK_TURNS, FoldSpec, fold_of_messages, target_chars
from prompt.system.framing import Language

Talk = Sequence[AnyMessage]
WITHOUT = "picked sentences alone"
WITH = "with the facts step"
_AHEAD_OF_WINDOW = 0.15
_LEAST_ARGUMENTS = 0.95
_LEAST_IN_FORM = 0.9
_LEAST_NAMED = 0.75
_SENTENCES_A_TURN = 4
_SENTENCES = 1_200
_ANSWERS = """\
Data: bfcl-memory, English. All chats of one persona, in their order, are one session: {sessions} sessions, {turns}
turns of the user alone, {chars:,} characters. A question counts if one of its accepted answers stands literally in the
session near the words of its source quotation: n = {questions} of {all}. An answer is kept if it is still there
**with up to two words of its sentence on either side**, so that another "7" doesn't count; letter case, quotation marks
and dashes don't matter.

Each contender may keep the same share of the characters. Ours folds three turns at a time, knowing only what had been
said by then; the others choose from the whole session. `window`: the newest text. `random sentences`: ten draws with
fixed seeds, their average. `tf-idf`: each sentence a document, ranked by the average or the sum of its words' tf-idf.
The weights in `graph/core` were tuned on {tuned} of the questions (even first byte of the SHA-256 of the id), never on
the other {rest}. "size" is what was kept of the characters at 0.3."""
_ARGUMENTS = """\
Data: tau-bench, English, the first {runs} airline runs of gpt-4o with their tool results as they came (JSON), without
system messages: {chars:,} characters. For each tool call, the turns before its own are folded in threes, as the product
does. Each value of its arguments (text and numbers, nested ones too, at least two characters) that stands in these
folded turns is needed: n = {needs}; "only there" are those that the raw turns before the call don't have: n = {only}.
It is kept if the shortened text has it. Both are plain string containment at word boundaries, with no extractor of
ours; letter case, underscores and line breaks don't matter. Weights and rules were chosen by the figures of the even
runs (n = {tuned}) alone, not by those of the odd ones (n = {rest}). "named to the model": where a model writes the
summary, the facts that the request tells it to keep, in at most nine tenths of what is asked for."""
_RESULTS = """\
The same runs and the same count, with every tool result that is JSON written as other tools write theirs: as the text of
a list or dict of Python (the SQLite server of MCP), as a line for each key with its value (git, and most programs), and
as JSON of which only the first 700 characters came. What nobody sent isn't needed, so n differs."""
_FACTS = """\
Every three turns are folded by picked sentences, as above. Facts are what our own extractor finds in the source, the
{most} weightiest of a fold: these figures say what a fold keeps of them; what the extractor itself misses is the
section on marked entities. The facts step is `check_facts`; where it writes no line behind a summary, both figures
are the same. Data: {data}."""


class Need(NamedTuple):
    """An argument of a tool call whose value was said in a turn that is folded when the call is made.

    Attributes:
        folded_turns: How many turns are folded by then, a multiple of three.
        value: The normalised value.
        is_only_there: Whether the value isn't in the raw turns before the call too.
    """

    folded_turns: int
    value: str
    is_only_there: bool


class KeptFacts(NamedTuple):
    """Sums over the folds of a data set at one rate: folds, facts, and those kept without and with the facts step."""

    folds: int
    facts: int
    without: int
    with_step: int


Shares = tuple[float, ...]
"""Of several groups at one rate."""


def answers(folder: Path) -> Section:
    """Measures how many answers of bfcl-memory each contender keeps."""
    sessions = read_sessions(folder)
    questions, unlocated = read_questions(folder, sessions)
    kept = _by_contender(lambda way, rate: _kept_answers(sessions, questions, way, rate))
    tuned = sum(question.is_for_tuning for question in questions)
    rest = len(questions) - tuned
    method = _ANSWERS.format(
        sessions=len(sessions),
        turns=sum(map(len, sessions.values())),
        chars=sum(map(count_chars, sessions.values())),
        questions=len(questions),
        all=len(questions) + unlocated,
        tuned=tuned,
        rest=rest,
    )
    rates = " / ".join(map(str, RATES))
    head = [
        f"kept at {rates}",
        f"all (n = {tuned + rest})",
        f"not tuned on (n = {rest})",
        f"tuned on (n = {tuned})",
        "size",
    ]
    rows = (
        [_label(name), *_cells(by_rate)[:3], percent(by_rate[RATES.index(0.3)][3])] for name, by_rate in kept.items()
    )
    everything = {name: [shares[0] for shares in by_rate] for name, by_rate in kept.items()}
    return Section(
        "Answers that picked sentences keep",
        method,
        list(table(head, rows)),
        list(_check_answers(everything)),
        everything,
    )


def _kept_answers(sessions: Mapping[str, Talk], questions: Sequence[Question], way: Shorten, rate: float) -> Shares:
    """Returns the shares kept of all answers, of those that nothing was tuned on, of the others, and of the text."""
    texts = {name: way(messages, rate) for name, messages in sessions.items()}
    plain = {name: normalise(text) for name, text in texts.items()}
    found = [(question.is_for_tuning, has_answer(plain[question.session], question.answer)) for question in questions]
    size = sum(map(len, texts.values())) / max(1, sum(map(count_chars, sessions.values())))
    rest, tuned = ([hit for is_tuned, hit in found if is_tuned == half] for half in (False, True))
    return _share([hit for _, hit in found]), _share(rest), _share(tuned), size


def _check_answers(kept: Mapping[str, Sequence[float]]) -> Iterator[Requirement]:
    """Yields the requirements: as good as tf-idf at each rate, and ahead of the window by 15 points at 0.3 and 0.5."""
    for index, rate in enumerate(RATES):
        ours, best = kept[PICKED][index], max(kept[name][index] for name in (AVERAGE, SUM))
        yield ours >= best, f"answers at {rate}: picked sentences keep {ours:.0%}, the better tf-idf {best:.0%}"
    for index, rate in list(enumerate(RATES))[1:]:
        ours, newest = kept[PICKED][index], kept[WINDOW][index]
        yield (
            ours - newest >= _AHEAD_OF_WINDOW,
            f"answers at {rate}: picked sentences keep {ours:.0%}, the window {newest:.0%} (at least 15 points less)",
        )


def arguments(folder: Path) -> Section:
    """Measures how many arguments of later tool calls of tau-bench each contender keeps."""
    runs = read_runs(folder)
    needed = [list(_needs(run)) for run in runs]
    kept = _by_contender(lambda way, rate: _kept_arguments(runs, needed, way, rate))
    method = _ARGUMENTS.format(
        runs=len(runs),
        chars=sum(map(count_chars, runs)),
        needs=sum(map(len, needed)),
        only=sum(need.is_only_there for each in needed for need in each),
        tuned=sum(map(len, needed[::2])),
        rest=sum(map(len, needed[1::2])),
    )
    head = [f"kept at {' / '.join(map(str, RATES))}", "all", "only there", "odd runs", "even runs"]
    share = kept[PICKED][RATES.index(0.3)][0]
    told = [_kept_arguments(runs, needed, named, rate) for rate in RATES]
    rows = [*([_label(name), *_cells(by_rate)] for name, by_rate in kept.items()), ["named to the model", *_cells(told)]]
    told_share = told[RATES.index(0.3)][0]
    return Section(
        "Arguments of later tool calls that picked sentences keep",
        method,
        list(table(head, rows)),
        [
            (
                share >= _LEAST_ARGUMENTS,
                f"arguments at 0.3: picked sentences keep {share:.0%} (at least {_LEAST_ARGUMENTS:.0%})",
            ),
            (told_share >= _LEAST_NAMED, f"arguments at 0.3: {told_share:.0%} are named (at least {_LEAST_NAMED:.0%})"),
        ],
        {name: [shares[0] for shares in by_rate] for name, by_rate in kept.items()},
    )


def results(folder: Path) -> Section:
    """Measures the same where tools write their results in other forms."""
    rows, requirements = [], []
    for name, form in (("lists of Python", str), ("a line a key", key_lines), ("JSON, cut off", cut_json)):
        runs = read_runs(folder, form)
        needed = [list(_needs(run)) for run in runs]
        kept = {way.__name__: [_kept_arguments(runs, needed, way, rate) for rate in RATES] for way in (picked, window)}
        cells = [_cells(kept["picked"]), _cells(kept["window"])]
        rows.append([name, str(sum(map(len, needed))), cells[0][0], cells[0][2], cells[0][3], cells[1][0]])
        share = kept["picked"][RATES.index(0.3)][0]
        needs = f"arguments at 0.3, results as {name}: picked sentences keep {share:.0%} (at least {_LEAST_IN_FORM:.0%})"
        requirements.append((share >= _LEAST_IN_FORM, needs))
    head = ["results, kept at 0.1 / 0.3 / 0.5", "n", f"**{PICKED}**", "odd runs", "even runs", WINDOW]
    return Section("Arguments of later tool calls, by the form of results", _RESULTS, list(table(head, rows)), requirements)


def _needs(messages: Sequence[AnyMessage]) -> Iterator[Need]:
    """Yields the arguments that a fold must keep, in order; one whose value was never said before is left out."""
    turns = split_turns(messages)
    for number, turn in enumerate(turns, start=1):
        folded_turns = (number - 1) // BLOCK_TURNS * BLOCK_TURNS
        folded = _plain("\n".join(text_of(message) for old in turns[:folded_turns] for message in old))
        raw = [text_of(message) for old in turns[folded_turns : number - 1] for message in old]
        for message in turn:
            if isinstance(message, AIMessage):
                now = _plain("\n".join(raw))
                for call in message.tool_calls:
                    for value in _values(call["args"]):
                        if _has_value(folded, value):
                            yield Need(folded_turns, value, is_only_there=not _has_value(now, value))
            raw.append(text_of(message))


def _values(arguments: object) -> Iterator[str]:
    """Yields the normalised text and number values of a call's arguments, nested ones too; no single characters."""
    if isinstance(arguments, Mapping):
        arguments = list(arguments.values())
    if isinstance(arguments, list):
        for value in arguments:
            yield from _values(value)
    elif isinstance(arguments, str | int | float) and not isinstance(arguments, bool):
        value = _plain(str(arguments)).strip()
        if len(value) > 1:
            yield value


def _has_value(text: str, value: str) -> bool:
    """Whether a normalised text has the value, not as a part of a longer word or number."""
    return re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", text) is not None


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").split()).casefold()


def _kept_arguments(runs: Sequence[Talk], needed: Sequence[Sequence[Need]], way: Shorten, rate: float) -> Shares:
    """Returns the shares kept of all values, of those only there, of those of odd runs and of even runs."""
    kept: list[list[tuple[bool, bool]]] = []
    for run, wanted in zip(runs, needed, strict=True):
        turns = split_turns(run)

        @cache
        def shortened(folded_turns: int, turns: Sequence[Talk] = tuple(turns)) -> str:
            return _plain(way([message for turn in turns[:folded_turns] for message in turn], rate))

        kept.append([(need.is_only_there, _has_value(shortened(need.folded_turns), need.value)) for need in wanted])
    only = [hit for hits in kept for is_only_there, hit in hits if is_only_there]
    everything, rest, tuned = ([hit for hits in part for _, hit in hits] for part in (kept, kept[1::2], kept[::2]))
    return _share(everything), _share(only), _share(rest), _share(tuned)


def _by_contender(keep: Callable[[Shorten, float], Shares]) -> dict[str, list[Shares]]:
    """Returns by contender what it keeps at each rate, on average of its ways."""
    return {
        name: [tuple(map(mean, zip(*(keep(way, rate) for way in ways), strict=True))) for rate in RATES]
        for name, ways in contenders().items()
    }


def _cells(by_rate: Sequence[Shares]) -> list[str]:
    """Returns a cell for each group, with its shares at all rates."""
    return [" / ".join(map(percent, column)) for column in zip(*by_rate, strict=True)]


def _label(name: str) -> str:
    return f"**{name}**" if name == PICKED else name


def _share(hits: Sequence[bool]) -> float:
    return sum(hits) / max(1, len(hits))


def facts(folder: Path) -> Section:
    """Measures how many facts of its source a fold keeps, with and without the facts step behind it."""
    sentences = [marked.text for marked in read_marked(folder)[:_SENTENCES]]
    turns = [sentences[first : first + _SENTENCES_A_TURN] for first in range(0, len(sentences), _SENTENCES_A_TURN)]
    korean = f"klue-ner, {len(sentences):,} sentences, {_SENTENCES_A_TURN} a turn"
    sets: dict[str, tuple[Sequence[Talk], Language]] = {
        "bfcl-memory": ([*read_sessions(folder).values()], "en"),
        "the runs of tau-bench": (read_runs(folder), "en"),
        korean: ([[HumanMessage(" ".join(turn)) for turn in turns]], "ko"),
    }
    kept = {name: [_kept_facts(talks, rate, language) for rate in RATES] for name, (talks, language) in sets.items()}
    data = "; ".join(f"{name} ({each[0].facts:,} facts in {each[0].folds:,} folds)" for name, each in kept.items())
    whole = [KeptFacts(*map(sum, zip(*column, strict=True))) for column in zip(*kept.values(), strict=True)]
    head = [f"facts kept at {' / '.join(map(str, RATES))}", "n", WITHOUT, WITH]
    rows = []
    for name, by_rate in {**kept, "all": whole}.items():
        shares = [(each.without / max(1, each.facts), each.with_step / max(1, each.facts)) for each in by_rate]
        rows.append([name, f"{by_rate[0].facts:,}", *_cells(shares)])
    without, with_step = zip(*shares, strict=True)
    method = _FACTS.format(most=MOST_FACTS, data=data)
    return Section("Facts that folds keep", method, list(table(head, rows)), curves={WITH: with_step, WITHOUT: without})


def _kept_facts(talks: Sequence[Talk], rate: float, language: Language) -> KeptFacts:
    """Folds every three turns of these conversations and counts the facts of their sources that are still there."""
    counts = list(starmap(_count, (fold for talk in talks for fold in _folds(talk, rate, language))))
    return KeptFacts(len(counts), *(sum(column) for column in zip(*counts, strict=True)))


def _count(text: str, spec: FoldSpec) -> tuple[int, int, int]:
    found = facts_of(spec.messages)[:MOST_FACTS]
    with_line = check_facts(Review(text, "compressed"), spec).text
    return len(found), len(found) - len(missing_from(found, text)), len(found) - len(missing_from(found, with_line))


def _folds(talk: Talk, rate: float, language: Language) -> Iterator[tuple[str, FoldSpec]]:
    """Yields the picked text and the fold of each complete block, weighed by what had been said by then."""
    turns = split_turns(talk)
    counts = TermCounts(0, {})
    for first in range(0, len(turns) - BLOCK_TURNS + 1, BLOCK_TURNS):
        block = [message for turn in turns[first : first + BLOCK_TURNS] for message in turn]
        counts = count_terms(map(text_of, block), counts)
        target = target_chars(count_chars(block), rate)
        spec = fold_of_messages(block, target, rate=rate, language=language)
        spec = replace(spec, turns=tuple(range(first + 1, first + BLOCK_TURNS + 1)))
        yield extract_summary(block, target, counts=counts), spec
