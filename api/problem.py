"""The status, code and sentence of each error, in OpenAI's shape."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import uuid4

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from graph.value.error import InputError, ModelError, TurnfoldError, TurnRateError

REQUEST_ID: Final = "x-request-id"
# Clients wait as long as `Retry-After` says.
_LONGEST_WAIT_SECONDS: Final = 60
_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}


@dataclass(frozen=True)
class Problem:
    """An error response. `retry_after_seconds` is None for no advice.

    `is_final` tells clients not to repeat the request.
    """

    status: int
    code: str
    message: str
    param: str | None = None
    retry_after_seconds: int | None = None
    is_final: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Returns the JSON body, which is also the last line of a failed stream."""
        kind = _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")  # noqa: PLR2004 - where HTTP has its server errors
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        headers = {REQUEST_ID: new_request_id(), "Cache-Control": "no-store", **self.headers}
        if self.retry_after_seconds is not None:
            headers["Retry-After"] = str(min(self.retry_after_seconds, _LONGEST_WAIT_SECONDS))
        if self.is_final:
            headers["x-should-retry"] = "false"
        return JSONResponse(self.body(), status_code=self.status, headers=headers)


class ProblemError(Exception):
    """Refuses a request in the HTTP API, before it reaches the service."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def new_request_id() -> str:
    return f"req_{uuid4().hex}"


def refused(code: str, message: str, param: str | None = None, *, status: int = 400) -> ProblemError:
    """Returns the exception for a request that fails however often it is sent."""
    return ProblemError(Problem(status, code, message, param))


# The field of each input error that can only be in one field: a text may be a message, a title or a context.
_FIELDS: Final[Mapping[str, str]] = {
    "bad_image": "messages",
    "no_images": "messages",
    "unknown_call": "messages",
    "unknown_tool": "tools",
    "unanswered_call": "messages",
    "bad_rate": "compression_rate",
    "bad_strategy": "strategy",
}
# In the words of OpenAI's API, by which libraries tell this error from others.
_TOO_LONG: Final = (
    "This model's maximum context length is {} tokens. However, this request has about {} tokens. "
    "Please reduce the length of the messages."
)
_TOO_LONG_BY: Final = re.compile(r"≈(\d{1,12}) [≥>] (\d{1,12})")
# In the words of OpenAI's API, too, but not with its code: LiteLLM takes `string_above_max_length` for a wrong field.
_LONG_MESSAGE: Final = (
    "Invalid '{}': string too long. Expected a string with maximum length {}, but got one of length {}. "
    "Whoever runs this server sets the limit by MESSAGE_CHARS."
)
_LONGER_THAN: Final = re.compile(r"(\d{1,12}) > (\d{1,12})")
_STORAGE: Final = Problem(
    503, "storage_unavailable", "The chat can't be stored or read at the moment.", retry_after_seconds=5
)
_UPSTREAM: Final = Problem(503, "upstream_unavailable", "The model's server can't be reached.", retry_after_seconds=2)
_INTERNAL: Final = Problem(500, "internal_error", "Something unexpected went wrong. The server's log has the details.")


def _upstream(message: str) -> Problem:
    return replace(_UPSTREAM, message=message)


def _broken(message: str) -> Problem:
    return Problem(502, "upstream_error", message, is_final=True)


# By the code of a `TurnfoldError` or of a failed turn.
BY_CODE: Final[Mapping[str, Problem]] = {
    "internal": _INTERNAL,
    "settings": _INTERNAL,
    "closing": Problem(503, "server_closing", "The server is shutting down.", retry_after_seconds=5),
    "input": Problem(400, "invalid_request", "The request's content isn't accepted."),
    "attachment": Problem(400, "invalid_request", "This file can't be used."),  # programs send none
    "path": Problem(400, "invalid_path", "This path can't be used."),
    "mcp": _INTERNAL,  # programs start no server of tools
    # A token whose owner lost access looks like an unknown one.
    "sign_in": Problem(
        401,
        "invalid_api_key",
        "This isn't a token of this server. Send one as the API key: Authorization: Bearer <token>.",
        headers={"WWW-Authenticate": "Bearer"},
    ),
    "not_found": Problem(404, "session_not_found", "There is no session of this id."),
    "busy": Problem(
        409, "session_busy", "An answer in this session is still being made.", retry_after_seconds=5, is_final=True
    ),
    "server_busy": Problem(429, "server_busy", "The server makes as many answers as it can.", retry_after_seconds=5),
    "user_busy": Problem(
        429,
        "user_busy",
        "This user has as many answers under way as one may have on this server at once; try again when one has ended.",
        retry_after_seconds=5,
    ),
    "turn_rate": Problem(429, "rate_limit_exceeded", "Too many turns began within a minute.", retry_after_seconds=20),
    "user_rate": Problem(
        429, "rate_limit_exceeded", "This user has begun too many turns within this minute.", retry_after_seconds=20
    ),
    "user_tokens": Problem(
        429,
        "insufficient_quota",
        "This user's tokens for today are used up; they are counted anew from midnight (UTC) on.",
        retry_after_seconds=60,
        is_final=True,
    ),
    "stopped": Problem(409, "stopped", "The answer was stopped.", is_final=True),
    "interrupted": Problem(503, "interrupted", "The server stopped while it was answering.", retry_after_seconds=5),
    **dict.fromkeys(("store", "database", "not_a_database", "newer_database", "older_database"), _STORAGE),
    **dict.fromkeys(("database_busy", "database_unreachable", "disk_full", "file_access"), _STORAGE),
    **dict.fromkeys(("project", "project_busy", "project_damaged", "project_newer"), _STORAGE),
    "lease_lost": Problem(503, "session_taken_over", "Another server took this session over.", retry_after_seconds=5),
    "model": _upstream("The model couldn't be called."),
    "authentication": _broken("The model's server refuses this server's own API key."),
    "access_denied": _broken("This server's own API key may not use this model."),
    "model_missing": Problem(404, "model_not_found", "There is no model of this name.", "model"),
    "rate_limit": Problem(
        429, "rate_limit_exceeded", "The model's server has too many requests for now.", retry_after_seconds=5
    ),
    "quota": Problem(429, "insufficient_quota", "The account at the model's server has no credit left.", is_final=True),
    "context_length": Problem(
        400,
        "context_length_exceeded",
        "This model's maximum context length is exceeded by the question and all that goes with it.",
        "messages",
    ),
    "unreachable": _UPSTREAM,
    "deadline": _upstream("The answer took longer than this server's limit in seconds."),
    "silence": _upstream("The model's server was silent for too many seconds."),
    "cut_stream": _upstream("The answer broke off in the middle."),
    "empty_answer": _upstream("The model sent an empty answer."),
    "thought_limit": _broken("The model only thought: it ended without an answer, or had no tokens left for one."),
    "tools_refused": Problem(400, "tools_not_supported", "This model takes no tools.", "tools"),
    "refused": Problem(400, "content_filter", "The model refused to answer.", "messages"),
    "no_images": Problem(400, "no_images", "The model takes no images.", "messages"),
    # What the request asks for: to repeat it is of no use.
    "rejected": Problem(400, "invalid_request", "The model's server refuses this request."),
    "bad_response": _broken("The model's server sent a reply that can't be read."),
    "provider": _upstream("The model's server failed."),
    "tool_rounds": _broken("The model kept calling tools and gave no answer."),
}


def problem_of(error: TurnfoldError | HTTPException | ProblemError, path: str = "") -> Problem:
    """Returns the response for an error; `path` is the request's, if a route may be missing."""
    if isinstance(error, ProblemError):
        return error.problem
    if isinstance(error, HTTPException):
        return _of_http(error, path)
    if isinstance(error, InputError):
        return _of_input(error)
    problem = problem_of_failure(error.code, error.detail)
    if isinstance(error, TurnRateError):
        return replace(problem, retry_after_seconds=error.retry_after_seconds)
    if isinstance(error, ModelError) and error.retry_after_seconds is not None and not problem.is_final:
        return replace(problem, retry_after_seconds=math.ceil(error.retry_after_seconds))
    return problem


def problem_of_failure(code: str, detail: str = "") -> Problem:
    """Returns the response for the code of a `TurnfoldError` or of a failed turn.

    Details of internal and storage errors and the endpoint's address are only logged: they may name files and hosts.
    """
    problem = BY_CODE.get(code, BY_CODE["internal"])
    if code == "context_length" and (figures := _TOO_LONG_BY.fullmatch(detail)):
        return replace(problem, message=_TOO_LONG.format(figures[2], figures[1]))
    if not detail or code == "unreachable" or problem.code in ("internal_error", "storage_unavailable"):
        return problem
    return replace(problem, message=f"{problem.message} ({detail})")


# What OpenAI has and Turnfold hasn't, by the path below /v1.
_NOT_HERE: Final[Mapping[str, str]] = {
    "embeddings": "There are no embeddings here: set another server for them.",
    "completions": "There are no text completions here: POST /v1/chat/completions answers chats.",
    "conversations": "There are no conversations here: a chat goes on by its history, or by previous_response_id.",
    "responses/compact": "Responses aren't compacted here: long chats are folded without being asked to.",
    "responses/input_tokens": "Input tokens aren't counted here: an answer's usage tells them.",
}
_OURS: Final = frozenset({"models", "chat", "responses", "summarize"})
_SEGMENT: Final = re.compile(r"[a-z][a-z_]{0,31}")
# A base URL without /v1, with two of them, or with a route behind it.
_WRONG_BASE: Final = re.compile(
    r"/(?:v1/v1(?:/.*)?|(?:v1/(?:chat/completions|responses|models)/)?(?:chat/completions|responses|models))/?",
    re.DOTALL,
)


def _of_http(error: HTTPException, path: str) -> Problem:
    below = path.removeprefix("/v1/").rstrip("/") if path.startswith("/v1/") else ""
    if error.status_code == 404 or below in _NOT_HERE:  # noqa: PLR2004  # HTTP's own number
        return Problem(404, "unknown_url", _missing(path, below))
    code, message = {405: ("method_not_allowed", "This address doesn't take this method.")}.get(
        error.status_code, ("http_error", error.detail)
    )
    return Problem(error.status_code, code, message, headers=dict(error.headers or {}))


def _missing(path: str, below: str) -> str:
    """Returns what isn't there, or how the base URL ends; repeats no more of a path than the name of a route."""
    first = below.partition("/")[0]
    if _WRONG_BASE.fullmatch(path):
        return "There is nothing at this address. The base URL ends in /v1, and GET /v1/models lists the models."
    if path.rstrip("/") == "/v1":
        return "This is the base URL. GET /v1/models lists the models; POST /v1/chat/completions answers."
    if said := _NOT_HERE.get(below) or _NOT_HERE.get(first):
        return said
    if first in _OURS:
        return f"There is nothing at this address below /v1/{first}. /openapi.json describes all that is here."
    if _SEGMENT.fullmatch(first):
        return f"There is no /v1/{first} here: this server answers chats. /openapi.json describes all that is here."
    return "There is nothing at this address."


def message_too_long(detail: str, lengths: Sequence[tuple[str, int]] = ()) -> Problem:
    """Returns the response to a message that is too long.

    Args:
        detail: The error's: the message's length, and the limit.
        lengths: Where in the request its messages stand, and their lengths, oldest first.
    """
    chars, limit = map(int, figures.groups()) if (figures := _LONGER_THAN.fullmatch(detail)) else (0, 0)
    # Several questions that nobody answered are one.
    places = [place for place, length in lengths if length > limit] or [place for place, _ in lengths] or ["message"]
    return Problem(400, "context_length_exceeded", _LONG_MESSAGE.format(places[-1], limit, chars), places[-1])


def _of_input(error: InputError) -> Problem:
    detail = "" if error.detail == error.reason else error.detail
    if error.reason == "message_too_long":
        return message_too_long(error.detail)
    if error.reason in {"over_window", "over_guessed_window"}:
        return replace(problem_of_failure("context_length", detail), param=None)
    code = {"empty": "empty_message", "too_long": "string_above_max_length"}.get(error.reason, error.reason)
    why = error.reason.replace("_", " ")
    added = f" ({detail})" if detail else ""
    return Problem(400, code, f"The request's content isn't accepted: {why}{added}.", _FIELDS.get(error.reason))
