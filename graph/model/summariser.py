"""Writes the text of a summary, with a model or by extracting sentences."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage

from graph.core.language import is_casual
from graph.core.text import estimate_tokens
from graph.core.turn import text_of
from graph.fold.clean import clean_draft
from graph.fold.extract import TermCounts, extract_summary
from graph.fold.request import PROMPT_VERSION, SummaryRequest, messages_behind, requests_for
from graph.fold.review import Flaw, SummaryDraft
from graph.fold.spec import FoldSpec, fold_of_messages
from graph.model.caller import ChatRunnable, ModelCaller
from graph.model.chunk import Answer
from graph.model.tool_choice import ToolChoice, calls_tools
from graph.offline.phrase import is_own_phrase
from graph.value.error import EmptyAnswerError
from prompt.summary.summary_generator import MAX_TARGET_CHARS

__all__ = ["ExtractiveSummariser", "ModelSummariser", "Summariser", "SummaryDraft"]

_SOURCE_SHARE: Final = 0.75
# The rules, the preceding context, and the tags.
_PROMPT_TOKENS: Final = 1_600
# Providers count a reasoning model's hidden reasoning as part of its answer.
_REASONING_FACTOR: Final = 4
# A model that repeats itself may write more, which would only be shortened.
_MOST_CHARS: Final = 10 * MAX_TARGET_CHARS
_TAGGED: Final = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)
_END_TAG: Final = "</summary>"


def generate_summary(
    messages: Sequence[AnyMessage],
    target_length: int,
    summarise: Callable[[Sequence[AnyMessage], int], SummaryDraft] | None = None,
    *,
    drafts: list[SummaryDraft] | None = None,
) -> str:
    """Returns a draft summary of about `target_length` characters; `review_drafts` decides whether it is used.

    Args:
        messages: Messages of complete turns, tool calls and results included.
        target_length: `int(original_chars * compression_rate)`.
        summarise: Writes the draft; None extracts sentences without a model.
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
    """Extracts the highest-scoring sentences; needs no model and no network, and costs no tokens."""

    name = "extractive"
    prompt_version = "2"

    def summarise(
        self, messages: Sequence[AnyMessage], target_chars: int, *, counts: TermCounts | None = None, **_: object
    ) -> SummaryDraft:
        """Returns extracted sentences of about `target_chars`.

        `counts` are the session's terms, None for those of `messages`.
        """
        text = extract_summary(
            messages, target_chars, counts=counts, is_dull=lambda said: is_casual(said) or is_own_phrase(said)
        )
        return SummaryDraft(text, 0, 0, is_usage=False, is_extracted=True)


class ModelSummariser:
    """Requests summaries from a chat model.

    A source larger than `window_tokens` is condensed in parts, which are joined; `source_tokens` of a quoted source fit
    into one request. `prompt_version` changes with the words of any style's prompt.
    """

    prompt_version = PROMPT_VERSION

    def __init__(
        self,
        model: BaseChatModel,
        caller: ModelCaller,
        name: str,
        *,
        attempts: int,
        window_tokens: int,
        tool_choice: ToolChoice | None = None,
    ) -> None:
        self.name = name
        self.window_tokens = window_tokens
        self._tool_choice = tool_choice or ToolChoice()
        self._model = model
        self._caller = caller
        self._attempts = attempts
        self.source_tokens = max(_PROMPT_TOKENS, int(window_tokens * _SOURCE_SHARE) - _PROMPT_TOKENS)

    def summarise(
        self,
        messages: Sequence[AnyMessage],
        target_chars: int,
        *,
        spec: FoldSpec | None = None,
        in_place: SummaryRequest | None = None,
        flawed: tuple[SummaryDraft, Flaw] | None = None,
        may_retry: bool = False,
        stop: threading.Event,
        deadline_seconds: float | None,
    ) -> SummaryDraft:
        """Returns a summary of about `target_chars` characters.

        Args:
            spec: The fold of these messages; None for a plain summary in Korean.
            in_place: The request that follows the chat itself; None to quote the messages.
            flawed: The first draft and its defect, appended to the same request to repair the draft.
            deadline_seconds: Limit for all parts together; None for no limit but silence.

        Raises:
            TurnStoppedSignal: `stop` was set.
            ModelError: The model failed.
        """
        ends_at = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        spec = spec or fold_of_messages(messages, target_chars)
        attempts = self._attempts if may_retry else 1
        drafts: list[SummaryDraft] = []
        requests = requests_for(spec, self.source_tokens) if in_place is None else [in_place]
        for index, request in enumerate(requests):
            behind = [] if flawed is None else messages_behind(request, index, *flawed)
            sent = replace(request, messages=[*request.messages, *behind])
            drafts.append(self._ask(sent, self.answer_limit_tokens(spec), attempts, stop, ends_at))
        return SummaryDraft(
            "\n".join(draft.text for draft in drafts),
            sum(draft.input_tokens for draft in drafts),
            sum(draft.output_tokens for draft in drafts),
            is_usage=all(draft.is_usage for draft in drafts),
            is_cut=any(draft.is_cut for draft in drafts),
            parts=tuple(draft.text for draft in drafts),
        )

    def answer_limit_tokens(self, spec: FoldSpec) -> int | None:
        """Returns the answer limit sent to the endpoint; None for the endpoint's own."""
        return None if spec.answer_tokens is None else spec.answer_tokens * _REASONING_FACTOR

    def _ask(
        self,
        request: SummaryRequest,
        limit_tokens: int | None,
        attempts: int,
        stop: threading.Event,
        ends_at: float | None,
    ) -> SummaryDraft:
        asked_tokens = sum(estimate_tokens(message.text) for message in request.messages)

        def call(model: ChatRunnable) -> Answer:
            return self._caller.call(
                model if limit_tokens is None else model.bind(max_tokens=limit_tokens),
                request.messages,
                stop=stop,
                deadline_seconds=None if ends_at is None else max(0.0, ends_at - time.monotonic()),
                attempts=attempts,
            )

        try:
            answer = self._tool_choice.ask(self.name, self._model, request.tools, call)
        except EmptyAnswerError:
            return SummaryDraft("", asked_tokens, 0, is_usage=False)  # reviewed and repaired like any other draft
        said = (
            "" if request.tools and calls_tools(answer.message) else text_of(answer.message)
        )  # text beside a tool call is no summary
        is_cut = answer.message.response_metadata.get("finish_reason") == "length" and _END_TAG not in said
        text = clean_draft(inside_tags(clean_draft(said)))  # reasoning may contain tags, too
        if len(text) > _MOST_CHARS:
            text, is_cut = text[:_MOST_CHARS], True
        if (usage := answer.usage) is not None:
            return SummaryDraft(text, usage.input_tokens, usage.output_tokens, is_usage=True, is_cut=is_cut)
        return SummaryDraft(text, asked_tokens, estimate_tokens(said), is_usage=False, is_cut=is_cut)


Summariser = ModelSummariser | ExtractiveSummariser


def inside_tags(text: str) -> str:
    """Returns the text between `<summary>` tags, up to the end if unclosed; all of it without an opening tag."""
    tagged = _TAGGED.search(text)
    return (tagged.group(1) if tagged else text).strip()
