"""Writes the text of a summary, with a model or by picking sentences."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from langchain_core.messages import AnyMessage, BaseMessage

from graph.core.casual import is_casual
from graph.core.clean import clean_draft
from graph.core.extract import extract_summary
from graph.core.fold_spec import Asked
from graph.core.review import Flaw, SummaryDraft
from graph.core.summary_request import PROMPT_VERSION, messages_behind, requests_for
from graph.core.token import estimate_tokens
from graph.core.turn import text_of
from graph.core.weight import TermCounts
from graph.error import EmptyAnswerError
from graph.model.caller import ChatRunnable, ModelCaller
from graph.offline.phrase import is_own_phrase

__all__ = ["ExtractiveSummariser", "ModelSummariser", "Summariser", "SummaryDraft"]

_SOURCE_SHARE: Final = 0.75
# The rules, what stands before, and the tags.
_PROMPT_TOKENS: Final = 1_600
# Providers count a reasoning model's hidden thoughts as part of its answer.
_REASONING_FACTOR: Final = 4
_TAGGED: Final = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)
_END_TAG: Final = "</summary>"


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
    """Asks a chat model for the summary.

    Args:
        attempts: Maximum number of attempts of a call that may be retried.
        window_tokens: The model's context window; a larger source is condensed in parts, which are joined.

    Attributes:
        prompt_version: Changes whenever the words of any style's prompt change.
    """

    prompt_version = PROMPT_VERSION

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
        asked: Asked | None = None,
        flawed: tuple[SummaryDraft, Flaw] | None = None,
        may_retry: bool = False,
        stop: threading.Event,
        deadline_seconds: float,
    ) -> SummaryDraft:
        """Returns a summary of about `target_chars` characters.

        Args:
            messages: What to condense, tool results included.
            target_chars: Length to aim at.
            asked: What it is asked for with; None for the plain prompt in Korean.
            flawed: The first draft and what is wrong with it. The same request goes out again with both behind it.
            may_retry: Whether transient failures are retried.
            stop: When set, the call ends at once.
            deadline_seconds: Limit for all parts together.

        Raises:
            TurnStoppedSignal: `stop` was set.
            ModelError: The model failed.
        """
        ends_at = time.monotonic() + deadline_seconds
        asked = asked or Asked()
        attempts = self._attempts if may_retry else 1
        drafts: list[SummaryDraft] = []
        for place, request in enumerate(requests_for(messages, target_chars, asked, self._source_tokens)):
            sent = (
                request.messages if flawed is None else [*request.messages, *messages_behind(request, place, *flawed)]
            )
            drafts.append(self._ask(sent, asked.answer_tokens, attempts, stop, max(0.0, ends_at - time.monotonic())))
        return SummaryDraft(
            "\n".join(draft.text for draft in drafts),
            sum(draft.input_tokens for draft in drafts),
            sum(draft.output_tokens for draft in drafts),
            is_usage=all(draft.is_usage for draft in drafts),
            is_cut=any(draft.is_cut for draft in drafts),
            parts=tuple(draft.text for draft in drafts),
        )

    def _ask(
        self,
        request: Sequence[BaseMessage],
        answer_tokens: int | None,
        attempts: int,
        stop: threading.Event,
        deadline_seconds: float,
    ) -> SummaryDraft:
        asked_tokens = sum(estimate_tokens(message.text) for message in request)
        try:
            answer = self._caller.call(
                self._model
                if answer_tokens is None
                else self._model.bind(max_tokens=answer_tokens * _REASONING_FACTOR),
                request,
                stop=stop,
                deadline_seconds=deadline_seconds,
                attempts=attempts,
            )
        except EmptyAnswerError:
            return SummaryDraft("", asked_tokens, 0, is_usage=False)  # looked at and mended as any other draft
        said = text_of(answer.message)
        is_cut = answer.message.response_metadata.get("finish_reason") == "length" and _END_TAG not in said
        text = clean_draft(inside_tags(clean_draft(said)))  # thoughts may hold tags, too
        if (usage := answer.usage) is not None:
            return SummaryDraft(text, usage.input_tokens, usage.output_tokens, is_usage=True, is_cut=is_cut)
        return SummaryDraft(text, asked_tokens, estimate_tokens(said), is_usage=False, is_cut=is_cut)


Summariser = ModelSummariser | ExtractiveSummariser


def inside_tags(text: str) -> str:
    """Returns the text between `<summary>` tags; to its end without a closing tag, all of it without an opening one."""
    tagged = _TAGGED.search(text)
    return (tagged.group(1) if tagged else text).strip()
