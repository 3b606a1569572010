"""Maps errors of the OpenAI client and its HTTP library to `ModelError`; no other module depends on them."""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from graph.value.error import (
    AccessDeniedError,
    AuthenticationError,
    BadResponseError,
    ContextLengthError,
    CutStreamError,
    DeadlineError,
    ModelError,
    ModelMissingError,
    NoImagesError,
    ProviderError,
    QuotaError,
    RateLimitError,
    RefusedError,
    RejectedError,
    ToolChoiceError,
    ToolsRefusedError,
    UnreachableError,
)

if TYPE_CHECKING:
    from openai import APIError, APIStatusError

_DETAIL_CHARS: Final = 200
_HIDDEN: Final = "***"
_KEY_LIKE: Final = re.compile(
    r"\b(?:sk|pk|gsk|xai|hf|r8|rk|key|api)[-_][\w.*-]{4,}|\bAIza[\w-]{10,}|\bBearer\s+\S+|(?<=://)[^\s/@]+@|\b[A-Za-z0-9_-]{40,}\b"
)
# An input is too long if a sentence names what is measured, the measure, and that there is too much of it.
_EXCESS: Final = re.compile(
    r"exceed|overflow|too (?:long|large|many)|(?:long|larg|great)er than|(?:more|less) than|maximum|\bmax|\blimit"
    r"|at most|reduce|<=|cannot fit",
    re.IGNORECASE,
)
_OF_CONTEXT: Final = re.compile(
    r"\bcontext\W{0,3}(?:the )?(?:length|window|size|limit|overflow)|context_(?:length|size|window)|max_model_len"
    r"|\bmodel length",
    re.IGNORECASE,
)
_OF_INPUT: Final = re.compile(r"\b(?:prompt|inputs?|request|messages?|tokens?|sequence|conversation)\b", re.IGNORECASE)
_MEASURE: Final = re.compile(r"\b(?:tokens?|length|long)\b|\btoo large for (?:the )?model", re.IGNORECASE)
# The answer's limit, and parts of a request that a shorter chat doesn't make shorter.
_OF_ELSE: Final = re.compile(
    r"completion tokens|max_(?:completion_|output_)?tokens|\b(?:string|array)\b|stop sequences|\bimages?\b",
    re.IGNORECASE,
)
_WINDOW: Final = re.compile(
    r"(?:less than|exceed|<=|>) (\d[\d,]*+)"
    r"|(?:\bmax(?!\w*_tokens)\w*|\blimit\w*|\ballowed|\bavailable|\bcontext)[^.\d]{0,60}?(?<!by )(\d[\d,]*+)"
    r"|(?<![\d,])(\d[\d,]*+)(?: tokens?)? max",
    re.IGNORECASE,
)
_LEAST_WINDOW_TOKENS: Final = 256
_NO_INPUT_STATUS: Final = frozenset({401, 402, 403, 404, 429})
# A prompt's template that can't be rendered may be one without tools; whoever repeats the call sees.
_TOOLS: Final = re.compile(
    r"(?:not|n't) support (?:the )?(?:use of )?(?:tool|function)|support tool use|requires? --jinja"
    r"|enable-auto-tool-choice"
    r"|\btools?\b(?! choice)[^.]{0,30}(?:\bnot|n't) (?:be )?(?:support|availab|enabl|allow|permit)"
    r"|(?:unsupported|unrecogni[sz]ed|unknown|unexpected|extra)\b[^.]{0,60}\btools\b|\btools\b[^.]{0,40}"
    r"(?:unsupported|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)|forbidden)"
    r"|function.?call(?:s|ing)?[^.]{0,30}not (?:support|enabl)|rendering prompt|jinja",
    re.IGNORECASE,
)
_TOOLS_STATUS: Final = frozenset({400, 404, 422, 500, 501})
_NOT_TAKEN: Final = re.compile(
    r"unsupported|(?:not|n't) support|not permitted|not allowed|unrecogni[sz]ed|unknown|unexpected"
    r"|extra.(?:inputs|fields)|forbidden|not available|only the default|deprecated|\binstead\b",
    re.IGNORECASE,
)
# What a request can do without. Another parameter's refusal is the caller's matter.
_PARAMETERS: Final = (
    "stream_options",
    "parallel_tool_calls",
    "return_progress",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "chat_template_kwargs",
    "tool_choice",
    "top_k",
    "min_p",
    "seed",
)
_PARAMETER: Final = re.compile(r"\b(?:{})\b".format("|".join(_PARAMETERS)))
_PARAMETER_STATUS: Final = frozenset({400, 404, 422, 500, 501})
_RETRY_IN: Final = re.compile(
    r"(?:retry|try again|available) (?:in|after)\W{0,3}(\d+(?:\.\d+)?) ?(ms|s|sec\w*|m|min\w*)?\b"
    r"|retryDelay\W+(\d+(?:\.\d+)?)s",
    re.IGNORECASE,
)
_ROUTE: Final = re.compile(r"/(?:chat/completions|embeddings|models)/*$")
_MARKUP: Final = re.compile(r"<[^<>]*+>")
_PAGE_TITLE: Final = re.compile(r"<title[^<>]*+>([^<]*+)", re.IGNORECASE)
_BAD_REQUEST: Final = re.compile(r"bad.?request|invalid.?(?:request|argument|parameter)", re.IGNORECASE)
_REASON_FIELDS: Final = ("message", "error_message", "error", "detail", "msg", "reason", "title", "raw")
_QUOTA: Final = re.compile(r"insufficient_quota|billing_hard_limit|insufficient.balance", re.IGNORECASE)
_REFUSAL: Final = re.compile(r"content_filter|content_policy_violation|responsible.?ai.?policy", re.IGNORECASE)
_MISSING: Final = re.compile(r"model_not_found|model .{1,100}(?:does not exist|not found)", re.IGNORECASE)
# Wordings of llama.cpp, LM Studio, Ollama, OpenRouter, vLLM, OpenAI, DeepSeek and Mistral.
_NO_IMAGES: Final = re.compile(
    r"(?:\bnot|n't|no endpoints found that) support (?:the |any )?images?\b(?! ?(?:format|type|size|url))"
    r"|images? inputs? (?:is|are) not (?:supported|enabled)|vision (?:is )?not supported|not a multimodal model"
    r"|image_url is only supported|unknown variant .?image_url|at most 0 image|missing data required for image",
    re.IGNORECASE,
)
_RATE_LIMIT: Final = re.compile(r"rate.?limit", re.IGNORECASE)
_HTTP_ERROR: Final = re.compile(r"[45]\d\d")
_TOOL_CHOICE: Final = re.compile(r"tool.?choice", re.IGNORECASE)
_BUSY_STATUS: Final = frozenset({408, 409, 425})
_BY_STATUS: Final[Mapping[int, type[ModelError]]] = {
    400: RejectedError,
    401: AuthenticationError,
    403: AccessDeniedError,
    404: ModelMissingError,
    413: RejectedError,
    422: RejectedError,
    429: RateLimitError,
}


def to_model_error(error: BaseException, *, secrets: Iterable[str] = ()) -> BaseException:
    """Returns the matching `ModelError` with secrets removed from its detail; other errors are returned unchanged."""
    import httpx2  # noqa: PLC0415  # slow to import, and the offline model never needs it
    import openai  # noqa: PLC0415  # slow to import, and the offline model never needs it
    from pydantic import ValidationError  # noqa: PLC0415  # needed only with these two

    if isinstance(error, openai.APIStatusError):
        return _from_response(error, secrets)
    if isinstance(error, openai.APIResponseValidationError):
        return BadResponseError(_scrub(reason_of(error.body), secrets))
    # In this order: the client's timeout is a subclass of its connection error.
    plain: dict[type[ModelError], tuple[type[BaseException], ...]] = {
        BadResponseError: (json.JSONDecodeError, UnicodeError, ValidationError),
        DeadlineError: (openai.APITimeoutError, httpx2.TimeoutException, TimeoutError),
        UnreachableError: (openai.APIConnectionError, httpx2.RequestError, httpx2.StreamError, ConnectionError),
    }
    for ours, theirs in plain.items():
        if isinstance(error, theirs):
            return ours(_asked_address(error, secrets) if ours is UnreachableError else "")
    if isinstance(error, openai.APIError):
        return _from_event(error, secrets)
    if isinstance(error, ValueError) and "No generation chunks" in str(error):
        return CutStreamError()
    return error


def address_of(url: str, *, secrets: Iterable[str] = ()) -> str:
    """Returns an endpoint's base URL without credentials and query, from it or the URL of a request to it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    path = _ROUTE.sub("", parts.path).rstrip("/")
    return _scrub(f"{parts.scheme}://{host}{path}", secrets) if host else ""


def _asked_address(error: BaseException, secrets: Iterable[str]) -> str:
    with suppress(AttributeError, RuntimeError):  # not every error knows its request
        return address_of(str(error.request.url), secrets=secrets)  # type: ignore[attr-defined]  # of httpx2
    return ""


def reason_of(body: object, *, depth: int = 4) -> str:
    """Returns the sentence in an error's body, be it text, a page, OpenAI's JSON or other JSON; "" without one."""
    if isinstance(body, str):
        title = _PAGE_TITLE.search(body)
        return " ".join(html.unescape(title[1] if title else _MARKUP.sub(" ", body)).split())
    if isinstance(body, list) and depth:
        return "; ".join(filter(None, (reason_of(part, depth=depth - 1) for part in body[:3])))
    if not isinstance(body, Mapping) or not depth:
        return ""
    reason = next(filter(None, (reason_of(body.get(name), depth=depth - 1) for name in _REASON_FIELDS)), "")
    location = body.get("loc")
    where = ".".join(str(part) for part in location) if isinstance(location, list) else ""
    # A router's own sentence says only that a provider failed.
    inner = body.get("metadata")
    raw = reason_of(inner.get("raw"), depth=depth - 1) if isinstance(inner, Mapping) else ""
    return ": ".join(filter(None, (where, reason, raw if raw != reason else "")))


def overflow_window(error: APIError) -> int | None:
    """Returns the context window told by an error about too long an input; None for another, or if it tells none."""
    words = _words(error)
    if not _is_overflow(getattr(error, "status_code", 500), words):
        return None
    size = error.body.get("n_ctx") if isinstance(error.body, Mapping) else None
    if isinstance(size, int):
        return size
    # What an input was compared with tells more than what is named a limit.
    ways = zip(*_WINDOW.findall(words), strict=True)
    found = ([int(digits.replace(",", "")) for digits in way if digits] for way in ways)
    sizes = ([size for size in way if size >= _LEAST_WINDOW_TOKENS] for way in found)
    return next((min(way) for way in sizes if way), None)


def refused_parameter(error: APIStatusError, body: Mapping[str, Any]) -> str:
    """Returns the parameter of a request's body that its endpoint doesn't know, if it can be left out; else ""."""
    words = _words(error)
    if error.status_code not in _PARAMETER_STATUS or not _NOT_TAKEN.search(words) or _TOOLS.search(words):
        return ""
    named = set(_PARAMETER.findall(words)) & body.keys() - (
        {"tool_choice"} if body.get("tool_choice") != "auto" else set()
    )
    return min(named, key=_PARAMETERS.index, default="")


def _from_response(error: APIStatusError, secrets: Iterable[str]) -> ModelError:
    sentence = _scrub(reason_of(error.body), secrets)
    detail = f"HTTP {error.status_code}" + (f": {sentence}" if sentence else "")
    words = _words(error)
    headers = _retry_after(error.response.headers)
    return _from_status(error.status_code, words, detail, _retry_in(words) if headers is None else headers)


def _from_event(error: APIError, secrets: Iterable[str]) -> ModelError:
    """Maps an error sent as an event of the stream, after HTTP status 200."""
    words = _words(error)
    status = 400 if _BAD_REQUEST.search(words) else 500
    if error.code and _HTTP_ERROR.fullmatch(str(error.code)):
        status = int(error.code)
    if _RATE_LIMIT.search(words):
        status = 429
    return _from_status(status, words, _scrub(reason_of(error.body) or error.message, secrets), _retry_in(words))


def _is_overflow(status: int, words: str) -> bool:
    if status in _NO_INPUT_STATUS or not _EXCESS.search(words):
        return False
    if _OF_CONTEXT.search(words):
        return True
    return bool(_OF_INPUT.search(words) and _MEASURE.search(words)) and not _OF_ELSE.search(words)


def _from_status(status: int, words: str, detail: str, retry_after_seconds: float | None) -> ModelError:
    kind: type[ModelError]
    if _is_overflow(status, words):
        kind = ContextLengthError
    elif _NO_IMAGES.search(words) and status not in (401, 403, 429):
        kind = NoImagesError
    elif status == 402 or (status in (403, 429) and _QUOTA.search(words)):  # noqa: PLR2004  # HTTP's own numbers
        kind = QuotaError
    elif status == 400 and _REFUSAL.search(words):  # noqa: PLR2004  # HTTP's own number
        kind = RefusedError
    elif status in _TOOLS_STATUS and _TOOLS.search(words):
        kind = ToolsRefusedError
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
    return f"{error.message} {_dumped(error.body)}"


def _dumped(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body, default=str, ensure_ascii=False)


def _scrub(sentence: str, secrets: Iterable[str]) -> str:
    """Returns the sentence on one line, cut to 200 characters, with secrets and anything like a key masked."""
    for secret in secrets:
        if secret:
            sentence = sentence.replace(secret, _HIDDEN)
    sentence = " ".join(_KEY_LIKE.sub(_HIDDEN, sentence).split())
    return sentence if len(sentence) <= _DETAIL_CHARS else sentence[: _DETAIL_CHARS - 1] + "…"


def _retry_in(words: str) -> float | None:
    """Returns the seconds to wait by an error's words."""
    if (said := _RETRY_IN.search(words)) is None:
        return None
    number, unit = float(said[1] or said[3]), (said[2] or "s").lower()
    return number / 1000 if unit == "ms" else number * 60 if unit.startswith("m") else number


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
