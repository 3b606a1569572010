"""Answers programs beside all sessions, in threads: titles, tags, and what asks for no memory."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from langchain_core.messages import AnyMessage, SystemMessage

from graph.core.attached import with_images
from graph.core.text import estimate_tokens, plain_text, plain_value, sum_tokens
from graph.core.turn import image_parts, is_cut, text_of
from graph.model.chunk import Answer, Usage
from graph.model.factory import ChatModels
from graph.model.spending import Spending
from graph.recognise.client_turns import archived_call, to_messages
from graph.store.call import SideCall, SideRequestStore
from graph.value.client import ClientOptions, ClientRequest, ClientUsage, CompletionEnd
from graph.value.error import (
    BadResponseError,
    ClosingError,
    InternalError,
    RefusedError,
    StoreError,
    TurnfoldError,
    TurnStoppedSignal,
)
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    Event,
    ThoughtDelta,
    TokenDelta,
    TurnFailed,
    TurnFinished,
    TurnStopped,
)
from graph.worker.limiter import TurnLimiter
from graph.worker.turn_log import TurnLog

_LOG = logging.getLogger(__name__)
_TURN = 0  # a side request is no turn of any session


class SideRequest:
    """One side request: `log` has the text, then the last event; `end` is set before that."""

    def __init__(self, request: ClientRequest, owner: str) -> None:
        self.request = request
        self.owner = owner
        self.log = TurnLog(_TURN, 1)
        self.end = CompletionEnd("stop", None, {})


class SideRequestRunner:
    """Sends requests to the model as they are, and stores what they cost, nothing of their text.

    A side request takes a slot of `limiter` as a turn does.
    """

    def __init__(
        self,
        models: ChatModels,
        store: SideRequestStore,
        limiter: TurnLimiter,
        spending: Spending,
        *,
        clock: Callable[[], datetime],
        deadline_seconds: float | None,
        attempts: int,
        max_workers: int,
    ) -> None:
        self._models = models
        self._store = store
        self._limiter = limiter
        self._spending = spending
        self._clock = clock
        self._deadline_seconds = deadline_seconds
        self._attempts = attempts
        self._running: set[SideRequest] = set()
        self._lock = threading.Lock()
        self._is_closing = False
        self._pool = ThreadPoolExecutor(max_workers=max_workers, thread_name_prefix="aside")

    def begin(self, request: ClientRequest, owner: str) -> SideRequest:
        """Starts to answer a request.

        Raises:
            BusyError: A limit of the server is reached (`ServerBusyError`, `TurnRateError`).
            ClosingError: The server is closing.
        """
        side_request = SideRequest(request, owner)
        self._limiter.begin(owner)
        with self._lock:
            if self._is_closing:
                self._limiter.end(owner)
                raise ClosingError
            self._running.add(side_request)
            self._pool.submit(self._run, side_request)
        return side_request

    def close(self) -> None:
        """Stops what is being answered and waits for it."""
        with self._lock:
            self._is_closing = True
            for side_request in self._running:
                side_request.log.stop.set()
        self._pool.shutdown(wait=True)

    def _run(self, side_request: SideRequest) -> None:
        try:
            last = self._outcome(side_request)
        except BaseException:  # noqa: BLE001 - the edge of a worker: logged here, and told as a failed answer
            _LOG.exception("a side request ended by a defect")
            last = TurnFailed(_TURN, InternalError.code, "")
        with self._lock:
            self._running.discard(side_request)
        self._limiter.end(side_request.owner)
        side_request.log.append(last)

    def _outcome(self, side_request: SideRequest) -> Event:
        pieces: list[str] = []

        def hear(text: str) -> None:
            pieces.append(text)
            side_request.log.append(TokenDelta(text))

        def sort() -> None:
            pieces.clear()
            side_request.log.append(AnswerRestarted(is_sorted=True))

        try:
            answer = self._call(side_request, hear, sort)
        except TurnStoppedSignal:
            return TurnStopped(_TURN, "".join(pieces))
        except TurnfoldError as error:
            if isinstance(error, RefusedError):
                side_request.end = CompletionEnd("content_filter", None, {})
            return TurnFailed(_TURN, error.code, error.detail)
        return _last_event(side_request, answer)

    def _call(self, side_request: SideRequest, on_text: Callable[[str], None], on_revoke: Callable[[], None]) -> Answer:
        options = side_request.request.options
        model = self._models.chat(side_request.request.model).bind(**_parameters(options))
        messages = _messages(side_request.request)
        if any(map(image_parts, messages)):
            messages = with_images(messages, {})  # those of results stand behind them
        began = time.monotonic()
        try:
            answer = self._models.caller.call(
                model,
                messages,
                stop=side_request.log.stop,
                deadline_seconds=self._deadline_seconds,
                attempts=self._attempts,
                on_text=on_text,
                on_thought=lambda thought: side_request.log.append(ThoughtDelta(thought)),
                on_revoke=on_revoke,
                may_restart=False,
            )
        except TurnfoldError as error:
            self._keep(side_request, messages, None, began, error.code)
            raise
        self._keep(side_request, messages, answer.usage, began, "")
        return answer

    def _keep(
        self,
        side_request: SideRequest,
        messages: Sequence[AnyMessage],
        usage: Usage | None,
        began: float,
        error_code: str,
    ) -> None:
        """Stores what the call cost; the answer counts more than a row that can't be written."""
        options = side_request.request.options
        tools = json.dumps(options.tools, ensure_ascii=False, default=dict) if options.tools else ""
        call = SideCall(
            owner=side_request.owner,
            model=side_request.request.model or self._models.default_name,
            sent_tokens=sum_tokens(messages) + estimate_tokens(tools),
            usage_input_tokens=usage.input_tokens if usage else None,
            usage_output_tokens=usage.output_tokens if usage else None,
            usage_cached_tokens=usage.cached_tokens if usage else None,
            seconds=time.monotonic() - began,
            error_code=error_code,
            created_at=self._clock(),
        )
        self._spending.add_call(
            side_request.owner,
            "aside",
            usage,
            sent_tokens=call.sent_tokens,
            answer_text=side_request.log.partial_text,
            seconds=call.seconds,
            error_code=error_code,
        )
        try:
            self._store.add(call, client=options.name)
        except StoreError as error:
            _LOG.warning("the cost of a side request was not kept: %s", error.code)


def _messages(request: ClientRequest) -> list[AnyMessage]:
    system = plain_text(request.options.system or "")
    return [*([SystemMessage(system)] if system else []), *to_messages(request.messages)]


def _parameters(options: ClientOptions) -> dict[str, object]:
    """Returns what goes to the model beside the messages, whatever the client library knows of it."""
    parameters: dict[str, object] = {}
    if options.sampling:
        parameters["extra_body"] = plain_value(dict(options.sampling))
    if options.tools:
        parameters["tools"] = plain_value([dict(tool) for tool in options.tools])
        if options.tool_choice is not None:
            parameters["tool_choice"] = plain_value(options.tool_choice)
    return parameters


def _last_event(side_request: SideRequest, answer: Answer) -> Event:
    """Sets how the answer ended and returns its last event."""
    message, text = answer.message, text_of(answer.message)
    if message.invalid_tool_calls:
        return TurnFailed(_TURN, BadResponseError.code, "")
    usage = None
    if answer.usage is not None:
        usage = ClientUsage(answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cached_tokens)
    if message.tool_calls:
        side_request.end = CompletionEnd("tool_calls", usage, {})
        return ActionRequired(_TURN, str(message.id), text, tuple(map(archived_call, message.tool_calls)))
    side_request.end = CompletionEnd("length" if is_cut(message) else "stop", usage, {})
    return TurnFinished(_TURN, str(message.id), text)
