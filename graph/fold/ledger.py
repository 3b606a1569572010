"""What a fold adds to the ledger of the user's word, and what later sentences take back of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from langchain_core.messages import HumanMessage

from graph.core.language import own_lines, split_sentences, user_language
from graph.core.ledger import standing, with_room
from graph.core.turn import text_of
from graph.fold.fact_key import key_of
from graph.fold.fact_rule import asked_clauses, clauses_of, is_about, lifts_rule
from graph.fold.spec import FoldSpec
from graph.fold.user_word import people_in, user_words
from graph.value.record import LedgerLine

# A line of a draft that tells a rule of the user's: what the patterns miss, the summariser may name.
_TOLD: Final = re.compile(
    r"^\s{0,8}(?:[-*•]\s)?(?:\((?:\d+(?:-\d+)?턴|turns? \d+(?:-\d+)?)\)\s?)?\*{0,2}"
    r"(?:규칙|금지|선호|rule|prohibition|preference)s?\*{0,2}\s?[:：]\s*(?P<told>\S.*)$",
    re.IGNORECASE,
)
_CHANGES: Final = re.compile(
    r"말고|대신|아니[,라고요 ]|바꿀|바꿔|바꾸|바뀌|다시\s|이제는?\s|취소|없던\s?(?:걸|것)|그만|필요\s?없"
    r"|(?i:\binstead\b|\bchanged? (?:my|our) mind\b|\bactually\b|\bno longer\b|\bforget\b|\bnever ?mind\b|\bscrap\b"
    r"|\bis now\b|\b(?:don['’]t|do not|no) need\b|\bswitch\b|\bon second thought\b)"
)
# Of these only a word of the user's is a change: "이제 담당이 왔어요" tells.
_NOW: Final = re.compile(r"이제는?\s|다시\s|(?i:\bis now\b|\bactually\b)")
# What is to give way to something else.
_GIVES_WAY: Final = re.compile(
    r"(?P<old>[가-힣A-Za-z0-9]{1,20}(?:\s[가-힣A-Za-z0-9]{1,20})?)(?:\s?말고|\s대신|[이가]?\s아니라)"
    r"|(?i:\b(?:instead\sof|rather\sthan|not)\s(?:the\s|an?\s)?(?P<former>[\w-]{2,30}(?:\s[\w-]{2,30})?))"
)
_TOPIC: Final = re.compile(r"(?<![가-힣A-Za-z0-9])([가-힣A-Za-z0-9]{1,20}?)(?:은|는)\s")
_OPTION: Final = re.compile(r"[0-9]\s?(?:번|안)|(?i:\b(?:option|plan|variant|number)\s[0-9a-z]\b|\btake\s[0-9a-z]\b)")
_LONGEST_CHARS: Final = 300
# Of what is pasted no sentence changes anything.
_MOST_SENTENCES: Final = 500


class Told(NamedTuple):
    """A draft without the lines that tell rules which the user's messages have, and these sentences of the user."""

    text: str
    lines: tuple[LedgerLine, ...]


def ledger_of(spec: FoldSpec, told: Sequence[LedgerLine] = ()) -> tuple[LedgerLine, ...]:
    """Returns what the record of a fold keeps: its sources' lines, the user's words of the new turns, what they lift.

    Nothing if no ledger is kept beside the summary.
    """
    if spec.ledger is None:
        return ()
    found, script = [*spec.kept], _script(spec)
    for turn, said in _said(spec):
        held = standing([*spec.ledger, *found], {})
        people = [line for line in held if line.kind == "person"]
        for sentence in split_sentences(said)[:_MOST_SENTENCES] if held else ():
            # Somebody may have another role without a word of change.
            may_lift = _CHANGES.search(sentence) or lifts_rule(sentence)
            may_lift = may_lift or any(clause.permits for clause in clauses_of(sentence))
            lifted = (line for line in (held if may_lift else people) if _takes_back(sentence, line))
            found += (LedgerLine(turn, "lifted", line.id) for line in lifted)
        held = standing([*spec.ledger, *found], {})
        known = {(word.kind, word.key) for line in held for word in user_words(line.text, script)}
        new = [word for word in user_words(said, script) if (word.kind, word.key) not in known]
        found += (LedgerLine(turn, word.kind, word.text[:_LONGEST_CHARS]) for word in new)
        found += (line for line in told if line.turn == turn)
    return tuple(dict.fromkeys(found))


def without_room(spec: FoldSpec, ledger: Sequence[LedgerLine]) -> list[LedgerLine]:
    """Returns the lines that a fold's record must say itself: the ledger has no room for them, or none any more."""
    before = with_room(spec.ledger or (), spec.ledger_tokens, spec.language)
    after = standing([*(spec.ledger or ()), *ledger], {})
    held = with_room(after, spec.ledger_tokens, spec.language)
    return [line for line in after if line not in held and (line in ledger or line in before)]


def told_in(text: str, spec: FoldSpec) -> Told:
    """Reads the rules that a draft tells in lines of their own ("규칙: …", "Rule: …").

    A line stays in the text unless one sentence of the user has at least half of its words, and is kept instead.
    """
    if spec.ledger is None or not any(map(_TOLD.match, text.split("\n"))):
        return Told(text, ())
    retained, lines = [], []
    sentences = [(turn, sentence) for turn, said in _said(spec) for sentence in split_sentences(said)[:_MOST_SENTENCES]]
    for line in text.split("\n"):
        found = _TOLD.match(line)
        source = found and _source(found["told"], sentences)
        if source:
            lines.append(source)
        else:
            retained.append(line)
    return Told("\n".join(retained), tuple(lines)) if any(map(str.strip, retained)) else Told(text, ())


def _script(spec: FoldSpec) -> str:
    """Returns the script that the user writes; the session's language may be that of a program's prompt."""
    return user_language(spec.messages) or ("ko" if spec.language == "ko" else "latin")


def _said(spec: FoldSpec) -> Iterator[tuple[int, str]]:
    """Yields the turn and the own words of each message of the user's."""
    if spec.is_merge:
        return
    script = _script(spec)
    for message, turn in zip(spec.messages, spec.message_turns, strict=True):
        if isinstance(message, HumanMessage):
            yield turn, own_lines(text_of(message), script)


def _source(told: str, sentences: Sequence[tuple[int, str]]) -> LedgerLine | None:
    asked = clauses_of(told)
    words = {word for clause in asked for word in clause.words}
    is_negated = any(clause.is_negated for clause in asked)
    for turn, sentence in reversed(sentences):
        clauses = clauses_of(sentence)
        held = {word for word in words if any(word in clause.key for clause in clauses)}
        if words and 2 * len(held) >= len(words) and is_negated is any(clause.is_negated for clause in clauses):
            return LedgerLine(turn, "negation" if is_negated else "rule", sentence.strip(" .!?。！？")[:_LONGEST_CHARS])
    return None


def _takes_back(sentence: str, line: LedgerLine) -> bool:
    """Whether a later sentence of the user takes a line back: permits, lifts, changes or replaces it."""
    if sentence.strip().endswith(("?", "？")):
        return False
    if line.kind == "person":
        return _is_replaced(sentence, line)
    clauses = clauses_of(sentence)
    about = [asked for asked in asked_clauses(line.text) if is_about(asked, clauses)]
    if line.kind in ("negation", "rule"):
        permits = line.kind == "negation" and any(
            clause.permits and not clause.is_negated and is_about(asked, [clause])
            for asked in about
            for clause in clauses
        )
        return bool(about) and (permits or lifts_rule(sentence) or _gives_way(line.text, sentence))
    if not _CHANGES.search(_NOW.sub(" ", sentence)) and not (_CHANGES.search(sentence) and user_words(sentence)):
        return False
    is_option = bool(_OPTION.search(line.text)) and bool(_OPTION.search(sentence))
    is_same = is_option or not {*_TOPIC.findall(line.text)}.isdisjoint(_TOPIC.findall(sentence))
    return bool(about) or (line.kind == "choice" and is_same)


def _gives_way(rule: str, sentence: str) -> bool:
    """Whether a sentence wants something else in place of what a rule asks for."""
    key = key_of(rule)
    olds = {(match["old"] or match["former"]) for match in _GIVES_WAY.finditer(sentence)}
    return any(key_of(old) in key for old in olds) and not _GIVES_WAY.search(rule)


def _is_replaced(sentence: str, line: LedgerLine) -> bool:
    """Whether a sentence gives a person another role, or somebody else the role while it says that this changes."""
    changes = bool(_CHANGES.search(sentence))
    for person in people_in(line.text):
        for other in people_in(sentence):
            if other.name == person.name and other.role != person.role:
                return True
            if changes and other.role == person.role and other.name != person.name:
                return True
    return False
