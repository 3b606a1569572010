"""Composes the embedded offline model's answer from what it was sent; pure and deterministic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.language import INTRODUCTION, split_sentences
from graph.core.snapshot import find_zone, name_of
from graph.core.turn import RECALL_TOOL, image_parts, is_recalled
from graph.fold.extract import cut_at_word
from graph.offline.passage import (
    Intent,
    Passage,
    asks_to_look_up,
    find_intent,
    find_relevant,
    has_summaries,
    read_passages,
    read_recalled,
    without_note,
)
from graph.offline.phrase import PHRASES, Language, label_source
from graph.search.term import has_content_of
from prompt.system.framing import (
    COMPACTION_HEADING,
    CONTEXT_PART,
    CURRENT_PART,
    RECENT_PART,
    SUMMARY_HEADING,
    VOLATILE_HEADING,
)
from prompt.tool.result import WEEKDAYS

_CLOCK: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):\d\d \w+, (\S+) \((UTC\S*)\)")


def tell_clock(result: str, language: Language) -> str:
    """Returns the sentence; "" if the result names no time."""
    found = _CLOCK.search(result)
    if found is None:
        return ""
    year, month, day, hour, minute, zone, offset = found.groups()
    try:
        weekday = date(int(year), int(month), int(day)).weekday()
    except ValueError:
        return ""
    place = name_of(zone, is_korean=language == "ko")
    return PHRASES[language]["time"].format(
        place=place,
        topic=_topic(place),
        year=int(year),
        month=int(month),
        day=int(day),
        weekday=WEEKDAYS[language][weekday],
        half="오전" if int(hour) < 12 else "오후",  # noqa: PLR2004  # noon
        hour=(int(hour) - 1) % 12 + 1,
        minute=int(minute),
        clock=f"{hour}:{minute}",
        date=f"{year}-{month}-{day}",
        zone=zone,
        offset=offset,
    )


def _topic(word: str) -> str:
    """Returns the Korean topic particle for a word: 은 after a final consonant, else 는."""
    last = ord(word[-1]) - ord("가")
    return "은" if 0 <= last < 11172 and last % 28 else "는"  # noqa: PLR2004  # how many Hangul syllables and finals there are


MOST_QUESTIONS: Final = 10
"""How many of a message are looked up, as each is compared with all that was said."""
_QUERY_CHARS: Final = 200
# They name nothing, and stand beside what is asked for.
_POINTING: Final = re.compile(
    r"(?<!\S)(?:제|내|네|너|나|저|우리|그|이|좀|이야기\S*|얘기\S*|내용\S*)(?!\S)|\b(?:remind|exactly|please)\b",
    re.IGNORECASE,
)
# The last word of a Korean question, or that before "알려 줘"; its answer has another form of it.
_VERB: Final = re.compile(r"(?<=\S)\s++[가-힣]+(?:지\s[가-힣\s]{1,40}+)?[\s?？!.~…]*+$")
_NAME: Final = re.compile(r"이름|누구|\b(?:name|who)\b", re.IGNORECASE)


def query_for(asked: Sequence[str], passages: Sequence[Passage]) -> str:
    """Returns those of the questions that what was sent doesn't answer, as a query; "" if it answers all of them."""
    missing = [question for question in asked[:MOST_QUESTIONS] if not is_answered(question, passages)]
    return cut_at_word(" ".join(missing), _QUERY_CHARS)


def is_answered(question: str, passages: Sequence[Passage]) -> bool:
    """Whether the passages that go best with the question have all its words between them, but for its verb."""
    found = "\n".join(passage.text for passage in find_relevant(passages, question, _QUOTATIONS))
    # "I'm Alex" answers "what's my name" with none of its words.
    words = _NAME.sub(" ", question) if INTRODUCTION.search(found) else question
    return bool(found) and has_content_of(found, _VERB.sub("", _POINTING.sub(" ", words)))


_CONTEXT, _RECENT, _CURRENT = (part.partition("{")[0] for part in (CONTEXT_PART, RECENT_PART, CURRENT_PART))
_LINE: Final = re.compile(r"^(USER|ASSISTANT|TOOL): ", re.MULTILINE)
_RULE: Final = "\n\n---\n\n"


def unpacked(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Returns the messages as "interval" would send them: a summary in a system message, each message by itself.

    All lines within a frame that aren't its own are indented, so that nothing said can be taken for one of them.
    """
    return [part for message in messages for part in _parts(message)]


def _parts(message: BaseMessage) -> Iterator[BaseMessage]:
    text = message.text
    if not isinstance(message, HumanMessage):
        yield message
    elif text.startswith(COMPACTION_HEADING):
        told, _, own = text.removeprefix(COMPACTION_HEADING).partition(_RULE)
        # A note stands between the summary and the rule.
        yield _summary(told.strip().rpartition("\n\n")[0] if own else told)
        yield from _parts(message.model_copy(update={"content": own}))
    elif text.startswith((_CONTEXT, _RECENT, VOLATILE_HEADING)) and f"\n\n{_CURRENT}" in text:
        told, _, own = text.partition(f"\n\n{_CURRENT}")
        told, _, _ = f"\n\n{told}".partition(f"\n\n{VOLATILE_HEADING}")
        summary, _, recent = told.partition(f"\n\n{_RECENT}")
        if summary:
            yield _summary(summary.strip().removeprefix(_CONTEXT))
        lines = _LINE.split(recent)
        for speaker, said in zip(lines[1::2], lines[2::2], strict=True):
            yield HumanMessage(said) if speaker == "USER" else AIMessage(said)
        yield message.model_copy(update={"content": own})
    else:
        yield message


def _summary(text: str) -> SystemMessage:
    return SystemMessage(f"{SUMMARY_HEADING['ko']}\n{text}")


CLOCK_TOOL: Final = "get_current_time"

_HANGUL: Final = re.compile(r"[ㄱ-ㆎ가-힣]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CONVERSING: Final = ("question", "request", "statement")
_QUOTATIONS: Final = 3
_TABLE_ROWS: Final = 12
_LEAST_ROWS: Final = 3
_NOTED_CHARS: Final = 200
_TOOL_CHARS: Final = 600


@dataclass(frozen=True)
class Reply:
    """An answer: a text, or with a `tool` the call of that tool with these arguments."""

    text: str = ""
    tool: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def compose(messages: Sequence[BaseMessage], tool_names: Collection[str]) -> Reply:
    """Composes the answer to the last user message from the summaries and turns in the model input.

    Args:
        messages: The model input as it was sent.
        tool_names: The tools that may be called.

    Returns:
        A text, or one call in a turn: of the clock, or of `recall` for what is asked for and was folded away.
    """
    asked = next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)
    messages = unpacked(messages)
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    question = messages[last].text.strip() if last >= 0 else ""
    language, intent = _language(messages), find_intent(question)
    results = _results(messages)
    passages = read_passages(messages)
    if results and is_recalled(results[-1]) and results[-1].status == "success":
        said = {passage.text for passage in passages}
        found = [passage for passage in read_recalled(results[-1].text) if passage.text not in said]
        body = _converse(question, [*found, *passages], language, has_looked=True)
    elif results:
        body = tell_clock(results[-1].text, language) or _quote(results[-1].text, language)
    elif intent == "time" and CLOCK_TOOL in tool_names:
        zone = find_zone(question)
        return Reply(tool=CLOCK_TOOL, arguments={"timezone": zone} if zone else {})
    elif query := _query(intent, question, passages) if RECALL_TOOL in tool_names and has_summaries(messages) else "":
        return Reply(tool=RECALL_TOOL, arguments={"query": query})
    else:
        body = _answer(intent, question, passages, language)
    if asked is not None and image_parts(asked):
        body = "\n\n".join([PHRASES[language]["blind"], *([body] if question else [])])
    # It says what it is in the first answer and when asked; the page names it beside every other.
    is_introduced = intent not in ("identity", "ability") and not _is_first(messages)
    return Reply(body if is_introduced else f"{body}\n\n{PHRASES[language]['introduction']}")


def _results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Returns what tools returned to the last user message."""
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    return [message for message in messages[last + 1 :] if isinstance(message, ToolMessage)]


def _language(messages: Sequence[BaseMessage]) -> Language:
    """Returns the language of the newest user message that has letters; Korean if there is none."""
    texts = (message.text for message in reversed(messages) if isinstance(message, HumanMessage))
    written = next((text for text in texts if _LETTER.search(text)), "")
    return "en" if written and not _HANGUL.search(written) else "ko"


def _is_first(messages: Sequence[BaseMessage]) -> bool:
    """Whether the session has neither an answer nor a summary yet."""
    has_answers = any(isinstance(message, AIMessage) and not message.tool_calls for message in messages)
    return not has_answers and not has_summaries(messages)


def _query(intent: Intent, question: str, passages: Sequence[Passage]) -> str:
    """Returns what to look up before this is answered, "" for nothing."""
    if intent not in _CONVERSING:
        return ""
    return query_for([sentence for sentence in _sentences(question) if asks_to_look_up(sentence)], passages)


def _answer(intent: Intent, question: str, passages: Sequence[Passage], language: Language) -> str:
    say = PHRASES[language]
    if intent in _CONVERSING:
        return _converse(question, passages, language)
    if intent == "table":
        return _table(question, passages, language)
    if intent == "recap":
        return _list(say["recap"], passages[-_TABLE_ROWS:], language) if passages else say["nothing_known"]
    if intent == "time":
        return say["no_clock"]
    return say["ability" if intent == "identity" else intent]


def _converse(question: str, passages: Sequence[Passage], language: Language, *, has_looked: bool = False) -> str:
    """Notes what the message states, and answers what it asks from what was said earlier.

    Args:
        question: The user's message.
        passages: What was said earlier.
        language: The language of the answer.
        has_looked: Whether the passages have what `recall` found.
    """
    say, intent = PHRASES[language], find_intent(question)
    sentences = _sentences(question)
    stated = [fact for s in sentences if find_intent(s) == "statement" and (fact := without_note(s))]
    questions = dict.fromkeys(sentence for sentence in sentences if find_intent(sentence) in ("question", "request"))
    asked = [*islice(questions, MOST_QUESTIONS)]
    parts = [say["noted"].format(cut_at_word(" ".join(stated), _NOTED_CHARS))] if stated else []
    found = (passage for part in asked or [question] for passage in find_relevant(passages, part, _QUOTATIONS))
    relevant = list(dict.fromkeys(found))
    is_missing = has_looked and bool(query_for(asked, passages))
    if relevant and is_missing:
        parts += [say["nowhere"], _list(say["closest"], relevant, language)]
    elif relevant:
        parts.append(_list(say["related" if intent == "statement" else "found"], relevant, language))
    elif intent != "statement":
        missing = "not_found" if intent == "question" else "cannot_write"
        parts.append(say["nowhere" if has_looked else missing])
        if passages:
            parts.append(_list(say["known"], passages[-_QUOTATIONS:], language))
    return "\n\n".join(parts) or say["acknowledged"]


def _sentences(question: str) -> list[str]:
    return split_sentences(_CODE.sub(" ", question))


def _list(heading: str, passages: Sequence[Passage], language: Language) -> str:
    lines = [f"- {passage.text} {_source(language, passage)}" for passage in passages]
    return "\n".join([heading, "", *lines])


def _table(question: str, passages: Sequence[Passage], language: Language) -> str:
    """Renders a table of what relates to the question, or of the newest passages if hardly anything does."""
    say = PHRASES[language]
    relevant = set(find_relevant(passages, question, _TABLE_ROWS))
    chosen = [p for p in passages if p in relevant] if len(relevant) >= _LEAST_ROWS else passages[-_TABLE_ROWS:]
    if not chosen:
        return say["nothing_known"]
    cells = [(passage.text.replace("|", "\\|"), _source(language, passage)) for passage in chosen]
    rows = [f"| {text} | {source} |" for text, source in cells]
    return "\n".join([say["table"], "", say["table_head"], "| --- | --- |", *rows])


def _source(language: Language, passage: Passage) -> str:
    return label_source(language, passage.turns, is_recalled=passage.is_recalled)


def _quote(result: str, language: Language) -> str:
    quoted = "\n".join(f"> {line}" for line in cut_at_word(result.strip(), _TOOL_CHARS).splitlines())
    return f"{PHRASES[language]['tool_said']}\n\n{quoted}"
