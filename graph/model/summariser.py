"""Writes the text of a summary, with a model or by picking sentences."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from graph.core.casual import is_casual
from graph.core.extract import extract_summary
from graph.core.fold_spec import PromptStyle
from graph.core.language import user_language
from graph.core.review import SummaryDraft, until_last_sentence
from graph.core.token import estimate_tokens, message_tokens, sum_tokens
from graph.core.turn import text_of
from graph.core.weight import TermCounts
from graph.model.caller import ChatRunnable, ModelCaller
from graph.offline.phrase import is_own_phrase
from prompt.summary import compaction_generator, merge_generator, rolling_generator, summary_generator

__all__ = ["ExtractiveSummariser", "ModelSummariser", "Summariser", "SummaryDraft"]

_SOURCE_SHARE: Final = 0.75
_PROMPT_TOKENS: Final = 1_000
_TAGGED: Final = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)
_END_TAG: Final = "</summary>"
_GENERATORS: Final = (summary_generator, merge_generator, rolling_generator, compaction_generator)
PROMPTS: Final[Mapping[PromptStyle, Callable[[Sequence[AnyMessage], int, str, str | None], str]]] = {
    "plain": summary_generator.get_prompt,
    "merge": merge_generator.get_prompt,
    "rolling": rolling_generator.get_prompt,
    "structured": compaction_generator.get_prompt,
}


def generate_summary(
    messages: Sequence[AnyMessage],
    target_length: int,
    summarise: Callable[[Sequence[AnyMessage], int], SummaryDraft] | None = None,
    *,
    drafts: list[SummaryDraft] | None = None,
) -> str:
    """Returns a draft summary of about `target_length` characters; `review_drafts` decides whether it's used.

    Args:
        messages: Messages of complete turns, tool calls and results included.
        target_length: `int(original_chars * compression_rate)`.
        summarise: Writes the draft (`Summariser.summarise`); None picks sentences without a model.
        drafts: The draft with its cost is appended here.

    Raises:
        TurnStoppedSignal: The call was stopped.
        ModelError: The summary model failed.
    """
    summarise = summarise or ExtractiveSummariser().summarise
    draft = summarise(messages, target_length)
    if drafts is not None:
        drafts.append(draft)
    return draft.text.strip()


class ExtractiveSummariser:
    """Picks the highest-scoring sentences; needs no model and no network, and costs no tokens."""

    name = "extractive"
    prompt_version = "2"

    def summarise(
        self, messages: Sequence[AnyMessage], target_chars: int, *, counts: TermCounts | None = None, **_: object
    ) -> SummaryDraft:
        """Returns the picked sentences; ignores the other arguments of `ModelSummariser.summarise`.

        Args:
            messages: What to condense, tool results included.
            target_chars: Length to aim at.
            counts: The terms of the whole session; None counts those of `messages`.
            _: Ignored.
        """
        text = extract_summary(
            messages, target_chars, counts=counts, is_dull=lambda said: is_casual(said) or is_own_phrase(said)
        )
        return SummaryDraft(text, 0, 0, is_usage=False)


class ModelSummariser:
    """Asks a chat model for the summary in one user message.

    Args:
        attempts: Maximum number of attempts of a call that may be retried.
        window_tokens: The model's context window; a larger source is condensed in parts, which are joined.

    Attributes:
        prompt_version: Changes whenever the words of any style's prompt change.
    """

    prompt_version = "/".join(style.PROMPT_VERSION for style in _GENERATORS)

    def __init__(
        self, model: ChatRunnable, caller: ModelCaller, name: str, *, attempts: int, window_tokens: int
    ) -> None:
        self.name = name
        self._model = model
        self._caller = caller
        self._attempts = attempts
        self._source_tokens = max(_PROMPT_TOKENS, int(window_tokens * _SOURCE_SHARE) - _PROMPT_TOKENS)

    def summarise(
        self,
        messages: Sequence[AnyMessage],
        target_chars: int,
        *,
        feedback: str = "",
        style: PromptStyle = "plain",
        answer_tokens: int | None = None,
        may_retry: bool = False,
        stop: threading.Event,
        deadline_seconds: float,
    ) -> SummaryDraft:
        """Returns a summary of about `target_chars` characters.

        Args:
            messages: What to condense, tool results included.
            target_chars: Length to aim at.
            feedback: What was wrong with the previous draft, "" for the first one.
            style: Selects the prompt.
            answer_tokens: Maximum length of the answer; None leaves it to the model.
            may_retry: Whether transient failures are retried.
            stop: When set, the call ends at once.
            deadline_seconds: Limit for all parts together.

        Raises:
            TurnStoppedSignal: `stop` was set.
            ModelError: The model failed.
        """
        ends_at = time.monotonic() + deadline_seconds
        language = user_language(messages)
        parts = list(_split(messages, self._source_tokens))
        sizes = [sum_tokens(part) for part in parts]
        attempts = self._attempts if may_retry else 1
        asked_chars = min(target_chars, summary_generator.MAX_TARGET_CHARS)
        drafts = []
        for part, size in zip(parts, sizes, strict=True):
            share = size / sum(sizes) if sum(sizes) else 1.0
            prompt = PROMPTS[style](part, max(1, int(asked_chars * share)), feedback, language)
            request: list[BaseMessage] = [HumanMessage(prompt)]
            if style == "structured":
                request.insert(0, SystemMessage(compaction_generator.SYSTEM_LINE))
            drafts.append(self._ask(request, answer_tokens, attempts, stop, max(0.0, ends_at - time.monotonic())))
        return SummaryDraft(
            "\n".join(draft.text for draft in drafts),
            sum(draft.input_tokens for draft in drafts),
            sum(draft.output_tokens for draft in drafts),
            is_usage=all(draft.is_usage for draft in drafts),
            is_cut=any(draft.is_cut for draft in drafts),
        )

    def _ask(
        self,
        request: Sequence[BaseMessage],
        answer_tokens: int | None,
        attempts: int,
        stop: threading.Event,
        deadline_seconds: float,
    ) -> SummaryDraft:
        answer = self._caller.call(
            self._model if answer_tokens is None else self._model.bind(max_tokens=answer_tokens),
            request,
            stop=stop,
            deadline_seconds=deadline_seconds,
            attempts=attempts,
        )
        said = text_of(answer.message)
        is_cut = answer.message.response_metadata.get("finish_reason") == "length" and _END_TAG not in said
        text = until_last_sentence(inside_tags(said)) if is_cut else inside_tags(said)
        if (usage := answer.usage) is not None:
            return SummaryDraft(text, usage.input_tokens, usage.output_tokens, is_usage=True, is_cut=is_cut)
        asked = sum(estimate_tokens(message.text) for message in request)
        return SummaryDraft(text, asked, estimate_tokens(said), is_usage=False, is_cut=is_cut)


Summariser = ModelSummariser | ExtractiveSummariser


def inside_tags(text: str) -> str:
    """Returns the text between `<summary>` tags; to its end without a closing tag, all of it without an opening one."""
    tagged = _TAGGED.search(text)
    return (tagged.group(1) if tagged else text).strip()


def _split(messages: Sequence[AnyMessage], limit_tokens: int) -> Iterator[list[AnyMessage]]:
    """Splits messages into parts of at most `limit_tokens`, in order; a larger message is cut."""
    part: list[AnyMessage] = []
    part_tokens = 0
    for message in (piece for whole in messages for piece in _cut(whole, limit_tokens)):
        tokens = message_tokens(message)
        if part and part_tokens + tokens > limit_tokens:
            yield part
            part, part_tokens = [], 0
        part.append(message)
        part_tokens += tokens
    yield part


def _cut(message: AnyMessage, limit_tokens: int) -> Iterator[AnyMessage]:
    """Cuts a message into pieces of at most `limit_tokens`, between words where possible; nothing is lost."""
    tokens = message_tokens(message)
    if tokens <= limit_tokens:
        yield message
        return
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    text = "\n".join([text_of(message), *(f"(tool call: {call['name']}({call['args']}))" for call in calls)])
    changes = {"content": "", "tool_calls": []} if calls else {"content": ""}
    bare = message.model_copy(update=changes)
    while text:
        # Tokens per character vary within a text, so each piece is estimated for itself.
        chars = max(1, len(text) * limit_tokens // max(1, estimate_tokens(text)))
        while chars > 1 and estimate_tokens(text[:chars]) > limit_tokens:
            chars = chars * 9 // 10
        space = text.rfind(" ", chars // 2, chars)
        end = space + 1 if space > 0 and chars < len(text) else chars
        yield bare.model_copy(update={"content": text[:end]})
        text = text[end:]
