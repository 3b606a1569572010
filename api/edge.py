"""What stands around the routes: an id for each answer, and OpenAI's shape for whatever goes wrong behind it."""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problem import REQUEST_ID, Problem, ProblemError, new_request_id
from api.refusal import problem_of
from graph.value.error import InternalError, TurnfoldError

_log = logging.getLogger(__name__)


class Edge:
    """Middleware: answers errors with a `Problem`, and logs those that are the server's own, without any text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection; all that isn't HTTP passes unchanged."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, is_answered = new_request_id(), False
        problem: Problem | None = None  # a request that its client gave up is never answered

        async def send_with_id(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            return  # nobody waits for an answer
        except (ProblemError, TurnfoldError, HTTPException) as error:
            problem = problem_of(error)
        except Exception:  # the edge of a request: whatever fails is logged, and answered in the same shape
            _log.exception("request %s failed", request_id)
            if is_answered:
                raise  # a stream that breaks off is no success to any client
            problem = problem_of(InternalError())
        if problem is not None and not is_answered:
            await problem.response()(scope, receive, send_with_id)
