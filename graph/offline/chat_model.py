"""The embedded offline model: a LangChain chat model that greets, says what it is, quotes and looks up."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graph.core.language import split_sentences
from graph.core.snapshot import find_zone, name_of
from graph.core.turn import EMBEDDED_MODEL, RECALL_TOOL, image_parts, is_recalled
from graph.fold.extract import cut_at_word
from graph.offline.passage import (
    QUOTATIONS,
    Intent,
    Passage,
    asks_for_new_text,
    asks_to_look_up,
    find_intent,
    find_relevant,
    has_summaries,
    is_answered,
    read_passages,
    read_recalled,
    unpacked,
    without_note,
)
from graph.offline.phrase import PHRASES
from prompt.system.framing import Language
from prompt.tool.words import WEEKDAYS

CLOCK_TOOL: Final = "get_current_time"

_HANGUL: Final = re.compile(r"[ㄱ-ㆎ가-힣]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CLOCK: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d):\d\d \w+, (\S+) \((UTC\S*)\)")
_CONVERSING: Final = ("question", "request", "statement")
# Each question is compared with every passage.
_MOST_QUESTIONS: Final = 10
_QUERY_CHARS: Final = 200
_NOTED_CHARS: Final = 200
_TOOL_CHARS: Final = 600
_TABLE_ROWS: Final = 12
_LEAST_ROWS: Final = 3


@dataclass(frozen=True)
class Reply:
    text: str = ""
    tool: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def compose(messages: Sequence[BaseMessage], tool_names: Collection[str]) -> Reply:
    """Returns a text from the summaries and turns in the model input, or one tool call: clock or `recall`."""
    messages = unpacked(messages)
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    question = messages[last].text.strip() if last >= 0 else ""
    results = [message for message in messages[last + 1 :] if isinstance(message, ToolMessage)]
    passages = read_passages(messages[: max(last, 0)])
    language, intent = _language(messages), find_intent(question)
    if results:
        body = _describe_result(results[-1], question, passages, language)
    elif intent == "time" and CLOCK_TOOL in tool_names:
        zone = find_zone(question)
        return Reply(tool=CLOCK_TOOL, arguments={"timezone": zone} if zone else {})
    elif RECALL_TOOL in tool_names and has_summaries(messages) and (query := _query(intent, question, passages)):
        return Reply(tool=RECALL_TOOL, arguments={"query": query})
    else:
        body = _answer(intent, question, passages, language)
    if last >= 0 and image_parts(messages[last]):
        body = "\n\n".join([PHRASES[language]["blind"], *([body] if question else [])])
    # The model introduces itself in the first answer, when asked, and where a real model is needed; the page names it
    # with every answer.
    is_asked = intent in ("identity", "ability") or PHRASES[language]["cannot_write"] in body
    is_introduced = not is_asked and not _is_first(messages)
    return Reply(body if is_introduced else f"{body}\n\n{PHRASES[language]['introduction']}")


def _language(messages: Sequence[BaseMessage]) -> Language:
    """Returns the language of the newest user message with letters; Korean if there is none."""
    texts = (message.text for message in reversed(messages) if isinstance(message, HumanMessage))
    written = next((text for text in texts if _LETTER.search(text)), "")
    return "en" if written and not _HANGUL.search(written) else "ko"


def _is_first(messages: Sequence[BaseMessage]) -> bool:
    has_answers = any(isinstance(message, AIMessage) and not message.tool_calls for message in messages)
    return not has_answers and not has_summaries(messages)


def _query(intent: Intent, question: str, passages: Sequence[Passage]) -> str:
    if intent not in _CONVERSING:
        return ""
    asked = [sentence for sentence in _sentences(question) if asks_to_look_up(sentence)]
    return cut_at_word(" ".join(_unanswered(asked, passages)), _QUERY_CHARS)


def _unanswered(questions: Sequence[str], passages: Sequence[Passage]) -> list[str]:
    return [question for question in questions[:_MOST_QUESTIONS] if not is_answered(question, passages)]


def _sentences(question: str) -> list[str]:
    return split_sentences(_CODE.sub(" ", question))


def _describe_result(result: ToolMessage, question: str, passages: Sequence[Passage], language: Language) -> str:
    if is_recalled(result) and result.status == "success":
        known = {passage.text for passage in passages}
        found = [passage for passage in read_recalled(result.text) if passage.text not in known]
        return _converse(question, [*found, *passages], language, has_looked=True)
    if description := _describe_time(result.text, language):
        return description
    quoted = "\n".join(f"> {line}" for line in cut_at_word(result.text.strip(), _TOOL_CHARS).splitlines())
    return f"{PHRASES[language]['tool_said']}\n\n{quoted}"


def _describe_time(result: str, language: Language) -> str:
    found = _CLOCK.search(result)
    if found is None:
        return ""
    written, zone, offset = found.groups()
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        return ""
    place = name_of(zone, is_korean=language == "ko")
    return PHRASES[language]["time"].format(
        place=place,
        topic=_topic(place),
        at=at,
        weekday=WEEKDAYS[language][at.weekday()],
        half="오전" if at.hour < 12 else "오후",  # noqa: PLR2004  # noon
        hour=(at.hour - 1) % 12 + 1,
        zone=zone,
        offset=offset,
    )


def _topic(word: str) -> str:
    """Returns the Korean topic particle for a word: 은 after a final consonant, else 는."""
    last = ord(word[-1]) - ord("가")
    return "은" if 0 <= last < 11172 and last % 28 else "는"  # noqa: PLR2004  # how many Hangul syllables and finals there are


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
    """Confirms statements and answers questions from the passages; `has_looked`: `recall` was called."""
    say, intent = PHRASES[language], find_intent(question)
    sentences = [(sentence, find_intent(sentence)) for sentence in _sentences(question)]
    stated = [fact for sentence, kind in sentences if kind == "statement" and (fact := without_note(sentence))]
    asked = list(dict.fromkeys(sentence for sentence, kind in sentences if kind in ("question", "request")))
    parts = []
    if is_beyond := any(map(asks_for_new_text, asked or [question])):
        parts.append(say["cannot_write"])
    elif stated:
        parts.append(say["noted"].format(cut_at_word(" ".join(stated), _NOTED_CHARS)))
    found = (find_relevant(passages, part) for part in asked[:_MOST_QUESTIONS] or [question])
    relevant = list(dict.fromkeys(passage for each in found for passage in each))
    if relevant and has_looked and _unanswered(asked, passages):
        parts += [say["nowhere"], _list(say["closest"], relevant, language)]
    elif relevant:
        parts.append(_list(say["found" if asked else "related"], relevant, language))
    elif asked or intent != "statement":
        if not is_beyond:
            missing = "cannot_write" if intent == "request" else "not_found"
            parts.append(say["nowhere" if has_looked else missing])
        if passages:
            parts.append(_list(say["known"], passages[-QUOTATIONS:], language))
    return "\n\n".join(parts) or say["acknowledged"]


def _list(heading: str, passages: Sequence[Passage], language: Language) -> str:
    return "\n".join([heading, "", *(f"- {passage.text} {passage.source(language)}" for passage in passages)])


def _table(question: str, passages: Sequence[Passage], language: Language) -> str:
    """Renders a table of passages relevant to the question, or of the newest ones if fewer than three are."""
    say = PHRASES[language]
    relevant = set(find_relevant(passages, question, _TABLE_ROWS))
    chosen = [p for p in passages if p in relevant] if len(relevant) >= _LEAST_ROWS else passages[-_TABLE_ROWS:]
    if not chosen:
        return say["cannot_write"]
    cells = [(passage.text.replace("|", "\\|"), passage.source(language)) for passage in chosen]
    return "\n".join([say["table"], "", say["table_head"], "| --- | --- |", *(f"| {a} | {b} |" for a, b in cells)])


_PIECE: Final = re.compile(r"\s*\S+|\s+$")


class OfflineChat(BaseChatModel):
    """A deterministic chat model without a network; it waits `pause_seconds` before each word and reports no usage."""

    pause_seconds: float = 0.02

    @property
    def _llm_type(self) -> str:
        return EMBEDDED_MODEL

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Binds tools; the model calls `get_current_time` and `recall`, or none for `tool_choice="none"`."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  # the base class's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class notifies it
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> Iterator[ChatGenerationChunk]:
        tools = () if kwargs.get("tool_choice") == "none" else kwargs.get("tools", ())
        reply = compose(messages, frozenset(tool["function"]["name"] for tool in tools))
        finish_reason = "stop"
        for piece in _PIECE.findall(reply.text):
            time.sleep(self.pause_seconds)
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        if reply.tool:
            arguments = json.dumps(dict(reply.arguments), ensure_ascii=False)
            call = tool_call_chunk(name=reply.tool, args=arguments, id=_call_id(messages), index=0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
            finish_reason = "tool_calls"
        metadata = {"model_name": EMBEDDED_MODEL, "finish_reason": finish_reason}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=metadata))


def _call_id(messages: Sequence[BaseMessage]) -> str:
    """Returns an id that is unique within a session and the same when the same call is repeated."""
    seed = "\x00".join(f"{message.id}{message.text}" for message in messages)
    return f"call-{hashlib.sha256(seed.encode('utf-8', 'replace')).hexdigest()[:24]}"
