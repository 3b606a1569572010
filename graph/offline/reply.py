"""Composes the embedded offline model's answer from what it was sent; pure and deterministic."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph.core.extract import cut_at_word
from graph.core.sentence import split_sentences
from graph.core.zone import find_zone, name_of
from graph.offline.intent import Intent, find_intent, without_note
from graph.offline.passage import Passage, find_relevant, has_summaries, read_passages
from graph.offline.phrase import PHRASES, Language, label_source

CLOCK_TOOL: Final = "get_current_time"

_HANGUL: Final = re.compile(r"[ㄱ-ㆎ가-힣]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CLOCK: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):\d\d (\w+), (\S+) \((UTC\S*)\)")
_WEEKDAYS: Final = {"Mon": "월", "Tue": "화", "Wed": "수", "Thu": "목", "Fri": "금", "Sat": "토", "Sun": "일"}
_QUOTATIONS: Final = 3
_TABLE_ROWS: Final = 12
_LEAST_ROWS: Final = 3
_NOTED_CHARS: Final = 200
_TOOL_CHARS: Final = 600


@dataclass(frozen=True)
class Reply:
    """An answer: a text, or a call of the clock with these arguments."""

    text: str = ""
    clock_arguments: Mapping[str, str] | None = None


def compose(messages: Sequence[BaseMessage], tool_names: Collection[str]) -> Reply:
    """Composes the answer to the last user message from the summaries and turns in the model input.

    Args:
        messages: The model input as it was sent.
        tool_names: The tools that may be called.
    """
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    question = messages[last].text.strip() if last >= 0 else ""
    language, intent = _language(messages), find_intent(question)
    results = [message for message in messages[last + 1 :] if isinstance(message, ToolMessage)]
    if results:
        body = _tell_result(results[-1].text, language)
    elif intent == "time" and CLOCK_TOOL in tool_names:
        zone = find_zone(question)
        return Reply(clock_arguments={"timezone": zone} if zone else {})
    else:
        body = _answer(intent, question, read_passages(messages), language)
    # It says what it is in the first answer and when asked; the page names it beside every other.
    is_introduced = intent not in ("identity", "ability") and not _is_first(messages)
    return Reply(body if is_introduced else f"{body}\n\n{PHRASES[language]['introduction']}")


def _language(messages: Sequence[BaseMessage]) -> Language:
    """Returns the language of the newest user message that has letters; Korean if there is none."""
    texts = (message.text for message in reversed(messages) if isinstance(message, HumanMessage))
    written = next((text for text in texts if _LETTER.search(text)), "")
    return "en" if written and not _HANGUL.search(written) else "ko"


def _is_first(messages: Sequence[BaseMessage]) -> bool:
    """Whether the session has neither an answer nor a summary yet."""
    if any(has_summaries(message) for message in messages[:1]):
        return False
    return not any(isinstance(message, AIMessage) and not message.tool_calls for message in messages)


def _answer(intent: Intent, question: str, passages: Sequence[Passage], language: Language) -> str:
    say = PHRASES[language]
    if intent in ("question", "request", "statement"):
        return _converse(intent, question, passages, language)
    if intent == "table":
        return _table(question, passages, language)
    if intent == "recap":
        return _list(say["recap"], passages[-_TABLE_ROWS:], language) if passages else say["nothing_known"]
    if intent == "time":
        return say["no_clock"]
    return say["ability" if intent == "identity" else intent]


def _converse(intent: Intent, question: str, passages: Sequence[Passage], language: Language) -> str:
    """Notes what the message states, and answers what it asks from what was said earlier."""
    say = PHRASES[language]
    sentences = split_sentences(_CODE.sub(" ", question))
    stated = [fact for s in sentences if find_intent(s) == "statement" and (fact := without_note(s))]
    asked = [sentence for sentence in sentences if find_intent(sentence) in ("question", "request")]
    parts = [say["noted"].format(cut_at_word(" ".join(stated), _NOTED_CHARS))] if stated else []
    found = (passage for part in asked or [question] for passage in find_relevant(passages, part, _QUOTATIONS))
    relevant = list(dict.fromkeys(found))
    if relevant:
        parts.append(_list(say["related" if intent == "statement" else "found"], relevant, language))
    elif intent != "statement":
        parts.append(say["not_found" if intent == "question" else "cannot_write"])
        if passages:
            parts.append(_list(say["known"], passages[-_QUOTATIONS:], language))
    return "\n\n".join(parts) or say["acknowledged"]


def _list(heading: str, passages: Sequence[Passage], language: Language) -> str:
    lines = [f"- {passage.text} {label_source(language, passage.turns)}" for passage in passages]
    return "\n".join([heading, "", *lines])


def _table(question: str, passages: Sequence[Passage], language: Language) -> str:
    """Renders a table of what relates to the question, or of the newest passages if hardly anything does."""
    say = PHRASES[language]
    relevant = set(find_relevant(passages, question, _TABLE_ROWS))
    chosen = [p for p in passages if p in relevant] if len(relevant) >= _LEAST_ROWS else passages[-_TABLE_ROWS:]
    if not chosen:
        return say["nothing_known"]
    cells = [(passage.text.replace("|", "\\|"), label_source(language, passage.turns)) for passage in chosen]
    rows = [f"| {text} | {source} |" for text, source in cells]
    return "\n".join([say["table"], "", say["table_head"], "| --- | --- |", *rows])


def _tell_result(result: str, language: Language) -> str:
    """Renders the clock's result as a sentence and quotes any other result."""
    found = _CLOCK.search(result)
    if found is None:
        quoted = "\n".join(f"> {line}" for line in cut_at_word(result.strip(), _TOOL_CHARS).splitlines())
        return f"{PHRASES[language]['tool_said']}\n\n{quoted}"
    year, month, day, hour, minute, weekday, zone, offset = found.groups()
    is_korean = language == "ko"
    place = name_of(zone, is_korean=is_korean)
    return PHRASES[language]["time"].format(
        place=place,
        topic=_topic(place),
        year=int(year),
        month=int(month),
        day=int(day),
        weekday=f"{_WEEKDAYS[weekday[:3]]}요일" if is_korean else weekday,
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
