"""Decides whether a draft summary may replace its source messages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.day import days_meant
from graph.core.language import is_written_in, own_lines, user_language, user_scripts
from graph.core.pasted import without_pasted
from graph.core.text import estimate_tokens
from graph.core.turn import telling_calls, text_of, without_days
from graph.fold.extract import cut_at_word
from graph.fold.fact_compare import HeldFacts, missing_from
from graph.fold.fact_find import Fact, facts_in, facts_of, is_instruction
from graph.fold.fact_line import stands_in_line, without_marks
from graph.fold.invented import invented_in
from graph.fold.listing import rows_of
from graph.fold.replaced import is_out, superseded_in
from graph.fold.shorten import shorten
from graph.fold.spec import MAX_SHARE, FoldSpec
from graph.fold.statement import reversed_in, softened_in, unsaid_in
from graph.value.record import RecordOutcome
from prompt.system.framing import SPEAKER, VERBATIM_NOTE, Language

# Facts are named up to this share of the length that is asked for, the heaviest first: notes have few words beside
# them, and may be longer than that.
_NAMED_SHARE: Final = 0.9
_MOST_NAMED: Final = 100
_MOST_TRIED: Final = 1_000
# A longer result of a tool is a listing.
_LISTING_CHARS: Final = 500
_HANGUL: Final = re.compile("[가-힣]")
_GONE_SHARE: Final = 1 / 3
_MOST_INVENTED: Final = 20
_MOST_INVENTED_CHARS: Final = 120
# Of a pasted book each figure is somewhere, and reading them all takes half a second.
_MOST_READ_CHARS: Final = 100_000


class Lack(NamedTuple):
    """Named facts missing from a draft, heaviest first.

    Attributes:
        is_large: A third of the user's are missing, so that a repair is asked for.
        is_fatal: More than a third are, which no repaired draft may lack.
        firm: Those of the user that are right or wrong alone: rules, identifiers, addresses, phone numbers.
    """

    missing: tuple[str, ...]
    is_large: bool
    is_fatal: bool = False
    firm: tuple[str, ...] = ()


def facts_to_name(
    messages: Sequence[AnyMessage], target_chars: int, language: Language, *, has_ledger: bool = False
) -> tuple[Fact, ...]:
    """Returns the heaviest facts that fit into nine tenths of a summary, the user's rules and prohibitions first.

    With a ledger, which keeps those, other facts alone.

    Previous summaries and pasted text aren't searched: a summary in the session's language can't quote the dates of a
    foreign letter as they are, and prohibitions in the letter aren't the user's. What long results of tools list comes
    behind what calls were given and all else.
    """
    script = script_of(messages, language)
    said = [message for message in messages if not isinstance(message, SystemMessage)]
    sources = [source for message in said if not _is_listing(message) for source in _told(message, script)]
    replaced = superseded_in(sources)
    found = (*facts_of(sources), *facts_of([message for message in said if _is_listing(message)]))
    facts = (fact for fact in found if not (is_out(fact, replaced) or fact.stands_for_nothing))
    facts = (fact for fact in facts if not (has_ledger and is_instruction(fact)))
    return _fitting((fact for fact in facts if script == "ko" or not _HANGUL.search(fact.text)), target_chars)


def _is_listing(message: AnyMessage) -> bool:
    return isinstance(message, ToolMessage) and len(text_of(message)) > _LISTING_CHARS


def _told(message: AnyMessage, script: str) -> Iterator[AnyMessage]:
    yield _own(message, script)
    for call in telling_calls(message):
        yield AIMessage("\n".join(value for row in rows_of(call["args"], "") for value in row.values))


# Measured on short blocks: a complete note of what was said takes 1.4 to 1.9 times the user's facts. Judged on whole
# conversations, 1.6 was enough in Korean; in English it cost a tenth of the facts, and 1.9 what the folds save.
NOTE_SHARE, _KOREAN_NOTE_SHARE = 1.75, 1.6
_KNOWN_BLOCKS: Final = 128


# What tools list, and what the user pasted, is in a summary by what was asked about it.
_RESULT_SHARE: Final = 0.1
_PASTED_SHARE: Final = 0.15


def substance_chars(messages: Sequence[AnyMessage], language: Language) -> int:
    """Counts the characters of a source that a summary is to tell of: of tool results a tenth, of pasted text 15 %."""
    results = sum(len(text_of(message)) for message in messages if isinstance(message, ToolMessage))
    spoken = _spoken(messages)
    pasted_chars = _pasted_chars(spoken, language)
    whole_chars = sum(len(text) for _, text in spoken)
    return int(whole_chars - (1 - _PASTED_SHARE) * pasted_chars + _RESULT_SHARE * results)


def facts_chars(messages: Sequence[AnyMessage], language: Language) -> int:
    """Estimates the length of a summary that has room for the facts of what was said, with some words around each.

    Facts of the answers alone count half. Pasted text, code, tables and tool results don't count.
    """
    return _facts_chars(_spoken(messages), language)


def _spoken(messages: Sequence[AnyMessage]) -> tuple[tuple[bool, str], ...]:
    spoken = (message for message in messages if not isinstance(message, SystemMessage | ToolMessage))
    return tuple((isinstance(each, HumanMessage), text_of(each)) for each in spoken)


# Each turn asks again for every block that is due.
@lru_cache(maxsize=_KNOWN_BLOCKS)
def _pasted_chars(spoken: Sequence[tuple[bool, str]], language: Language) -> int:
    users = [text for is_user, text in spoken if is_user]
    script = script_of(map(HumanMessage, users), language)
    return sum(max(0, len(text) - len(_prose(text, script))) for text in users)


@lru_cache(maxsize=_KNOWN_BLOCKS)
def _facts_chars(spoken: Sequence[tuple[bool, str]], language: Language) -> int:
    script = script_of([HumanMessage(text) for is_user, text in spoken if is_user], language)
    prose = [(HumanMessage if is_user else AIMessage)(_prose(text, script)) for is_user, text in spoken]
    users = [message for message in prose if isinstance(message, HumanMessage)]
    chars = sum(len(fact.text) for said in (prose, users) for fact in facts_of(said) if _needs_room(fact))
    return int((_KOREAN_NOTE_SHARE if script == "ko" else NOTE_SHARE) * chars / 2)


def _needs_room(fact: Fact) -> bool:
    """Whether a note has room for a fact: not for what the ledger keeps, nor a number that says little alone."""
    return not (fact.says_little or is_instruction(fact))


def _prose(text: str, script: str) -> str:
    return "\n".join(line for line in own_lines(text, script).split("\n") if not line.lstrip().startswith("|"))


def users_facts(messages: Sequence[AnyMessage], language: Language) -> tuple[Fact, ...]:
    """Returns the facts of messages, none that occurs only in what the user pasted, a letter or a document.

    Of code, quotes and files none is a rule; their values are what he talks about.
    """
    rules = {fact.identity for text in own_texts(messages, language) for fact in facts_in(text) if is_instruction(fact)}
    told = [
        HumanMessage(without_pasted(text_of(each))) if isinstance(each, HumanMessage) else each for each in messages
    ]
    return tuple(fact for fact in facts_of(told) if not is_instruction(fact) or fact.identity in rules)


def lack_of(
    text: str, messages: Sequence[AnyMessage], target_chars: int, language: Language, *, has_ledger: bool = False
) -> Lack:
    """Compares a draft with the facts named in its request; the lack is large if a third of the user's are missing."""
    users = [message for message in messages if isinstance(message, HumanMessage)]
    asked = facts_to_name(users, target_chars, language)
    gone = [fact for fact in missing_from(asked, text) if not (has_ledger and is_instruction(fact))]
    named = facts_to_name(messages, target_chars, language, has_ledger=has_ledger)
    missing = (*gone, *missing_from(named, text))
    names = dict.fromkeys(fact.text for fact in missing)
    share = len(gone) / len(asked) if gone else 0.0
    firm = tuple(fact.text for fact in gone if stands_in_line(fact))
    return Lack(tuple(names), bool(gone) and share >= _GONE_SHARE, share > _GONE_SHARE, firm)


def own_texts(messages: Sequence[AnyMessage], language: Language) -> list[str]:
    """Returns what the user wrote himself, a text for each message."""
    script = script_of(messages, language)
    return [text_of(_own(message, script)) for message in messages if isinstance(message, HumanMessage)]


def script_of(messages: Iterable[AnyMessage], language: Language) -> str:
    script = user_language(messages)
    return "ko" if language == "ko" else "latin" if script in (None, "ko") else script


def _own(message: AnyMessage, script: str) -> AnyMessage:
    return HumanMessage(own_lines(text_of(message), script)) if isinstance(message, HumanMessage) else message


def _fitting(facts: Iterable[Fact], target_chars: int) -> tuple[Fact, ...]:
    left_chars = int(target_chars * _NAMED_SHARE)
    taken: list[Fact] = []
    held = HeldFacts()
    for fact in islice(facts, _MOST_TRIED):
        if len(fact.text) < left_chars and not fact.says_little and not held.has(fact):
            taken.append(fact)
            held.add(fact.text)
            left_chars -= len(fact.text) + 1
        if len(taken) == _MOST_NAMED or left_chars <= 1:
            break
    return tuple(taken)


_COPIED_CHARS: Final = 200
_OUR_TAG: Final = re.compile(r"</?(?:m|source)\b[^<>]*+>|\[(?:user|assistant|tool)\]", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s+")

# A draft may mark its turns in another form: "- 2턴:", "Turns 4, 5:".
_TURN: Final = re.compile(
    r"(?:\d{1,6}\s?[-~–,·]\s?){0,9}\d{1,6}\s?턴|\bturns?\s\d{1,6}(?:\s?[-–,&]\s?\d{1,6}){0,9}", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"\d+")
_MARK: Final[Mapping[Language, str]] = {"ko": "({}턴)", "en": "(turn {})"}
_LEAST_TURN_CHARS: Final = 60
_MOST_OF_TURN: Final = 10
_OPENING: Final = re.compile(
    r"\A\W*(?:네[,.! ]|예[,.! ]|넵|물론|좋습니다|알겠습니다|안녕하세요|반갑습니다|감사합니다|죄송|좋은 질문"
    r"|yes[,.!]|sure|of course|certainly|absolutely|great|good question|hi\b|hello|thanks|thank you"
    r"|i['’]m sorry|sorry)",
    re.IGNORECASE,
)
_CLOSING: Final = re.compile(
    r"보내세요|도와드리|도와드릴|말씀해\s?주세요|알려\s?주세요|물어\s?보세요|문의해|궁금한\s?점"
    r"|수\s?없습니다|드릴까요|되시길|바랍니다"
    r"|let me know|happy to help|hope (?:this|that) helps|feel free|anything else|have a (?:great|nice|good)"
    r"|i can['’]?(?:t|not)\b|would you like|shall i|good luck|you['’]re welcome",
    re.IGNORECASE,
)
_TAIL_CHARS: Final = 100


def is_copy(draft: str, sources: Iterable[str]) -> bool:
    """Returns True if the first 200 characters of a draft, without tags and white space, occur in its source.

    Shorter drafts are never copies: a good summary may be one sentence of its source.
    """
    copied = _OUR_TAG.sub("", draft).strip()[:_COPIED_CHARS]
    return len(copied) == _COPIED_CHARS and _squeeze(copied) in _squeeze("".join(sources))


def _squeeze(text: str) -> str:
    return _SPACE.sub("", _OUR_TAG.sub("", text))


def is_answer(draft: str) -> bool:
    """Returns True if a draft answers the chat, or refuses to, instead of summarising.

    Three signs must meet: an opening like an answer's ("네, …", "Sure, …", "죄송하지만 …"), an ending like an answer's
    ("… 좋은 하루 보내세요!", "Let me know …", a refusal), and no turn mark, although the prompt asks for one.
    """
    text = draft.strip()
    return bool(_OPENING.match(text) and _CLOSING.search(text[-_TAIL_CHARS:]) and not _TURN.search(text))


# Tags of our prompts: a weak model writes on in them.
_OWN_MARKUP: Final = re.compile(r"</?(?:m|source|facts|kept)\b[^<>\n]*+>", re.IGNORECASE)
_REFUSAL: Final = re.compile(
    r"\A\W*(?:(?:i['’]m|i am)\s(?:so\s|very\s|really\s)?sorry,?\sbut\si\b|(?:unfortunately,?\s)?i(?:['’]m|\sam)?\s"
    r"(?:can['’]?t|cannot|can\snot|(?:am\s)?unable|not\sable)\b|as\san\sai\b"
    r"|(?:죄송|미안)[^.\n]{0,60}(?:수\s?없|어렵|못\s?[하합])|AI\s?(?:언어\s?)?모델(?:로서|이))",
    re.IGNORECASE,
)
_LEAST_TIMES: Final = 5
_DISTINCT_SENTENCES: Final = 2 / 3


def has_own_markup(draft: str, sources: Iterable[str] = ()) -> bool:
    """Returns True if a draft has tags of our prompts which don't occur in its source."""
    found = {tag.casefold() for tag in _OWN_MARKUP.findall(draft)}
    return bool(found) and not all(any(tag in text.casefold() for text in sources) for tag in found)


def is_refusal(draft: str) -> bool:
    """Returns True if a draft begins with an apology for not summarising."""
    return bool(_REFUSAL.match(draft)) and not _TURN.search(draft)


def is_repetitive(draft: str, said: Iterable[str] = ()) -> bool:
    """Returns True if under two thirds of a draft's sentences differ, and one of them is said five times or more.

    Sentences that the source repeats, too, don't count.
    """
    source = _squeeze("\n".join(said)).casefold()
    squeezed = (_squeeze(sentence).casefold() for sentence in _SENTENCE_END.split(draft) if sentence.strip(" -*•\t"))
    counts = Counter(sentence for sentence in squeezed if source.count(sentence) <= 1)
    return max(counts.values(), default=0) >= _LEAST_TIMES and len(counts) < counts.total() * _DISTINCT_SENTENCES


SMALL_TARGET_CHARS: Final = 80
# Below this share of the requested length a draft that lacks firm facts of the user has room for them.
MIN_SHARE: Final = 0.6
# Of a short draft up to so many characters more are taken: 60 fewer never pay for the call, and cost a fact.
_MOST_OVER_CHARS: Final = 150
# The same for a draft beyond its bound in tokens, of which code would have to drop the rest.
_MAX_OVER_SHARE: Final = 1.3
_FIRM_SHARE: Final = 2
# A draft below this share of the requested length is hollow: a refusal, a heading, a full stop. The share is smaller
# where the requested length is only an upper bound.
_LEAST_SHARE: Final = 0.2
_LEAST_BOUND_SHARE: Final = 0.1
# Invisible characters that Unicode classes as letters, marks or symbols.
_BLANKS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0F)) for code in range(first, last + 1)
}
_SENTENCE_END: Final = re.compile(r"[.!?。…](?=\s|$)|\n")


FlawKind = Literal[
    "empty", "language", "copy", "answer", "markup", "repetition", "cut", "long", "short", "lacking", "invented"
]


@dataclass(frozen=True)
class SummaryDraft:
    """A summary before its review.

    Attributes:
        is_usage: True if the provider reported the tokens of all calls; otherwise they are estimates.
        is_cut: True if the model stopped at its length limit; the text may then end anywhere.
        is_extracted: True for sentences of the source itself, which are never hollow, no copies, and in any language.
        parts: Texts for the parts of a source too large for one call.
    """

    text: str
    input_tokens: int
    output_tokens: int
    is_usage: bool
    is_cut: bool = False
    is_extracted: bool = False
    parts: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Flaw:
    """Defect of a draft, named in the one request to repair it, with the facts that it lacks and that it invented."""

    kind: FlawKind
    missing: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()


@dataclass(frozen=True)
class Review:
    """The judgement of a fold's drafts: a text that replaces its source, or none.

    Attributes:
        text: The adopted text, "" if there is none.
        is_verbatim: True if the text is the quoted source, because no draft was shorter.
        kept: Facts of the source that the text contains, heaviest first; set by `check_facts`, as `missing` is.
        invented: What the text says although nothing before it does (`invented_facts`).
    """

    text: str
    outcome: RecordOutcome
    is_verbatim: bool = False
    error_code: str = ""
    retained: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()


_UNFIT: Final[Mapping[FlawKind, Review]] = {
    "language": Review("", "failed", error_code="summary_language"),
    "copy": Review("", "failed", error_code="summary_copy"),
    "answer": Review("", "failed", error_code="summary_answer"),
    "markup": Review("", "failed", error_code="summary_markup"),
    "repetition": Review("", "failed", error_code="summary_repetition"),
}
_LACKING: Final = Review("", "failed", error_code="summary_lacking")
# Refusals of a repaired draft after which another try of the same model would be no better.
WEAK_CODES: Final = frozenset({"summary_answer", "summary_markup", "summary_repetition", "summary_lacking"})


def flaw_of(draft: SummaryDraft, spec: FoldSpec) -> Flaw | None:
    """Returns the defect of a first draft to be repaired in one request; None if there is nothing to repair."""
    if _is_small(spec):
        return None
    text = draft.text.strip()
    kind = "empty" if not visible_chars(text) else _unfit(draft, spec)
    if kind is None and draft.is_cut:
        kind = "cut"
    invented = () if draft.is_extracted else invented_facts(text, spec)
    if kind is None and _is_long(text, spec):
        kind = "long"
    if kind:
        return Flaw(kind, invented=invented if kind == "long" else ())
    lack, chars = _lack(text, draft, spec), visible_chars(text)
    has_room = not spec.is_bound and chars < spec.asked_chars * MIN_SHARE
    if chars < _least_chars(draft, spec):
        return Flaw("short", lack.missing, invented)
    if has_room and lack.firm:
        return Flaw("short", lack.firm, invented)
    if lack.is_large:
        return Flaw("lacking", lack.missing, invented)
    return Flaw("invented", invented=invented) if invented else None


def invented_facts(text: str, spec: FoldSpec) -> tuple[str, ...]:
    """Returns what a summary says that the summariser read nowhere.

    Nothing, of a source of more than 100,000 characters. These are figures, and sentences that permit what the user
    forbids, soften his rules, or have a decision or a person that is none of his. Of a merge only figures are compared.
    """
    calls = (
        f"{call['name']}({call['args']})"
        for message in spec.messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    )
    texts = [without_days(text_of(message)) for message in spec.messages]
    known = (*texts, *calls, *_days_meant(texts, spec), spec.before, spec.context, spec.instruction)
    if spec.source_chars > _MOST_READ_CHARS:
        return ()
    said = [line.text for line in (*(spec.ledger or ()), *spec.kept)]
    own = [] if spec.is_merge else own_texts(spec.messages, spec.language)
    figures = invented_in(text, [*known, *(fact.text for fact in spec.carried)])
    told = without_marks(text)
    against = [*reversed_in(told, [*said, *own]), *softened_in(told, [*said, *own])]
    if not spec.is_merge:
        against += unsaid_in(told, spec.messages, [*own, *said], known)
    found = dict.fromkeys((*figures, *against))
    return tuple(cut_at_word(each, _MOST_INVENTED_CHARS) for each in list(found)[:_MOST_INVENTED])


def _days_meant(texts: Sequence[str], spec: FoldSpec) -> Iterator[str]:
    """Yields the dates that the messages' words for days mean, as the summary is asked to write them."""
    for text, turn in zip(texts, spec.message_turns, strict=False):
        if day := spec.turn_days.get(turn):
            yield from days_meant(text, day)


def _lack(text: str, draft: SummaryDraft, spec: FoldSpec) -> Lack:
    if draft.is_extracted or spec.is_merge:
        return Lack((), is_large=False)
    lack = lack_of(text, spec.messages, spec.full_chars, spec.language, has_ledger=spec.ledger is not None)
    if lost := tuple(_lost_turns(text, spec)):
        return lack._replace(missing=(*lost, *(lack.missing if lack.is_large else ())), is_large=True)
    return lack


def _lost_turns(text: str, spec: FoldSpec) -> Iterator[str]:
    """Yields the marks and facts of turns that a draft is silent about: no mark, and none of the user's facts.

    Only of drafts that mark turns, and of turns in which the user wrote 60 characters or more beside his rules.
    """
    marked = {turn for found in _TURN.finditer(text) for turn in _turns_of(found[0])}
    if marked.isdisjoint(spec.turns):
        return
    script, replaced = script_of(spec.messages, spec.language), superseded_in(spec.messages)
    for message, turn in zip(spec.messages, spec.message_turns, strict=False):
        if isinstance(message, HumanMessage) and turn not in marked:
            own = _own(message, script)
            found = facts_of([own])
            facts = [fact for fact in found if not (is_instruction(fact) or fact.says_little or is_out(fact, replaced))]
            chars = len(text_of(own)) - sum(len(fact.text) for fact in found if is_instruction(fact))
            if chars >= _LEAST_TURN_CHARS and facts and len(missing_from(facts, text)) == len(facts):
                yield from (_MARK[spec.language].format(turn), *(fact.text for fact in facts[:_MOST_OF_TURN]))


def _turns_of(mark: str) -> range:
    numbers = [int(number) for number in _NUMBER.findall(mark)]
    return range(min(numbers), max(numbers) + 1)


def _unfit(draft: SummaryDraft, spec: FoldSpec) -> FlawKind | None:
    """Returns why a text of any length is no summary of its source; None if it is a summary."""
    if draft.is_extracted:
        return None
    text = draft.text.strip()
    sources = [text_of(each) for each in spec.messages if not isinstance(each, SystemMessage)]
    if not spec.is_merge and is_copy(text, sources):
        return "copy"
    if has_own_markup(text, sources):
        return "markup"
    if (is_answer(text) or is_refusal(text)) and visible_chars(text) >= _least_chars(draft, spec):
        return "answer"
    if not is_written_in(text, _scripts_of(spec)):
        return "language"
    return "repetition" if is_repetitive(text, sources) else None


def _scripts_of(spec: FoldSpec) -> frozenset[str]:
    """Returns the allowed scripts of a summary, the user's and the session's; empty if the user wrote no words."""
    found = user_scripts(spec.messages)
    return found | {"ko" if spec.language == "ko" else "latin"} if found else found


def _is_small(spec: FoldSpec) -> bool:
    return spec.full_chars < SMALL_TARGET_CHARS and not spec.is_bound


def _least_chars(draft: SummaryDraft, spec: FoldSpec) -> float:
    if draft.is_extracted:
        return 1
    return max(1, spec.asked_chars * (_LEAST_BOUND_SHARE if spec.is_bound else _LEAST_SHARE))


def _is_long(text: str, spec: FoldSpec) -> bool:
    return len(text) > (_most_chars(spec) if is_within(text, spec) else spec.full_chars * _MAX_OVER_SHARE)


def _most_chars(spec: FoldSpec) -> int:
    """Returns the length up to which a draft is taken as it is."""
    return max(int(spec.full_chars * MAX_SHARE), spec.full_chars + _MOST_OVER_CHARS)


def review_drafts(drafts: Sequence[SummaryDraft], spec: FoldSpec) -> Review:
    """Chooses among all drafts of a fold.

    Complete ones come first, then those with the user's facts, then those that invent nothing, then by length.
    A draft is adopted only if it isn't hollow, is a summary (no copy, answer, repetition or text in our own markup) in
    an allowed script, and is smaller than its source in characters and in tokens, label included. A repaired one must
    have two thirds of the user's named facts. Beyond 160 % of the target the lightest sentences are dropped
    that are just enough; a draft that broke off loses its unfinished last sentence. A small source (target under 80
    characters) without an adoptable draft is quoted verbatim.
    """
    written = [draft for draft in drafts if visible_chars(draft.text)]
    unfit = [_unfit(draft, spec) for draft in written]
    fitting = [draft for draft, kind in zip(written, unfit, strict=True) if kind is None]
    long_enough = [draft for draft in fitting if visible_chars(draft.text) >= _least_chars(draft, spec)]
    if long_enough:
        best, shortened = _best([(draft, _adoptable(draft, spec)) for draft in long_enough], spec)
        if len(written) > 1 and not _is_small(spec) and _lack(shortened, best, spec).is_fatal:
            return _LACKING
        if _is_smaller(shortened, spec):
            is_whole = shortened == best.text.strip() and not best.is_cut
            invented = () if best.is_extracted else invented_facts(shortened, spec)
            return Review(shortened, "compressed" if is_whole else "shortened", invented=invented)
    if _is_small(spec):
        return Review(quote(spec.messages, spec.language), "inflated" if written else "empty", is_verbatim=True)
    if long_enough:
        return Review("", "inflated", error_code="summary_inflated")
    if fitting:
        return Review("", "failed", error_code="summary_short")
    return next((_UNFIT[kind] for kind in unfit[::-1] if kind), Review("", "empty", error_code="summary_empty"))


def _adoptable(draft: SummaryDraft, spec: FoldSpec) -> str:
    text = draft.text.strip()
    whole = until_last_sentence(text) if draft.is_cut else text
    return whole if _is_small(spec) else _within_bounds(whole, spec)


def _best(drafts: Sequence[tuple[SummaryDraft, str]], spec: FoldSpec) -> tuple[SummaryDraft, str]:
    def order(each: tuple[SummaryDraft, str]) -> tuple[bool, bool, bool, float]:
        draft, shortened = each
        lacks = len(drafts) > 1 and _lack(shortened, draft, spec).is_large
        invents = len(drafts) > 1 and not draft.is_extracted and bool(invented_facts(shortened, spec))
        return draft.is_cut, lacks, invents, abs(math.log(len(draft.text.strip()) / spec.asked_chars))

    return min(drafts, key=order)


def visible_chars(text: str) -> int:
    """Counts visible characters, not control, format or filler characters; a run of spaces counts as one."""
    return sum(char not in _BLANKS and unicodedata.category(char)[0] != "C" for char in " ".join(text.split()))


def _within_bounds(text: str, spec: FoldSpec) -> str:
    """Returns the text within 160 % of the target and the bound in tokens, shortened if necessary.

    Of a short one it may have 150 characters more. Rules, decisions and the user's facts alone may take up to twice the
    target.
    """
    aim_chars = _most_chars(spec)
    most_chars = max(aim_chars, spec.full_chars * _FIRM_SHARE)

    def is_allowed(shorter: str) -> bool:
        return len(shorter) <= most_chars and is_within(shorter, spec)

    if len(text) <= aim_chars and is_allowed(text):
        return text
    return shorten(
        text,
        lambda shorter: len(shorter) <= aim_chars and is_allowed(shorter),
        max_chars=aim_chars,
        must_fit=is_allowed,
        facts=_users_facts(spec),
    )


def _users_facts(spec: FoldSpec) -> tuple[Fact, ...]:
    script = script_of(spec.messages, spec.language)
    users = [_own(message, script) for message in spec.messages if isinstance(message, HumanMessage)]
    return spec.carried if spec.is_merge else (*spec.carried, *facts_of(users))


def is_within(text: str, spec: FoldSpec) -> bool:
    """Returns True if a text with its label is smaller than its source and within the bound in tokens."""
    is_bounded = spec.max_tokens is None or estimate_tokens(spec.label + text) <= spec.max_tokens
    return is_bounded and _is_smaller(text, spec)


def _is_smaller(text: str, spec: FoldSpec) -> bool:
    labelled = spec.label + text
    return len(labelled) < spec.source_chars and estimate_tokens(labelled) < spec.source_tokens


def until_last_sentence(text: str) -> str:
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if ends:
        return text[: ends[-1]].rstrip()
    return (text.rsplit(None, 1)[0] if len(text.split()) > 1 else text).rstrip() + "…"


def quote(messages: Sequence[AnyMessage], language: Language) -> str:
    """Renders messages verbatim as quoted text with their speakers; messages without text are left out."""
    lines: list[str] = []
    for message in messages:
        text = text_of(message).strip()
        if text:
            lines += f"{SPEAKER[language][message.type]}: {text}".splitlines()
    return f"{VERBATIM_NOTE[language]}\n> " + "\n> ".join(lines)
