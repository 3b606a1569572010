"""Composes the embedded offline model's answer from what it was sent; pure and deterministic."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph.core.casual import is_casual
from graph.core.extract import cut_at_word
from graph.core.sentence import split_sentences
from graph.core.turn import RECALL_TOOL, image_parts, is_recalled
from graph.core.zone import find_zone
from graph.offline.clock import tell_clock
from graph.offline.intent import Intent, asks_to_look_up, find_intent, without_note
from graph.offline.look_up import MOST_QUESTIONS, query_for
from graph.offline.note_down import LABELS, find_note, find_notes, next_call, tell_notes
from graph.offline.passage import Passage, find_relevant, has_summaries, read_noted, read_passages, read_recalled
from graph.offline.phrase import PHRASES, Language, label_noted, label_source
from graph.offline.project_block import Project, read_notes, read_primed
from graph.offline.tell_project import labels_asked, tell_project
from graph.offline.unpack import unpacked

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
    arguments: Mapping[str, str | list[str]] = field(default_factory=dict)


def compose(messages: Sequence[BaseMessage], tool_names: Collection[str]) -> Reply:
    """Composes the answer to the last user message from the summaries and turns in the model input.

    Args:
        messages: The model input as it was sent.
        tool_names: The tools that may be called.

    Returns:
        A text, or a call: of the clock, of `recall` for what is asked for and was folded away (one of these in a turn,
        once), or of the tools that note in the project what the message wants noted, one after the other.
    """
    primed = read_primed(messages)
    asked = next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)
    messages = unpacked(messages)
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    question = messages[last].text.strip() if last >= 0 else ""
    language, intent = _language(messages), find_intent(question)
    results = _results(messages)
    passages = [*read_noted(primed or {}), *read_passages(messages)]
    if (call := next_call(find_notes(_sentences(question)), results, tool_names)) is not None:
        return Reply(tool=call.tool, arguments=call.arguments)
    if own := _of_project(question, primed, messages, passages, language):
        rest = " ".join(sentence for sentence in _sentences(question) if not _is_of_project(sentence))
        body = f"{own}\n\n{_converse(rest, passages, language)}" if rest else own
    elif results and is_recalled(results[-1]) and results[-1].status == "success":
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


def _of_project(
    question: str,
    primed: Project | None,
    messages: Sequence[BaseMessage],
    passages: Sequence[Passage],
    language: Language,
) -> str:
    """Says what was noted in the project, and what is known of it of what is asked; "" if it is neither."""
    sentences, results, listed = _sentences(question), _results(messages), read_notes(messages)
    parts = [tell_notes(find_notes(sentences), results, language)]
    if (primed is not None or listed) and (parts[0] or not results):
        parts.append(tell_project(sentences, {**(primed or {}), **listed}, language))
        asked = {label for sentence in sentences for label in labels_asked(sentence)} - listed.keys()
        if asked and has_summaries(messages):
            parts.append(_noted_since(asked, passages, language))
    return "\n\n".join(part for part in parts if part)


def _noted_since(asked: Collection[str], passages: Sequence[Passage], language: Language) -> str:
    """Says that the block is of the session's beginning, and what the user wanted noted of this since, as it stands."""
    orders = [
        passage
        for passage in passages
        if passage.noted is None and (note := find_note(passage.text)) and LABELS[note.tool] in asked
    ]
    begun = PHRASES[language]["project_begun"]
    if not orders:
        return begun
    return f"{begun}\n\n{_list(PHRASES[language]['project_since'], orders[-_TABLE_ROWS:], language)}"


def _is_of_project(sentence: str) -> bool:
    return bool(find_note(sentence) or labels_asked(sentence)) or is_casual(sentence)


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
    if passage.noted is not None:
        return label_noted(language, passage.noted)
    return label_source(language, passage.turns, is_recalled=passage.is_recalled)


def _quote(result: str, language: Language) -> str:
    quoted = "\n".join(f"> {line}" for line in cut_at_word(result.strip(), _TOOL_CHARS).splitlines())
    return f"{PHRASES[language]['tool_said']}\n\n{quoted}"
