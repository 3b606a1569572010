"""The models of an endpoint and their context windows."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeGuard

from pydantic import SecretStr

from graph.value.error import BadResponseError, ModelMissingError, TurnfoldError

_LOG = logging.getLogger(__name__)
_FRESH_SECONDS: Final = 300.0
_FAILED_FRESH_SECONDS: Final = 30.0
_FIRST_WAIT_SECONDS: Final = 1.0
_WINDOW_FIELDS: Final = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
)
_NO_CHAT: Final = re.compile(
    r"embed|whisper|tts|dall-e|moderation|transcribe|realtime|audio|image|rerank|sora|babbage|davinci", re.IGNORECASE
)
UNKNOWN_WINDOW_TOKENS: Final = 8_192
_FINE_TUNED: Final = re.compile(r"^ft:([^:]+):.*")
_EDITION: Final = re.compile(r"-(?:\d{4}-\d\d-\d\d|\d{4}|latest)$")

Fetch = Callable[[], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True)
class CatalogEntry:
    """A chat model of the endpoint.

    Attributes:
        window_tokens: The context window in force; None if the endpoint doesn't tell it.
        features: What the model can do ("tools", "thinking", "vision"); None if the endpoint doesn't tell it.
        is_provisional: True if the window is known once the model is loaded.
        takes_images: None if the endpoint's list doesn't tell it.
    """

    name: str
    window_tokens: int | None
    features: frozenset[str] | None = None
    is_provisional: bool = False
    takes_images: bool | None = None


Complete = Callable[[tuple[CatalogEntry, ...]], tuple[CatalogEntry, ...]]


@dataclass
class _Fetching:
    """A fetch in progress: its list is there before what completes it."""

    is_listed: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)


class Catalog:
    """The endpoint's models, fetched at first use and cached for five minutes (half a minute after a failure).

    Fetches run one at a time in a background thread. No caller waits for a refresh: the old list is used meanwhile.

    Args:
        fetch: Returns the entries of the endpoint's list; has its own timeout and may raise a TurnfoldError.
        complete: Adds to the models of a list what the list doesn't tell; slower, and `entries` doesn't wait for it.
        clock: A monotonic clock in seconds.
        first_wait_seconds: Longest wait of `known` for the first list.
    """

    def __init__(
        self,
        fetch: Fetch,
        *,
        complete: Complete | None = None,
        clock: Callable[[], float] = time.monotonic,
        first_wait_seconds: float = _FIRST_WAIT_SECONDS,
    ) -> None:
        self._fetch = fetch
        self._complete = complete
        self._first_wait_seconds = first_wait_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: tuple[CatalogEntry, ...] = ()
        self._error: TurnfoldError | None = None
        self._expires_at = float("-inf")
        self._fetching: _Fetching | None = None
        self._first_wait_ends_at = float("-inf")
        self._was_fetched = False

    def entries(self) -> tuple[CatalogEntry, ...]:
        """Returns the chat models in the endpoint's order; waits only if no list is known.

        Raises:
            ModelError: The endpoint failed, and no earlier list is known.
        """
        fetching = self._renew_if_old()
        if fetching is not None and not self._entries:
            fetching.is_listed.wait()
        with self._lock:
            if self._error is not None and not self._entries:
                raise type(self._error)(self._error.detail)
            return self._entries

    def seen(self) -> tuple[CatalogEntry, ...]:
        """Returns the chat models of the last list, without asking for one."""
        return self._entries

    @property
    def error_code(self) -> str:
        """The code of the last fetch's error, "" after one that listed models."""
        if self._error is not None:
            return self._error.code
        return "" if self._entries or not self._was_fetched else ModelMissingError.code

    def known(self) -> tuple[CatalogEntry, ...]:
        """Returns the chat models known now; waits for the first fetch only, at most a second by default."""
        fetching = self._renew_if_old()
        if fetching is not None and not self._was_fetched:
            fetching.is_over.wait(max(0.0, self._first_wait_ends_at - time.monotonic()))
        return self._entries

    def _renew_if_old(self) -> _Fetching | None:
        """Starts a fetch if the list has expired; returns the fetch in progress, if any."""
        with self._lock:
            if self._fetching is None and self._clock() >= self._expires_at:
                self._fetching = _Fetching()
                self._first_wait_ends_at = time.monotonic() + self._first_wait_seconds
                threading.Thread(target=self._renew, args=(self._fetching,), name="model-list", daemon=True).start()
            return self._fetching

    def _renew(self, fetching: _Fetching) -> None:
        entries, error, listed_at = self._entries, None, self._clock()
        try:
            entries = tuple(entry for item in self._fetch() if (entry := _to_entry(item)) is not None)
            listed_at = self._clock()
            if self._complete is not None:
                self._entries = self._entries or entries
                fetching.is_listed.set()
                entries = self._complete(entries)
        except TurnfoldError as known_error:
            error = known_error
        except Exception:  # noqa: BLE001 - the edge of a thread: waiting threads must get an error
            _LOG.exception("the list of models could not be read")
            error = BadResponseError()
        is_final = error is None and not any(entry.is_provisional for entry in entries)
        with self._lock:
            self._entries, self._error = entries, error
            self._expires_at = listed_at + (_FRESH_SECONDS if is_final else _FAILED_FRESH_SECONDS)
            self._fetching = None
            self._was_fetched = True
        fetching.is_listed.set()
        fetching.is_over.set()


def window_of_profile(name: str) -> int | None:
    """Returns the context window in LangChain's profile of a model's name; None for a name without a profile.

    A provider prefix, release date and fine-tuning suffix are ignored.
    """
    plain = _FINE_TUNED.sub(r"\1", name.rsplit("/", 1)[-1].lower()).removeprefix("chat")
    return _profile_tokens(plain) or _profile_tokens(_EDITION.sub("", plain))


@lru_cache(maxsize=256)
def _profile_tokens(name: str) -> int | None:
    from langchain_openai import ChatOpenAI  # noqa: PLC0415  # slow to import, and offline never needs it

    # Created only for its profile, never called; the arguments keep it from reading the environment.
    model = ChatOpenAI(model=name, api_key=SecretStr("none"), base_url="http://127.0.0.1", openai_proxy=None)
    return (model.profile or {}).get("max_input_tokens") or None


def _to_entry(item: Mapping[str, Any]) -> CatalogEntry | None:
    name = item.get("id")
    if not isinstance(name, str) or not name or _NO_CHAT.search(name):
        return None
    meta, provider = item.get("meta"), item.get("top_provider")
    listed = [item.get(field) for field in _WINDOW_FIELDS]
    listed.insert(0, meta.get("n_ctx") if isinstance(meta, Mapping) else None)  # llama.cpp
    window = next(filter(is_size, listed), None)
    served = provider.get("context_length") if isinstance(provider, Mapping) else None  # OpenRouter
    if window is not None and is_size(served):
        window = min(window, served)
    kinds, parameters = item.get("architecture"), item.get("supported_parameters")  # OpenRouter
    taken = kinds.get("input_modalities") if isinstance(kinds, Mapping) else None
    takes_images = "image" in taken if isinstance(taken, list) else None
    features = None
    if isinstance(parameters, list):
        can = {"tools": "tools" in parameters, "thinking": "reasoning" in parameters, "vision": takes_images}
        features = frozenset(name for name, is_able in can.items() if is_able)
    return CatalogEntry(name, window, features, takes_images=takes_images)


def is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
