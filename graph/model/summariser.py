"""Writes the text of a summary, with a model or by extracting sentences."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from graph.core.language import is_casual
from graph.core.text import estimate_tokens
from graph.core.turn import text_of
from graph.fold.clean import clean_draft
from graph.fold.extract import TermCounts, extract_summary
from graph.fold.request import PROMPT_VERSION, SummaryRequest, messages_behind, requests_for
from graph.fold.review import Flaw, SummaryDraft
from graph.fold.spec import FoldSpec, fold_of_messages
from graph.model.caller import ChatRunnable, ModelCaller, drop
from graph.model.chunk import Answer
from graph.model.early_end import EarlyEnd, EarlyEndSignal
from graph.model.tool_choice import ToolChoice, calls_tools
from graph.offline.phrase import is_own_phrase
from graph.value.error import EmptyAnswerError, ModelError, TurnfoldError
from prompt.summary.summary_generator import MAX_TARGET_CHARS

__all__ = ["ExtractiveSummariser", "ModelSummariser", "Summariser", "SummaryDraft"]

_SOURCE_SHARE: Final = 0.75
# The rules, the preceding context, and the tags.
_PROMPT_TOKENS: Final = 1_600
# Providers count a reasoning model's hidden reasoning as part of its answer.
_REASONING_FACTOR: Final = 4
# Where answers are limited: to how many tokens at least, of which share of what the request leaves of the window, and
# how much longer than allowed a text may become. Thoughts aren't part of a text, and aren't ended with it.
_LEAST_TOKENS: Final = 256
_THOUGHT_TOKENS: Final = 4_096
_LEFT_SHARE: Final = 0.75
_LIMIT_TIMES: Final = 2
_READ_TOKENS: Final = 40
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
            messages, target_chars, counts=counts, is_dull=lambda text: is_casual(text) or is_own_phrase(text)
        )
        return SummaryDraft(text, 0, 0, is_usage=False, is_extracted=True)


class ModelSummariser:
    """Requests summaries from a chat model.

    A source larger than `window_tokens` is condensed in parts, which are joined; `source_tokens` of a quoted source fit
    into one request. `prompt_version` changes with the words of any style's prompt. `is_limited` limits the length of
    every answer, as on an endpoint that answers one request at a time.
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
        is_limited: bool = False,
        tool_choice: ToolChoice | None = None,
    ) -> None:
        self.name = name
        self.window_tokens = window_tokens
        self._tool_choice = tool_choice or ToolChoice()
        self._model = model
        self._caller = caller
        self._attempts = attempts
        self._is_limited = is_limited
        self.source_tokens = max(_PROMPT_TOKENS, int(window_tokens * _SOURCE_SHARE) - _PROMPT_TOKENS)

    def summarise(  # noqa: PLR0913  # what one call depends on, bound by its caller once for all drafts
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
        on_text: Callable[[str], None] = drop,
        lost: list[SummaryDraft] | None = None,
    ) -> SummaryDraft:
        """Returns a summary of about `target_chars` characters.

        Args:
            spec: The fold of these messages; None for a plain summary in Korean.
            in_place: The request that follows the chat itself; None to quote the messages.
            flawed: The first draft and its defect, appended to the same request to repair the draft.
            deadline_seconds: Limit for all parts together; None for no limit but silence.
            lost: Takes what was written if the summary can't be returned, for its cost.

        Raises:
            TurnStoppedSignal: `stop` was set.
            ModelError: The model failed.
        """
        ends_at = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        spec = spec or replace(fold_of_messages(messages, target_chars), message_turns=())
        attempts = self._attempts if may_retry else 1
        drafts: list[SummaryDraft] = []
        requests = requests_for(spec, self.source_tokens) if in_place is None else [in_place]
        for index, request in enumerate(requests):
            behind = [] if flawed is None else messages_behind(request, index, *flawed)
            window_tokens = self.window_tokens if self._is_limited else None
            call = _DraftCall(replace(request, messages=[*request.messages, *behind]), on_text, window_tokens)
            try:
                drafts.append(self._ask(call, self.answer_limit_tokens(spec), attempts, stop, ends_at))
            except TurnfoldError:
                if lost is not None:
                    lost += [*drafts, *call.broken_off()]
                raise
        return SummaryDraft(
            "\n".join(draft.text for draft in drafts),
            sum(draft.input_tokens for draft in drafts),
            sum(draft.output_tokens for draft in drafts),
            is_usage=all(draft.is_usage for draft in drafts),
            is_cut=any(draft.is_cut for draft in drafts),
            parts=tuple(draft.text for draft in drafts),
        )

    def read_ahead(self, request: SummaryRequest, *, stop: threading.Event, deadline_seconds: float | None) -> None:
        """Has a server with one slot read a request bit by bit, each one about as long as a turn's question.

        Servers read what is new of a request in one go, and until then no stop is heard: a turn that comes meanwhile
        would wait for all of it. A failure is left to the draft's own call.

        Raises:
            TurnStoppedSignal: `stop` was set.
        """
        source = request.messages[-1].text
        size = max(1, _READ_TOKENS * len(source) // max(1, estimate_tokens(source)))
        ends_at = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        for end in range(size, len(source), size):
            messages = [*request.messages[:-1], HumanMessage(source[:end])]

            def call(model: ChatRunnable, messages: Sequence[BaseMessage] = messages) -> Answer:
                return self._caller.call(
                    model.bind(max_tokens=1),
                    messages,
                    stop=stop,
                    deadline_seconds=None if ends_at is None else max(0.0, ends_at - time.monotonic()),
                    attempts=1,
                    on_text=EarlyEnd(most_chars=0).hear,  # a server may not know the limit by this name
                )

            try:
                self._tool_choice.ask(self.name, self._model, request.tools, call)
            except (EarlyEndSignal, EmptyAnswerError):
                continue
            except ModelError:
                return

    def answer_limit_tokens(self, spec: FoldSpec) -> int | None:
        """Returns the answer limit sent to the endpoint; None for the endpoint's own."""
        return None if spec.answer_tokens is None else spec.answer_tokens * _REASONING_FACTOR

    def _ask(
        self,
        call: _DraftCall,
        limit_tokens: int | None,
        attempts: int,
        stop: threading.Event,
        ends_at: float | None,
    ) -> SummaryDraft:
        request = call.request
        most_tokens = limit_tokens or call.most_tokens

        def ask(model: ChatRunnable) -> Answer:
            return self._caller.call(
                model if most_tokens is None else model.bind(max_tokens=most_tokens),
                request.messages,
                stop=stop,
                deadline_seconds=None if ends_at is None else max(0.0, ends_at - time.monotonic()),
                attempts=attempts,
                on_text=call.hear,
                on_thought=call.note_thought,
                on_restart=call.restart,
            )

        try:
            answer = self._tool_choice.ask(self.name, self._model, request.tools, ask)
        except EmptyAnswerError:
            return SummaryDraft("", call.asked_tokens, 0, is_usage=False)  # reviewed and repaired like any other draft
        except EarlyEndSignal:
            draft_text, usage, is_ended = call.draft_text, None, True
        else:
            # Text beside a tool call is no summary.
            draft_text = "" if request.tools and calls_tools(answer.message) else text_of(answer.message)
            usage, is_ended = answer.usage, answer.message.response_metadata.get("finish_reason") == "length"
        is_cut = is_ended and _END_TAG not in draft_text
        text = clean_draft(inside_tags(clean_draft(draft_text)))  # reasoning may contain tags, too
        if len(text) > _MOST_CHARS:
            text, is_cut = text[:_MOST_CHARS], True
        if usage is not None:
            return SummaryDraft(text, usage.input_tokens, usage.output_tokens, is_usage=True, is_cut=is_cut)
        return SummaryDraft(text, call.asked_tokens, estimate_tokens(draft_text), is_usage=False, is_cut=is_cut)


class _DraftCall:
    """A call for a draft, with what was said in all of its attempts.

    Args:
        request: What is sent.
        on_text: Receives each piece of text, "" for one of the thoughts.
        window_tokens: The window that a limited answer must fit into; None for no limit.

    Attributes:
        draft_text: Of the newest attempt.
        most_tokens: The limit that is sent if the fold has none of its own; None for none.
    """

    def __init__(self, request: SummaryRequest, on_text: Callable[[str], None], window_tokens: int | None) -> None:
        self.request = request
        self.draft_text = ""
        self.asked_tokens = sum(estimate_tokens(message.text) for message in request.messages)
        self.most_tokens = window_tokens and self._limit_tokens(window_tokens)
        self._said_before = ""
        self._on_text = on_text
        self._end = EarlyEnd(_LIMIT_TIMES * request.most_chars if window_tokens else None)

    def hear(self, text: str) -> None:
        self.draft_text += text
        self._on_text(text)
        self._end.hear(text)

    def note_thought(self, _: str) -> None:
        """Passes on that the stream moves; thoughts are no part of the draft."""
        self._on_text("")

    def restart(self) -> None:
        self._said_before += self.draft_text
        self.draft_text = ""
        self._end.restart()

    def broken_off(self) -> list[SummaryDraft]:
        """Returns what the call has cost if it failed: nothing before its first word."""
        draft_text = self._said_before + self.draft_text
        return [SummaryDraft("", self.asked_tokens, estimate_tokens(draft_text), is_usage=False)] if draft_text else []

    def _limit_tokens(self, window_tokens: int) -> int:
        """Returns four times the longest text that is asked for, with room for thoughts, within the window."""
        source = self.request.messages[-1].text
        tokens = self.request.most_chars * estimate_tokens(source) // max(1, len(source))
        left_tokens = int((window_tokens - self.asked_tokens) * _LEFT_SHARE)
        return max(_LEAST_TOKENS, min(left_tokens, max(_THOUGHT_TOKENS, tokens * _REASONING_FACTOR)))


Summariser = ModelSummariser | ExtractiveSummariser


def inside_tags(text: str) -> str:
    """Returns the text between `<summary>` tags, up to the end if unclosed; all of it without an opening tag."""
    tagged = _TAGGED.search(text)
    return (tagged.group(1) if tagged else text).strip()
