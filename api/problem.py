"""What a refused or failed request is answered with, in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from starlette.responses import JSONResponse, Response

REQUEST_ID: Final = "x-request-id"
# Clients hold a request for as long as this says.
_LONGEST_WAIT_SECONDS: Final = 60
_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    429: "rate_limit_error",
}


@dataclass(frozen=True)
class Problem:
    """Why a request has no answer.

    Attributes:
        status: The HTTP status; it counts for nothing once the headers are out.
        code: What programs decide by, such as "model_not_found".
        message: One or two sentences for whoever reads the program's error.
        param: The field of the request that is wrong, if it is one.
        retry_after_seconds: When to try again, None for no advice.
        is_final: Clients are told not to repeat the request by themselves.
        headers: Further headers of the answer.
    """

    status: int
    code: str
    message: str
    param: str | None = None
    retry_after_seconds: int | None = None
    is_final: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Returns the body, which is also the last line of a stream that fails."""
        kind = _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")  # noqa: PLR2004 - where HTTP has its server errors
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        """Returns the answer: plain JSON, never a stream of events, and with a request id of its own."""
        headers = {REQUEST_ID: new_request_id(), "Cache-Control": "no-store", **self.headers}
        if self.retry_after_seconds is not None:
            headers["Retry-After"] = str(min(self.retry_after_seconds, _LONGEST_WAIT_SECONDS))
        if self.is_final:
            headers["x-should-retry"] = "false"
        return JSONResponse(self.body(), status_code=self.status, headers=headers)


class ProblemError(Exception):
    """A request is refused at the door: no part of the service heard of it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem


def new_request_id() -> str:
    """Returns an id for one request; never one that the client sent."""
    return f"req_{uuid4().hex}"


def refused(code: str, message: str, param: str | None = None, *, status: int = 400) -> ProblemError:
    """Returns what to raise for a request that is wrong however often it is sent."""
    return ProblemError(Problem(status, code, message, param))
