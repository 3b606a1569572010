"""What the model input has of sixty things said in Korean and sixty in English, by class, and after they changed.

A talk has `said` (who, text), `people` (those who have a role), `consents` (a block's turn, and what the user didn't
agree to) and `probes`. A probe has its `class`; the `turn` and the `words` of what was said, which one sentence there
has, the value last; `note`, how a good summary says it; `now`, the same of what replaced it later; `other`, the chosen
words of the note and those of what wasn't chosen; and `asked`, questions by kind.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from bench.quality.contender import RATES
from bench.quality.data import Question, has_answer, normalise, read_questions, read_sessions
from bench.quality.folded import Folded, Part, folded
from bench.quality.found import share_within
from bench.report import Requirement, Section, percent, table
from graph.core.turn import split_turns, text_of
from graph.server.settings import Settings
from graph.store.archive import Archive
from graph.store.database import utc_now
from graph.store.lease import LeaseStore
from graph.store.search import SearchStore
from graph.store.session import SessionStore
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.turn import TurnStore
from graph.tool.recall import build_recall
from graph.tool.tool_context import PastTurns
from graph.value.view import FACT_CLASSES, FactClass
from prompt.system.framing import Language
from prompt.tool.words import recalled_texts

_FOLDER: Final = Path(__file__).parent
SETS: Final[Mapping[Language, str]] = {"ko": "probe_ko.toml", "en": "probe_en.toml"}
NAMES: Final[Mapping[Language, str]] = {"ko": "Korean", "en": "English"}
# What a fact of these classes says stands in its value alone.
_VALUES: Final = ("number", "name", "path", "date")
_LEAST_KEPT: Final[Mapping[str, float]] = {"rule": 1.0, "preference": 0.9}
_LEAST_AMONG_TWO: Final = 0.7
_BENCH: Final = "bench"
ASKED: Final = {
    "word": "in the user's words",
    "paraphrase": "in other words",
    "who": "who it is",
    "day": "what is on a day",
    "before": "what it was before",
}
# Says of a value that it has changed.
_FORMER: Final = re.compile(
    r"이전|전에는|원래|처음|기존|바뀌|바꿔|바꾸|말고|아니라|에서 .{1,20}로 |→"
    r"|\b(?:before|former\w*|previous\w*|was|were|instead|old|no longer|until now|used to)\b"
)
_KEPT: Final = """\
Two sets written by hand for this bench, a Korean and an English one, each of two working conversations of 15 turns:
answers full of other numbers, pasted mails, results of tools, small talk. There are 60 probes in a set, each with the
words that one sentence must have. Every three turns are folded as the default strategy does without a model: picked
sentences, the line of facts, and the ledger of the user's word. A probe is kept if one sentence of the next input has
all its words; of one that changed later, the new value. On the first run 88% of the rules and 85% of the preferences
were kept at 0.3; the usual forms among those that weren't have been mended since. "named": where a model writes the summaries, what the requests
name to it, and the ledger; of a number, name, path or date the value suffices there.

bfcl-memory: the questions of the first section, by their answer: a date, a number, a name (written in capitals) or
other words; those whose quotation says what somebody likes or prefers are a class of their own. Kept as in the first
section, but in the default strategy's input, with ledger and merges."""
_UPDATES: Final = """\
The probes of these two sets that change later: a date is moved, an amount raised, somebody replaced, a rule or a taste
changed. "as the present one": the old value stands in the ledger, behind the new one, or without it, and its sentence
doesn't say that it has changed. In a record before that of the new value it stands with its turns: not counted."""
_RECALLED: Final = """\
The tool `recall`, over a real SQLite file with both sides of these talks; the query is the question as it stands. All
values stand in one sentence of their turn; of one that changed the newest turn is right, or the older one if the
question asks for what it was before. Turns count in the order in which the result shows them, first the two that it
shows whole; "value shown": the result has all words of the probe."""


class Said(NamedTuple):
    """What was said in a turn: the words that one sentence has, and how a good summary says it."""

    turn: int
    words: tuple[str, ...]
    note: str


class Probe(NamedTuple):
    """Something said that must not be lost; see the module."""

    kind: FactClass
    said: Said
    now: Said | None
    other: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]

    @property
    def newest(self) -> Said:
        return self.now or self.said


class Talk(NamedTuple):
    """A conversation with its probes; see the module."""

    name: str
    language: Language
    said: tuple[tuple[str, str], ...]
    people: tuple[str, ...]
    consents: tuple[tuple[int, str], ...]
    probes: tuple[Probe, ...]

    @property
    def messages(self) -> list[AnyMessage]:
        said = (each for index, (who, text) in enumerate(self.said) for each in _messages(who, text, index))
        return [each.model_copy(update={"id": f"message-{number}"}) for number, each in enumerate(said, start=1)]


@cache
def read_talks(language: Language) -> tuple[Talk, ...]:
    talks = tomllib.loads((_FOLDER / SETS[language]).read_text(encoding="utf-8"))["talk"]
    return tuple(
        Talk(
            name=talk["name"],
            language=talk["language"],
            said=tuple((who, text) for who, text in talk["said"]),
            people=tuple(talk["people"]),
            consents=tuple((turn, text) for turn, text in talk["consents"]),
            probes=tuple(map(_probe, talk["probes"])),
        )
        for talk in talks
    )


@cache
def folded_talk(talk: Talk, rate: float) -> Folded:
    return folded(talk.messages, rate, talk.language)


def _probe(entry: Mapping[str, Any]) -> Probe:
    now = entry.get("now")
    return Probe(
        entry["class"], _said(entry), now and _said(now), tuple(entry.get("other", ())), tuple(entry["asked"].items())
    )


def _said(entry: Mapping[str, Any]) -> Said:
    return Said(entry["turn"], tuple(map(normalise, entry["words"])), entry["note"])


def _messages(who: str, text: str, number: int) -> list[AnyMessage]:
    if who == "user":
        return [HumanMessage(text)]
    if who == "assistant":
        return [AIMessage(text)]
    call = {"id": str(number), "name": "look_up", "args": {}}
    return [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id=str(number))]


def stands(said: Said, sentences: Sequence[str]) -> bool:
    """Whether one of these sentences has all words of what was said."""
    return any(_has(sentence, said.words) for sentence in map(normalise, sentences))


def _has(sentence: str, words: Sequence[str]) -> bool:
    return all(map(sentence.__contains__, words))


def is_named(probe: Probe, named: Sequence[str]) -> bool:
    """Whether one of the named facts and lines has it; of a number, name, path or date the value."""
    said = probe.newest
    return stands(said, named) or (probe.kind in _VALUES and stands(said._replace(words=said.words[-1:]), named))


def by_class(folder: Path) -> Section:
    """Measures what the next input has of the probes, and of the answers of bfcl-memory, by class."""
    rows, requirements = [], []
    hits = {language: [_hits(language, rate) for rate in RATES] for language in SETS}
    for kind in (*FACT_CLASSES, "all"):
        of_kind = {language: [_of_kind(each, kind) for each in by_rate] for language, by_rate in hits.items()}
        both = [[*ko, *en] for ko, en in zip(*of_kind.values(), strict=True)]
        sent = [_cell([[is_sent for is_sent, _ in each] for each in by_rate]) for by_rate in (*of_kind.values(), both)]
        told = [_cell([[is_told for _, is_told in each] for each in by_rate]) for by_rate in of_kind.values()]
        rows.append([kind, str(len(both[0])), *sent, *told])
        if least := _LEAST_KEPT.get(kind):
            requirements.append(_requirement(kind, least, [is_sent for is_sent, _ in both[RATES.index(0.3)]]))
    rates = " / ".join(map(str, RATES))
    head = ["class of probe", "n", f"input at {rates}: Korean", "English", "both", "named: Korean", "named: English"]
    return Section(
        "What the input keeps, by class",
        _KEPT,
        [
            *table(head, rows),
            "",
            *table([f"answers of bfcl-memory at {rates}", "n", "input"], _rows_of_public(folder)),
        ],
        requirements,
    )


def _hits(language: Language, rate: float) -> list[tuple[Probe, bool, bool]]:
    """Returns each probe of a set, whether the input has it, and whether it is named."""
    found = []
    for talk in read_talks(language):
        fold = folded_talk(talk, rate)
        sentences, named = fold.sentences, fold.named
        found += [(probe, stands(probe.newest, sentences), is_named(probe, named)) for probe in talk.probes]
    return found


def _of_kind(hits: Sequence[tuple[Probe, bool, bool]], kind: str) -> list[tuple[bool, bool]]:
    return [(is_sent, is_told) for probe, is_sent, is_told in hits if kind in ("all", probe.kind)]


def _requirement(kind: str, least: float, hits: Sequence[bool]) -> Requirement:
    share = sum(hits) / len(hits)
    return share >= least, f"{kind}s at 0.3: {percent(share)} of {len(hits)} are in the input (at least {least:.0%})"


def _cell(by_rate: Sequence[Sequence[bool]]) -> str:
    return " / ".join(percent(sum(hits) / max(1, len(hits))) for hits in by_rate)


def _rows_of_public(folder: Path) -> Iterator[list[str]]:
    sessions = read_sessions(folder)
    kinds: dict[str, list[Question]] = defaultdict(list)
    for question in read_questions(folder, sessions)[0]:
        kinds[question.kind].append(question)
    texts = [
        {name: normalise("\n".join(folded(said, rate, "en").sentences)) for name, said in sessions.items()}
        for rate in RATES
    ]
    for kind, questions in sorted(kinds.items()):
        hits = [[has_answer(text[each.session], each.answer) for each in questions] for text in texts]
        yield [kind, str(len(questions)), _cell(hits)]


def updates(_: Path) -> Section:
    """Measures what the input says of values that changed."""
    rows = []
    for language, name in NAMES.items():
        changed = [(talk, each.said, each.now) for talk in read_talks(language) for each in talk.probes if each.now]
        for rate in RATES:
            states = [state_of(old, new, folded_talk(talk, rate).parts) for talk, old, new in changed]
            counts = [sum(getattr(state, field) for state in states) for field in State._fields]
            rows.append([f"{name}, {rate}", str(len(states)), *(percent(count / len(states)) for count in counts)])
    head = ["set, rate", "n", "new value stands", "old value stands", "… as the present one"]
    return Section("What is sent as present after an update", _UPDATES, list(table(head, rows)))


class State(NamedTuple):
    """What an input says of a value that changed."""

    has_new: bool
    has_old: bool
    is_stale: bool


def state_of(old_value: Said, new_value: Said, parts: Sequence[Part]) -> State:
    """Returns whether the new value stands, the old one, and the old one as the present one.

    So it stands in the ledger, or behind the new value, or without it: without a sign that it has changed.
    """
    places = [(part, normalise(sentence)) for part in parts for sentence in part.sentences]
    new = [index for index, (_, sentence) in enumerate(places) if _has(sentence, new_value.words)]
    old = [index for index, (_, sentence) in enumerate(places) if _has(sentence, old_value.words) and index not in new]
    is_stale = any(
        not _FORMER.search(places[index][1]) and (places[index][0].is_ledger or not new or index > max(new, default=0))
        for index in old
    )
    return State(bool(new), bool(old), is_stale)


def questions(_: Path) -> Section:
    """Measures which turns the tool `recall` shows first, by kind of question."""
    ranks: dict[str, dict[Language, list[int]]] = {kind: {} for kind in ASKED}
    shown: dict[str, list[bool]] = {kind: [] for kind in ASKED}
    for language in SETS:
        for talk in read_talks(language):
            with recall_over(talk) as ask:
                for probe in talk.probes:
                    for kind, question in probe.asked:
                        said = probe.said if kind == "before" else probe.newest
                        result = ask(question)
                        turns = shown_in(result)
                        rank = turns.index(said.turn) + 1 if said.turn in turns else 0
                        ranks[kind].setdefault(language, []).append(rank)
                        shown[kind].append(_has(normalise(result), said.words))
    rows = []
    for kind, words in ASKED.items():
        every = [rank for found in ranks[kind].values() for rank in found]
        cells = [_shares(ranks[kind].get(language, [])) for language in SETS]
        rows.append([words, str(len(every)), *cells, _shares(every), percent(sum(shown[kind]) / len(every))])
    every = [rank for of_kind in ranks.values() for found in of_kind.values() for rank in found]
    all_shown = [each for of_kind in shown.values() for each in of_kind]
    cells = [_shares([r for of_kind in ranks.values() for r in of_kind.get(language, [])]) for language in SETS]
    rows.append(["all", str(len(every)), *cells, _shares(every), percent(sum(all_shown) / len(every))])
    share = share_within(every, 2)
    return Section(
        "Turns that recall finds, by kind of question",
        _RECALLED,
        list(table(["first / first two", "n", "Korean", "English", "both", "value shown"], rows)),
        [
            (
                share >= _LEAST_AMONG_TWO,
                f"recall, all questions: {percent(share)} of the turns are among the first two (at least 70 %)",
            )
        ],
    )


def shown_in(result: str) -> list[int]:
    """Returns the turns that a result shows, the whole ones first, of which both sides stand there."""
    texts = Counter(text.turn for text in recalled_texts(result))
    return sorted(texts, key=lambda turn: texts[turn] == 1)


def _shares(ranks: Sequence[int]) -> str:
    return f"{percent(share_within(ranks, 1))} / {percent(share_within(ranks, 2))}"


@contextmanager
def recall_over(talk: Talk) -> Iterator[Callable[[str], str]]:
    """Yields the tool `recall` in the turn behind a talk, over a real archive and its index."""
    settings = Settings()
    with (
        TemporaryDirectory(prefix="turnfold-bench-") as folder,
        closing(open_sqlite(Path(folder) / "turnfold.db", busy_timeout_seconds=5)) as database,
    ):
        archive, turns, search = (
            Archive(database, clock=utc_now),
            TurnStore(database, clock=utc_now),
            SearchStore(database),
        )
        leases = LeaseStore(
            database, lease_seconds=settings.lease_seconds, heartbeat_seconds=settings.heartbeat_seconds
        )
        SessionStore(database).create(_BENCH, _BENCH, compression_rate=0.3, strategy="interval")
        lease = leases.acquire(_BENCH)
        said = split_turns(talk.messages)
        for first, *replies in said:
            question = HumanMessage(text_of(first), id=first.id)
            started, _ = turns.begin(lease, owner=_BENCH, message=question, model=_BENCH, is_casual=False)
            archive.append(lease, owner=_BENCH, turn=started.number, attempt=started.attempt, messages=replies)
        past = PastTurns(
            len(said) + 1,
            settings.tool_result_chars,
            find=lambda query, first, limit: search.turns(
                _BENCH, query, from_turn=first, before_turn=len(said) + 1, limit=limit
            ),
            read=partial(archive.live_turns, _BENCH),
        )
        tool = build_recall(past, talk.language)
        yield lambda question: str(tool.invoke({"query": question}))
        leases.close()
