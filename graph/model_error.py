"""The errors of model calls; `graph.error` draws where they stand among all others."""

from __future__ import annotations

from typing import ClassVar

from graph.error import TurnfoldError


class ModelError(TurnfoldError):
    """Base of all errors of a model call.

    Attributes:
        is_transient: Whether a retry may succeed.
        retry_after_seconds: How long the provider asks to wait before a retry, or None.
    """

    code = "model"
    is_transient: ClassVar[bool] = False

    def __init__(self, detail: str = "", *, retry_after_seconds: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class AuthenticationError(ModelError):
    """401: the key is missing or wrong."""

    code = "authentication"


class AccessDeniedError(ModelError):
    """403: the key may not use this model."""

    code = "access_denied"


class ModelMissingError(ModelError):
    """404: the endpoint has no such model."""

    code = "model_missing"


class RateLimitError(ModelError):
    """429: too many requests at the moment."""

    code = "rate_limit"
    is_transient = True


class QuotaError(ModelError):
    """429 with `insufficient_quota`: the account has no credit left."""

    code = "quota"


class ContextLengthError(ModelError):
    """The input is longer than the model's context window."""

    code = "context_length"


class UnreachableError(ModelError):
    """No connection to the endpoint: refused, reset, or an unknown host."""

    code = "unreachable"
    is_transient = True


class DeadlineError(ModelError):
    """The call with its retries took longer than its deadline."""

    code = "deadline"


class CutStreamError(ModelError):
    """The stream ended without a finish reason, or in the middle of the answer."""

    code = "cut_stream"
    is_transient = True


class EmptyAnswerError(ModelError):
    """The answer ended properly but has neither text nor a tool call."""

    code = "empty_answer"
    is_transient = True


class RefusedError(ModelError):
    """The model or its content filter refused to answer."""

    code = "refused"


class BadResponseError(ModelError):
    """The response violates the protocol."""

    code = "bad_response"


class ToolChoiceError(BadResponseError):
    """400 that names `tool_choice`: the endpoint doesn't support it. The call is repeated without it."""


class ProviderError(ModelError):
    """5xx: the endpoint failed."""

    code = "provider"
    is_transient = True


class ToolRoundsError(ModelError):
    """The model kept calling tools after its last round and gave no answer."""

    code = "tool_rounds"
