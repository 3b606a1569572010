"""What the headers of a request say, and a client's own ids of a chat wherever it puts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.datastructures import Headers

from api.problem import refused
from graph.value.client import Hint

SESSION: Final = "X-Turnfold-Session"
TURN: Final = "X-Turnfold-Turn"
MATCHED: Final = "X-Turnfold-Matched"
_TASK: Final = "X-Turnfold-Task"
_ON_DISCONNECT: Final = "X-Turnfold-On-Disconnect"
_VALUE_CHARS: Final = 256
# In order of how surely each names one chat.
_HINT_HEADERS: Final = (
    "x-openwebui-chat-id",
    "x-conversation-id",
    "x-session-id",
    "x-session-affinity",
    "x-opencode-session",
)
_HINT_METADATA: Final = ("session_id", "chat_id", "conversation_id")
_HINT_FIELD: Final = "prompt_cache_key"


def session_of(headers: Headers, metadata: Mapping[str, Any]) -> str:
    """Returns the session that the request names, "" for none.

    Raises:
        ProblemError: 400: it can't be the id of a session.
    """
    return header(headers, SESSION) or _checked("metadata.turnfold_session", metadata.get("turnfold_session"))


def hint_of(headers: Headers, body: Mapping[str, Any], metadata: Mapping[str, Any]) -> Hint | None:
    """Returns the first of the client's own ids of the chat.

    Raises:
        ProblemError: 400: one of them isn't short, printable ASCII.
    """
    candidates: Iterable[tuple[str, Any]] = (
        *((name, headers.get(name)) for name in _HINT_HEADERS),
        *((f"metadata.{name}", metadata.get(name)) for name in _HINT_METADATA),
        (_HINT_FIELD, body.get(_HINT_FIELD)),
    )
    checked = [(name, _checked(name, value)) for name, value in candidates]
    # A temporary chat of Open WebUI shares its id with all others of its tab.
    return next((Hint(name, value) for name, value in checked if value and not value.startswith("local:")), None)


def user_of(headers: Headers, body: Mapping[str, Any]) -> str:
    """Returns the client's id of the end user, "" for none.

    Raises:
        ProblemError: 400: it isn't a short text.
    """
    if forwarded := header(headers, "X-OpenWebUI-User-Id"):
        return forwarded
    for name in ("user", "safety_identifier"):
        value = body.get(name, "")
        if value is not None and (not isinstance(value, str) or len(value) > _VALUE_CHARS):
            raise refused("invalid_value", f"{name}: it is a text of up to {_VALUE_CHARS} characters.", name)
        if value:
            return value
    return ""


def task_of(headers: Headers) -> str:
    """Returns what the request says that it is for, "" for the chat itself.

    Raises:
        ProblemError: 400: it isn't short, printable ASCII.
    """
    return header(headers, _TASK)


def is_retry(headers: Headers) -> bool:
    """Whether the client's library says that it sent this request before."""
    count = headers.get("x-stainless-retry-count", "0")
    return count.isdecimal() and count.strip("0") != ""


def goes_on(headers: Headers) -> bool:
    """Whether the turn goes on when the client closes its stream.

    Raises:
        ProblemError: 400: the header says neither "stop" nor "continue".
    """
    said = header(headers, _ON_DISCONNECT).lower()
    if said not in ("", "stop", "continue"):
        raise refused("invalid_header", f"{_ON_DISCONNECT}: it is stop or continue.")
    return said == "continue"


def header(headers: Headers, name: str) -> str:
    """Returns a header's value, "" for none.

    Raises:
        ProblemError: 400: it isn't short, printable ASCII.
    """
    return _checked(name, headers.get(name))


def _checked(name: str, value: object) -> str:
    """Returns a value that may be sent back in a header as it is."""
    if value is None:
        return ""
    if isinstance(value, str) and len(value) <= _VALUE_CHARS and value.isascii() and value.isprintable():
        # Templates that the client had nothing to put into are no value: "{{TASK}}".
        return "" if value.startswith("{{") and value.endswith("}}") else value.strip()
    raise refused("invalid_header", f"{name}: it is up to {_VALUE_CHARS} printable ASCII characters.", name)
