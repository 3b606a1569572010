"""Maps errors of the OpenAI client and its HTTP library to `ModelError`; no other module depends on them."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from graph.value.error import (
    AccessDeniedError,
    AuthenticationError,
    BadResponseError,
    ContextLengthError,
    CutStreamError,
    DeadlineError,
    ModelError,
    ModelMissingError,
    ProviderError,
    QuotaError,
    RateLimitError,
    RefusedError,
    ToolChoiceError,
    UnreachableError,
)

if TYPE_CHECKING:
    from openai import APIError, APIStatusError

_DETAIL_CHARS: Final = 200
_HIDDEN: Final = "***"
_KEY_LIKE: Final = re.compile(
    r"\b(?:sk|pk|gsk|xai|hf|r8|rk|key|api)[-_][\w.*-]{4,}|\bAIza[\w-]{10,}|\bBearer\s+\S+|(?<=://)[^\s/@]+@|\b[A-Za-z0-9_-]{40,}\b"
)
# Wordings of OpenAI, Azure, vLLM, llama.cpp, Ollama, LM Studio, TGI, Anthropic, Gemini and Mistral, in this order.
_CONTEXT_LENGTH: Final = re.compile(
    r"context_length_exceeded|maximum context length|reduce the length of the (?:messages|prompt|input)"
    r"|maximum model length|max_model_len|exceed_context_size|exceeds the available context size"
    r"|input length exceeds the context length|exceeds? (?:the )?context (?:length|window|size|limit)"
    r"|tokens to keep from the initial prompt|context the overflows|context overflow"
    r"|inputs`? (?:tokens|must have less than)|prompt is too long|input token count .{0,40}exceeds"
    r"|input tokens exceed|too large for model",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(r"insufficient_quota|billing_hard_limit|insufficient.balance", re.IGNORECASE)
_REFUSAL: Final = re.compile(r"content_filter|content_policy_violation|responsible.?ai.?policy", re.IGNORECASE)
_MISSING: Final = re.compile(r"model_not_found|model .{1,100}(?:does not exist|not found)", re.IGNORECASE)
_RATE_LIMIT: Final = re.compile(r"rate.?limit", re.IGNORECASE)
_HTTP_ERROR: Final = re.compile(r"[45]\d\d")
_TOOL_CHOICE: Final = re.compile(r"tool.?choice", re.IGNORECASE)
_BUSY_STATUS: Final = frozenset({408, 409, 425})
_BY_STATUS: Final[Mapping[int, type[ModelError]]] = {
    401: AuthenticationError,
    403: AccessDeniedError,
    404: ModelMissingError,
    429: RateLimitError,
}


def to_model_error(error: BaseException, *, secrets: Iterable[str] = ()) -> BaseException:
    """Returns the matching `ModelError` with secrets removed from its detail; other errors are returned unchanged."""
    import httpx2  # noqa: PLC0415  # slow to import, and the offline model never needs it
    import openai  # noqa: PLC0415  # slow to import, and the offline model never needs it
    from pydantic import ValidationError  # noqa: PLC0415  # needed only with these two

    if isinstance(error, openai.APIStatusError):
        return _from_response(error, secrets)
    # In this order: the client's timeout is a subclass of its connection error.
    plain: dict[type[ModelError], tuple[type[BaseException], ...]] = {
        BadResponseError: (openai.APIResponseValidationError, json.JSONDecodeError, UnicodeError, ValidationError),
        DeadlineError: (openai.APITimeoutError, httpx2.TimeoutException, TimeoutError),
        UnreachableError: (openai.APIConnectionError, httpx2.RequestError, httpx2.StreamError, ConnectionError),
    }
    for ours, theirs in plain.items():
        if isinstance(error, theirs):
            return ours()
    if isinstance(error, openai.APIError):
        return _from_event(error, secrets)
    if isinstance(error, ValueError) and "No generation chunks" in str(error):
        return CutStreamError()
    return error


def _from_response(error: APIStatusError, secrets: Iterable[str]) -> ModelError:
    sentence = error.body.get("message") if isinstance(error.body, Mapping) else None
    detail = f"HTTP {error.status_code}"
    if isinstance(sentence, str) and sentence:
        detail = f"{detail}: {_scrub(sentence, secrets)}"
    return _from_status(error.status_code, _words(error), detail, _retry_after(error.response.headers))


def _from_event(error: APIError, secrets: Iterable[str]) -> ModelError:
    """Maps an error sent as an event of the stream, after HTTP status 200."""
    status = int(error.code) if error.code and _HTTP_ERROR.fullmatch(error.code) else 500
    words = _words(error)
    if _RATE_LIMIT.search(words):
        status = 429
    return _from_status(status, words, _scrub(error.message, secrets), None)


def _from_status(status: int, words: str, detail: str, retry_after_seconds: float | None) -> ModelError:
    kind: type[ModelError]
    if _CONTEXT_LENGTH.search(words) and status not in (401, 403, 404, 429):
        kind = ContextLengthError
    elif status == 402 or (status in (403, 429) and _QUOTA.search(words)):  # noqa: PLR2004  # HTTP's own numbers
        kind = QuotaError
    elif status == 400 and _REFUSAL.search(words):  # noqa: PLR2004  # HTTP's own number
        kind = RefusedError
    elif status == 400 and _MISSING.search(words):  # noqa: PLR2004  # HTTP's own number
        kind = ModelMissingError
    elif status in (400, 422) and _TOOL_CHOICE.search(words):
        kind = ToolChoiceError
    elif status in _BUSY_STATUS or status >= 500:  # noqa: PLR2004  # HTTP's own number
        kind = ProviderError
    else:
        kind = _BY_STATUS.get(status, BadResponseError)
    return kind(detail, retry_after_seconds=retry_after_seconds)


def _words(error: APIError) -> str:
    fields = error.body.values() if isinstance(error.body, Mapping) else ()
    return " ".join([error.message, *(str(field) for field in fields if isinstance(field, (str, dict)))])


def _scrub(sentence: str, secrets: Iterable[str]) -> str:
    """Returns the sentence on one line, cut to 200 characters, with secrets and anything like a key masked."""
    for secret in secrets:
        if secret:
            sentence = sentence.replace(secret, _HIDDEN)
    sentence = " ".join(_KEY_LIKE.sub(_HIDDEN, sentence).split())
    return sentence if len(sentence) <= _DETAIL_CHARS else sentence[: _DETAIL_CHARS - 1] + "…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds to wait by a Retry-After header (a number or a date); None without a valid one."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return None if math.isnan(seconds) else max(0.0, seconds)
