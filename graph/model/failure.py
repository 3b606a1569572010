"""Maps errors of the OpenAI client and its HTTP library to `ModelError`; no other module depends on them."""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
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
    r"exceed|overflow|surpass|beyond|length error|too (?:long|large|many|big)|(?:long|larg|great|bigg|high)er than"
    r"|(?:more|less|fewer) than|maximum|\bmax|\blimit|at most|reduce|shorten|<=|(?:cannot|not|n't) fit|should be \["
    r"|configured context|\d(?: tokens)? ?> ?\d",
    re.IGNORECASE,
)
_OF_CONTEXT: Final = re.compile(
    r"\bcontext\W{0,3}(?:the )?(?:length|window|size|limit|overflow)|max_model_len|\bn.?ctx\b"
    r"|\bmodel(?:'s)? (?:length|context)\b",
    re.IGNORECASE,
)
_OF_INPUT: Final = re.compile(
    r"\b(?:prompts?|inputs?|request|messages?|tokens?|sequence|conversation|question|text)\b", re.IGNORECASE
)
_MEASURE: Final = re.compile(r"\b(?:tokens?|length|long|characters|chars)\b|\btoo (?:large|big)\b", re.IGNORECASE)
_TOO_LONG_IN_OTHER_SCRIPTS: Final = re.compile(
    r"(?:上下文|输入|提示词|文本|内容|消息|对话|字数|长度|\btokens?|\bprompt)[^。\n]{0,20}(?:超长|超限|超出|超过|过长|太长|过大|上限|太多)"
    r"|(?:コンテキスト|入力|プロンプト|トークン)[^。\n]{0,20}(?:超え|超過|長すぎ|上限)"
    r"|(?:超出|超过)[^。\n]{0,20}(?:上下文|长度|\btoken|字数)"
    r"|(?:입력|컨텍스트|프롬프트|토큰|문맥|메시지)[^.\n]{0,20}(?:초과|깁니다|길어|넘)",
    re.IGNORECASE,
)
# The answer's limit, and parts of a request that a shorter chat doesn't make shorter.
_OF_ELSE: Final = re.compile(
    r"completion tokens|max_?(?:completion_?|output_?)?tokens|budget.?tokens|thinking.?budget"
    r"|\b(?:string|array)\b|stop sequences|\bimages?\b",
    re.IGNORECASE,
)
# MiniMax ends its sentence with its own code.
_WINDOW: Final = re.compile(
    r"(?:less than|exceed|<=|>) (\d[\d,]*+)"
    r"|(?:\bmax(?!\w*_tokens)\w*|\blimit\w*|\ballowed|\bavailable|\bcontext)[^.\d]{0,60}?(?<!by )(\d[\d,]*+)(?<!\(2013)"
    r"|(?<![\d,])(\d[\d,]*+)(?: tokens?)? max"
    r"|should be \[\d{1,3}, ?(\d[\d,]*+)",
    re.IGNORECASE,
)
_LEAST_WINDOW_TOKENS: Final = 256
_TOO_LARGE_STATUS: Final = 413
_NO_INPUT_STATUS: Final = frozenset({401, 402, 403, 404, 429})
# A prompt's template that can't be rendered may be one without tools; whoever repeats the call sees.
_TOOLS: Final = re.compile(
    r"(?:not|n't) (?:\w{1,12} )?support (?:the )?(?:use of )?(?:tool|function)|support tool use|requires? --jinja"
    r"|enable-auto-tool-choice|--tool-call-parser"
    r"|(?<!parallel )\btools?\b(?! choice)[^.]{0,30}(?:\bnot|n't) (?:be )?(?:support|availab|enabl|allow|permit)"
    r"|(?:unsupported|unrecogni[sz]ed|unknown|unexpected|extra)\b[^.]{0,60}\btools\b|\btools?\b(?! choice)[^.]{0,40}"
    r"(?:unsupported|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)|forbidden)"
    r"|function.?call(?:s|ing)?[^.]{0,30}not (?:support|enabl)|rendering prompt|jinja"
    r"|不支持[^。]{0,20}(?:工具|函数|tool|function)|(?:工具|函数|\btools?|function)[^。]{0,20}不支持"
    r"|(?:도구|함수)[^.]{0,20}지원(?:하지|되지)",
    re.IGNORECASE,
)
_TOOLS_STATUS: Final = frozenset({400, 404, 422, 500, 501})
# By whatever words: a refusal that names the tools of its request, and neither one of them nor the calls made so far.
_OF_TOOLS: Final = re.compile(
    r"(?<!parallel )\b(?:tools?|functions|function.?call(?:s|ing)?)\b(?!.?choice)", re.IGNORECASE
)
_OF_ONE_TOOL: Final = re.compile(
    r"schema|tool_call_id|preceding|followed|role|'tools?[.\[]|\btools?[.\[]|array|string|invalid '?tools|tool.?result"
    r"|too (?:long|many)|duplicate|tool.?name",
    re.IGNORECASE,
)
_NOT_TAKEN: Final = re.compile(
    r"unsupported|(?:not|n't) (?:\w{1,12} )?(?:support|accept|allow|permit|recogni[sz]|applicable|compatible|available)"
    r"|unrecogni[sz]ed|unknown|unexpected|extra.(?:inputs|fields|forbidden)|additional propert|forbidden|disallowed"
    r"|incompatible|only (?:the default|allowed|supported|available|valid)|deprecated"
    r"|\bonly [^.]{1,20} (?:is|are) (?:allowed|supported|accepted|permitted)"
    r"|\binstead\b|no longer|cannot be (?:used|set|specified)|no such|不支持|不允许|지원하지|지원되지",
    re.IGNORECASE,
)
# What a request can't do without, or its sender must know of.
_NEEDED: Final = frozenset(
    ("model", "messages", "stream", "tools", "functions", "function_call", "response_format", "n", "stop", "logprobs")
)
# Said of a request's parts alone; names of one word that aren't among them are words of any sentence, too.
_PLAIN_NAMES: Final = frozenset({"temperature", "seed", "thinking"})
_LIMIT_NAMES: Final = frozenset({"max_tokens", "max_completion_tokens"})
_LIMIT_SPELLINGS: Final = ("max tokens", "max output tokens", "max new tokens", "max completion tokens")
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9]+")
_OF_REASONING: Final = re.compile(
    r"reasoning.?(?:content|details|text)|messages\W\d+\W\W?reasoning|thought.?signature", re.IGNORECASE
)
_WANTED: Final = re.compile(
    r"pass(?:ed)? back|missing|required|must (?:be|have|include|contain)|expected|必须|必須|缺少", re.IGNORECASE
)
_PARAMETER_STATUS: Final = frozenset({400, 404, 422, 500, 501})
_SHAPE_STATUS: Final = frozenset({400, 422})
_RETRY_IN: Final = re.compile(
    r"(?:retry|try again|available)[ _](?:in|after)\W{0,3}(\d+(?:\.\d+)?) ?(ms|s|sec\w*|m|min\w*)?\b"
    r"|retryDelay\W+(\d+(?:\.\d+)?)s",
    re.IGNORECASE,
)
_ROUTE: Final = re.compile(r"/(?:chat/completions|embeddings|models)/*$")
_MARKUP: Final = re.compile(r"<[^<>]*+>")
_PAGE_TITLE: Final = re.compile(r"<title[^<>]*+>([^<]*+)", re.IGNORECASE)
_BAD_REQUEST: Final = re.compile(r"bad.?request|invalid.?(?:request|argument|parameter)", re.IGNORECASE)
_REASON_FIELDS: Final = ("message", "error_message", "error", "detail", "msg", "reason", "title", "raw")
_REASON_NAME: Final = re.compile(
    r"(?:message|msg|errors?|reason|details?|info|description|resp|response|header|data|body|result)\Z", re.IGNORECASE
)
_QUOTA: Final = re.compile(
    r"insufficient.(?:quota|balance|credits?|funds)|billing_hard_limit|credit balance is too low|余额不足|欠费",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(r"content_filter|content_policy_violation|responsible.?ai.?policy", re.IGNORECASE)
_MISSING: Final = re.compile(r"model_not_found|model .{1,100}(?:does not exist|not found)", re.IGNORECASE)
# Wordings of llama.cpp, LM Studio, Ollama, OpenRouter, vLLM, OpenAI, DeepSeek and Mistral.
_NO_IMAGES: Final = re.compile(
    r"(?:\bnot|n't|no endpoints found that) support (?:the |any )?images?\b(?! ?(?:format|type|size|url))"
    r"|images? inputs? (?:is|are) not (?:supported|enabled)|vision (?:is )?not supported|not a multimodal model"
    r"|image_url is only supported|unknown variant .?image_url|at most 0 image|missing data required for image",
    re.IGNORECASE,
)
_RATE_LIMIT: Final = re.compile(r"rate.?limit|throttl|速率限制|频率|请求过多|并发", re.IGNORECASE)
_HTTP_ERROR: Final = re.compile(r"[45]\d\d")
_TOOL_CHOICE: Final = re.compile(r"tool.?choice", re.IGNORECASE)
# By the status and the words, the first that fits.
_BY_WORDS: Final[Sequence[tuple[type[ModelError], Collection[int], re.Pattern[str]]]] = (
    (NoImagesError, frozenset(range(400, 600)) - {401, 403, 429}, _NO_IMAGES),
    (QuotaError, {400, 403, 429}, _QUOTA),
    (RefusedError, {400}, _REFUSAL),
    (ToolsRefusedError, _TOOLS_STATUS, _TOOLS),
    (ModelMissingError, {400}, _MISSING),
    (ToolChoiceError, {400, 422}, _TOOL_CHOICE),
)
# By the status alone; those from 500 on are of the provider, too.
_BY_STATUS: Final[Mapping[int, type[ModelError]]] = {
    **dict.fromkeys((400, 413, 422), RejectedError),
    401: AuthenticationError,
    402: QuotaError,
    403: AccessDeniedError,
    404: ModelMissingError,
    **dict.fromkeys((408, 409, 425), ProviderError),
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
        return BadResponseError(scrubbed(reason_of(error.body), secrets))
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
    return scrubbed(f"{parts.scheme}://{host}{path}", secrets) if host else ""


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
    named = {str(name).lower(): value for name, value in body.items()}
    names = dict.fromkeys((*_REASON_FIELDS, *filter(_REASON_NAME.search, named)))
    reason = next(filter(None, (reason_of(named.get(name), depth=depth - 1) for name in names)), "")
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
    ways = zip(*_WINDOW.findall(reason_of(error.body) or words), strict=True)
    found = ([int(digits.replace(",", "")) for digits in way if digits] for way in ways)
    sizes = ([size for size in way if size >= _LEAST_WINDOW_TOKENS] for way in found)
    return next((min(way) for way in sizes if way), None)


def refused_parameter(error: APIStatusError, body: Mapping[str, Any], *, given: Collection[str] = ()) -> str:
    """Returns what its endpoint doesn't take of a request's body, if that can be left out; else "".

    Its name in any spelling is enough; that of what a program has `given` only with words that it isn't taken at all:
    the program must know of a value that is wrong.
    """
    words = _words(error)
    if error.status_code not in _PARAMETER_STATUS or _TOOLS.search(words) or _is_overflow(error.status_code, words):
        return ""
    said = _spaced(f"{error.message} {_values(error.body)}")
    named = {name: place for name in body if name not in _NEEDED and (place := _place_of(name, body, said))}
    if body.get("tool_choice") != "auto":
        named.pop("tool_choice", None)
    if not _NOT_TAKEN.search(words):
        is_ours = error.status_code in _SHAPE_STATUS
        named = {
            name: place
            for name, place in named.items()
            if is_ours and name not in given and ("_" in name or name in _PLAIN_NAMES or place.is_of_part)
        }
    return min(named, key=lambda name: (not named[name].is_of_part, named[name].at), default="")


def reasoning_wanted(error: APIStatusError) -> bool | None:
    """Returns whether an endpoint wants the reasoning of earlier answers back, by its error; None for another error."""
    words = _words(error)
    if error.status_code not in _SHAPE_STATUS or not _OF_REASONING.search(words):
        return None
    if _NOT_TAKEN.search(words):
        return False
    return True if _WANTED.search(words) else None


def _spaced(words: str) -> str:
    return f" {_NO_LETTER.sub(' ', _CAPITAL.sub(' ', words)).strip()} ".lower()


class _Place(NamedTuple):
    """Where a sentence names a part of a request, or, more narrowly, a part of that."""

    at: int
    is_of_part: bool


def _place_of(name: str, body: Mapping[str, Any], said: str) -> _Place | None:
    """Returns where a sentence of plain words names a part of a request, or a part of that; None if nowhere."""
    inner = [each for each in _names_in(body[name]) if "_" in each and each not in body]
    limits = [f" {spelling} " for spelling in _LIMIT_SPELLINGS] if name in _LIMIT_NAMES else []
    for is_of_part, names, others in ((True, inner, []), (False, [name], limits)):
        spellings = [*map(_spaced, names), *(f" {each.replace('_', '')} " for each in names), *others]
        if found := [at for spelling in spellings if (at := said.find(spelling)) >= 0]:
            return _Place(min(found), is_of_part)
    return None


def _names_in(value: object) -> Iterator[str]:
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        yield name
        yield from _names_in(inner)


def _values(body: object) -> str:
    """Returns the words of an error's body without the names of its fields."""
    if isinstance(body, Mapping):
        return " ".join(map(_values, body.values()))
    return " ".join(map(_values, body)) if isinstance(body, list) else str(body)


def _from_response(error: APIStatusError, secrets: Iterable[str]) -> ModelError:
    sentence = scrubbed(reason_of(error.body), secrets)
    detail = f"HTTP {error.status_code}" + (f": {sentence}" if sentence else "")
    words = _words(error)
    headers = _retry_after(error.response.headers)
    kind = _from_status(error.status_code, words, detail, _retry_in(words) if headers is None else headers)
    return ToolsRefusedError(detail) if type(kind) is RejectedError and _names_tools(error, sentence) else kind


def _names_tools(error: APIStatusError, sentence: str) -> bool:
    """Whether a refused request offered tools and the refusal names them; whoever repeats it without them sees."""
    offers = b'"tools":' in error.request.content
    return offers and bool(_OF_TOOLS.search(sentence)) and not _OF_ONE_TOOL.search(sentence)


def _from_event(error: APIError, secrets: Iterable[str]) -> ModelError:
    """Maps an error sent as an event of the stream, after HTTP status 200."""
    words = _words(error)
    status = 400 if _BAD_REQUEST.search(words) else 500
    if error.code and _HTTP_ERROR.fullmatch(str(error.code)):
        status = int(error.code)
    if _RATE_LIMIT.search(words):
        status = 429
    elif _QUOTA.search(words):
        status = 402
    return _from_status(status, words, scrubbed(reason_of(error.body) or error.message, secrets), _retry_in(words))


def _is_overflow(status: int, words: str) -> bool:
    if status in _NO_INPUT_STATUS or (status != _TOO_LARGE_STATUS and _RATE_LIMIT.search(words)):
        return False
    # Names of fields and codes are words as well: `context_overflow`, `ContextLengthExceeded`.
    said = _CAPITAL.sub(" ", words).replace("_", " ")
    if _OF_CONTEXT.search(said) and _EXCESS.search(said):
        return True
    if _OF_ELSE.search(words):
        return False
    if status == _TOO_LARGE_STATUS or _TOO_LONG_IN_OTHER_SCRIPTS.search(words):
        return True
    return bool(_EXCESS.search(said) and _OF_INPUT.search(said) and _MEASURE.search(said))


def _from_status(status: int, words: str, detail: str, retry_after_seconds: float | None) -> ModelError:
    by_status = _BY_STATUS.get(status, ProviderError if status >= 500 else BadResponseError)  # noqa: PLR2004  # HTTP's
    by_words = (kind for kind, statuses, said in _BY_WORDS if status in statuses and said.search(words))
    kind = ContextLengthError if _is_overflow(status, words) else next(by_words, by_status)
    return kind(detail, retry_after_seconds=retry_after_seconds)


def _words(error: APIError) -> str:
    return f"{error.message} {_dumped(error.body)}"


def _dumped(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body, default=str, ensure_ascii=False)


def scrubbed(sentence: str, secrets: Iterable[str] = ()) -> str:
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
    ways: tuple[tuple[str, Callable[[str], float]], ...] = (
        ("retry-after-ms", lambda sent: float(sent) / 1000),
        ("retry-after", float),
        ("retry-after", lambda sent: parsedate_to_datetime(sent).timestamp() - time.time()),
    )
    for name, read in ways:
        with suppress(KeyError, ValueError):
            if not math.isnan(seconds := read(headers[name])):
                return max(0.0, seconds)
    return None
