"""Creates the chat models and summarisers of the configured endpoint, and their request bodies."""

from __future__ import annotations

import json
import logging
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import convert_to_openai_messages
from pydantic import SecretStr

from graph.core.model_options import knows_thinking, options_of, with_thinking
from graph.core.turn import EMBEDDED_MODEL
from graph.model.caller import ModelCaller
from graph.model.catalog import UNKNOWN_WINDOW_TOKENS, Catalog, CatalogEntry, window_of_profile
from graph.model.embedder import embedder_of
from graph.model.failure import address_of, scrubbed
from graph.model.local_server import ImageSupport, LocalServer
from graph.model.summariser import ExtractiveSummariser, ModelSummariser, Summariser
from graph.model.tool_choice import ToolChoice
from graph.offline.chat_model import OfflineChat
from graph.server.settings import Settings
from graph.value.error import ModelError, ModelMissingError, SettingsError, TurnfoldError
from graph.value.view import EndpointProblem, ModelOption, Thinking

if TYPE_CHECKING:
    import httpx2

_OPENAI_URL: Final = "https://api.openai.com/v1"
_OPENAI_DEFAULT: Final = "gpt-4o-mini"
_NO_KEY: Final = "not-needed"
_LIST_SECONDS: Final = 5.0
_ASK_SECONDS: Final = 2.0
_LOG = logging.getLogger(__name__)
InPlaceMode = Literal["auto", "always", "never"]
_ListEntries = Callable[[], Sequence[CatalogEntry]]


class ChatModels:
    """The models of a server. Nothing is sent to the endpoint until a model or the list of models is used.

    Attributes:
        caller: Makes the calls of these models only, because their connections belong to its loop.
        tool_choice: Makes the calls that must not use tools.
        embedder: Makes vectors of texts; None without `EMBEDDING_MODEL`.
    """

    def __init__(self, settings: Settings, caller: ModelCaller) -> None:
        self.caller = caller
        self.tool_choice = ToolChoice()
        self._settings = settings
        self._server = LocalServer(self._ask_server)
        self._image_support = ImageSupport(self._ask_server)
        self._catalog = Catalog(self._list_models, complete=self._server.complete if settings.openai_base_url else None)
        self._learned_windows: dict[str, int] = {}
        self._refused: dict[str, dict[str, str]] = {}
        caller.ask_progress = self._ask_progress
        self._lock = threading.Lock()
        self._chats: dict[tuple[str, Thinking], BaseChatModel] = {}
        self._connections: httpx2.AsyncClient | None = None
        self.embedder = embedder_of(settings, caller, self._connect, url=self._url, key=self._key, no_key=_NO_KEY)

    @property
    def default_name(self) -> str:
        """The model of a new session; "" while it depends on the endpoint's list and the list is unknown."""
        return self.known_name("")

    @property
    def has_one_slot(self) -> bool:
        """Whether the endpoint answers one request at a time, so that what a user says must go first.

        By the settings, else by what the server tells, else by its address.
        """
        settings = self._settings
        if settings.model_slots is None and settings.openai_base_url:
            self._known_entries()  # the slots are asked for with them
            if self._server.slots is not None:
                return self._server.slots == 1
        return settings.has_one_slot

    @property
    def in_place(self) -> InPlaceMode:
        """Which folds are requested in place: by default all on one slot, where a quoted source evicts the chat."""
        mode = self._settings.fold_in_place
        if self._settings.is_offline:
            return "never"
        return "always" if mode == "auto" and self.has_one_slot else mode

    def known_name(self, name: str) -> str:
        """Resolves a name without asking the endpoint; returns it unchanged if that fails."""
        try:
            return self._resolve(name, self._known_entries)
        except ModelError:
            return name

    def resolve(self, name: str) -> str:
        """Returns the name of the model that answers for a session's model name.

        "" and the embedded model's name mean the default model; without an endpoint every name means the embedded
        model.

        Raises:
            ModelError: The default depends on the endpoint's list, and the endpoint failed.
        """
        return self._resolve(name, self._catalog.entries)

    def _resolve(self, name: str, list_entries: _ListEntries) -> str:
        settings = self._settings
        if settings.is_offline:
            return EMBEDDED_MODEL
        if name not in ("", EMBEDDED_MODEL):
            return name
        if settings.chat_model is not None:
            return settings.chat_model
        return self._choose_default(list_entries)

    def chat(self, name: str, *, thinking: Thinking = "") -> BaseChatModel:
        """Returns the chat model for a session's model name; the same object each time.

        Args:
            name: The name.
            thinking: How much it is to think; ignored unless it is known that the model can be told so.

        Raises:
            ModelError: As `resolve`.
        """
        resolved = self.resolve(name)
        key = resolved, thinking if thinking and self.thinks(resolved) else ""
        with self._lock:
            if key not in self._chats:
                self._chats[key] = OfflineChat() if self._settings.is_offline else self._make(*key)
            return self._chats[key]

    def thinks(self, name: str) -> bool:
        """Returns True if a model is known to think as much as it is told, by its options or the endpoint's list."""
        if self._settings.is_offline:
            return False
        if knows_thinking(options_of(self._settings.model_options, name)):
            return True
        entry = _entry_of(name, self._known_entries())
        return entry is not None and "thinking" in (entry.features or ())

    def summariser(self, chat_name: str) -> Summariser:
        """Returns the summariser for sessions of this chat model.

        Raises:
            ModelError: As `resolve`.
        """
        if self._settings.is_offline:
            return ExtractiveSummariser()
        name = self.resolve(self._settings.chat_summary_model or chat_name)
        return ModelSummariser(
            self.chat(name),
            self.caller,
            name,
            tool_choice=self.tool_choice,
            attempts=self._settings.model_attempts,
            is_limited=self.has_one_slot,
            window_tokens=self.window_tokens(name),
        )

    def options(self) -> tuple[ModelOption, ...]:
        """Returns the selectable models: the default, then the endpoint's list by name."""
        if self._settings.is_offline:
            return (ModelOption(EMBEDDED_MODEL, is_offline=True),)
        listed = [entry.name for entry in self._known_entries()]
        names = dict.fromkeys(name for name in (self.default_name, *sorted(listed)) if name)
        return tuple(
            ModelOption(
                name,
                is_offline=False,
                has_tools=self.takes_tools(name),
                thinks=self.thinks(name),
                takes_images=self._lists_images(name),
            )
            for name in names
        )

    def endpoint_problem(self) -> EndpointProblem | None:
        """Returns why the endpoint's list of models can't be had; None if it can, or before it was asked for."""
        code = "" if self._settings.is_offline else self._catalog.error_code
        return EndpointProblem(address_of(self._url, secrets=[self._key]), code) if code else None

    def takes_tools(self, name: str) -> bool:
        """Returns False for a model whose endpoint lists it as one without tools or has refused them."""
        if self.tool_choice.is_without_tools(name):
            return False
        entry = _entry_of(name, self._catalog.seen())
        return entry is None or entry.features is None or "tools" in entry.features

    def window_tokens(self, name: str) -> int:
        """Returns the context window: from the settings, the endpoint's list or the name; 8,192 if unknown."""
        reported = self.reported_window_tokens(name)
        if reported is not None:
            return reported
        known = None if self._settings.is_offline else window_of_profile(name)
        return known or UNKNOWN_WINDOW_TOKENS

    def is_window_guessed(self, name: str) -> bool:
        """Whether `window_tokens` is a guess, as neither settings nor endpoint nor the name tell it."""
        is_known = self._settings.is_offline or self.reported_window_tokens(name) is not None
        return not is_known and window_of_profile(name) is None

    def reported_window_tokens(self, name: str) -> int | None:
        """Returns the context window from the settings or the endpoint, in its errors or its list; None if unknown."""
        reported = self._settings.model_window_tokens
        if reported is None and (entry := self._known_entry(name)) is not None:
            reported = entry.window_tokens
        learned = self._learned_windows.get(name)
        return learned if reported is None else min(reported, learned or reported)

    def takes_images(self, name: str) -> bool:
        """Returns False if the server lists the model as one of text alone, or refused an image minutes ago.

        A local server is asked for it, which takes up to some seconds.
        """
        if self._settings.is_offline:
            return True  # the embedded model says itself that it sees none
        resolved = self.known_name(name)
        entry = self._known_entry(resolved)
        return self._image_support.takes_images(
            resolved, listed=entry.takes_images if entry else None, can_ask=bool(self._settings.openai_base_url)
        )

    def _lists_images(self, name: str) -> bool | None:
        """Returns whether a model takes images, by the endpoint's list or a refusal; None if that isn't known."""
        if self._image_support.is_refused(name):
            return False
        entry = _entry_of(name, self._catalog.seen())
        if entry is None or entry.takes_images is not None or entry.features is None:
            return None if entry is None else entry.takes_images
        return "vision" in entry.features

    def note_no_images(self, name: str) -> None:
        """Remembers that the server has just refused an image for this model."""
        self._image_support.note_refusal(self.known_name(name))

    def input_tokens(self, name: str) -> int:
        """Returns the largest whole input for a session's model: the guard's share of the context window."""
        try:
            resolved = self.resolve(name)
        except ModelError:
            resolved = name
        return int(self.window_tokens(resolved) * self._settings.guard_share)

    def close(self) -> None:
        self.caller.loop.end_calls()
        if self._connections is not None:
            self.caller.run(self._connections.aclose, deadline_seconds=_LIST_SECONDS)

    def _choose_default(self, list_entries: _ListEntries) -> str:
        """Returns gpt-4o-mini where it probably exists, else the first model that the endpoint lists."""
        has_key = self._settings.openai_api_key is not None
        if has_key and self._settings.openai_base_url is None:
            return _OPENAI_DEFAULT
        try:
            listed = [entry.name for entry in list_entries()]
        except ModelError:
            if has_key:
                return _OPENAI_DEFAULT
            raise
        if not listed:
            raise ModelMissingError
        return _OPENAI_DEFAULT if has_key and _OPENAI_DEFAULT in listed else listed[0]

    def _known_entry(self, name: str) -> CatalogEntry | None:
        # OpenAI's own list tells nothing of a model, so there's no need to wait for it.
        if self._settings.is_offline or not self._settings.openai_base_url:
            return None
        return _entry_of(name, self._known_entries())

    def learn_window(self, name: str, tokens: int) -> None:
        """Remembers the context window of a model, or the size of an input that was too long for it."""
        known = self._learned_windows.get(name)
        if known is None or tokens < known:
            _LOG.warning("model %s has a context window of %d tokens by its endpoint's error", name, tokens)
            self._learned_windows[name] = tokens

    def _known_entries(self) -> tuple[CatalogEntry, ...]:
        """Returns the endpoint's models known now, so that no page and no turn waits for a hung endpoint."""
        import openai  # noqa: F401, PLC0415  # slow to import: that must not use up the wait for the first list

        return self._catalog.known()

    def _list_models(self) -> list[Mapping[str, Any]]:
        from openai import AsyncOpenAI  # noqa: PLC0415  # slow to import, and the offline model never needs it

        client = AsyncOpenAI(
            api_key=self._key, base_url=self._url, max_retries=0, timeout=_LIST_SECONDS, http_client=self._connect()
        )
        answer = self.caller.run(lambda: client.get("/models", cast_to=object), deadline_seconds=_LIST_SECONDS)
        items = answer.get("data") if isinstance(answer, dict) else None
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []

    def _ask_server(self, path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Returns the JSON object at a path of the server; {} if it has none, as most servers do."""
        try:
            answer = self.caller.run(lambda: self._request(path, body), deadline_seconds=_ASK_SECONDS)
        except TurnfoldError:
            return {}
        return answer if isinstance(answer, dict) else {}

    async def _request(self, path: str, body: Mapping[str, Any] | None = None) -> object:
        url = self._url.rstrip("/").removesuffix("/v1") + path
        headers = {"Authorization": f"Bearer {self._key}"}
        method = "GET" if body is None else "POST"
        answer = await self._connect().request(method, url, json=body, headers=headers, timeout=None)
        return answer.json() if answer.is_success else None

    def _ask_progress(self) -> Future[str | None]:
        """Starts to ask a llama.cpp server for what its slots have done; other servers can't tell it."""
        return self.caller.loop.start(self._progress)

    async def _progress(self) -> str | None:
        slots = await self._request("/slots")
        listed = slots if isinstance(slots, list) else []
        busy = [slot for slot in listed if isinstance(slot, dict) and slot.get("is_processing")]
        return json.dumps(busy) if busy else None

    def _make(self, name: str, thinking: Thinking) -> BaseChatModel:
        from graph.model.endpoint import EndpointChat  # noqa: PLC0415  # slow to import, see there

        options = options_of(self._settings.model_options, name)
        chat = EndpointChat(
            model=name,
            options=with_thinking(options, thinking, is_openrouter="openrouter.ai" in self._url),
            api_key=SecretStr(self._key),
            base_url=self._url,
            timeout=None,  # the caller ends what is silent
            max_retries=0,
            stream_usage=True,
            stream_chunk_timeout=None,
            use_responses_api=False,
            openai_proxy=None,
            http_client=_idle_client(),
            http_async_client=self._connect(),
        )
        completions = chat.completions
        completions.is_local_server = lambda: bool(self._server.kind)
        completions.tells_progress = lambda: self._server.kind == "llama.cpp"
        completions.on_window = partial(self.learn_window, name)
        completions.refused = self._refused.setdefault(name, completions.refused)
        return chat

    def _connect(self) -> httpx2.AsyncClient:
        """Returns a connection pool of this object; LangChain shares its pool across the event loops of a process."""
        from openai import DefaultAsyncHttpx2Client  # noqa: PLC0415  # slow to import, and offline never needs it

        if self._connections is None:
            self._connections = DefaultAsyncHttpx2Client(verify=_certificates())
        return self._connections

    @property
    def _key(self) -> str:
        # Local servers take any key, and the client refuses to start without one.
        return self._settings.openai_api_key.get_secret_value() if self._settings.openai_api_key else _NO_KEY

    @property
    def _url(self) -> str:
        # Always passed: without it the client reads environment variables that aren't settings of ours.
        return self._settings.openai_base_url or _OPENAI_URL


def _entry_of(name: str, entries: Sequence[CatalogEntry]) -> CatalogEntry | None:
    names = (name, f"{name}:latest")  # Ollama's list names the tag, too
    return next((entry for entry in entries if entry.name in names), None)


@cache
def _certificates() -> ssl.SSLContext:
    """Returns the trusted certificates; cached, because reading them takes as long as a turn."""
    import httpx2  # noqa: PLC0415  # slow to import, and offline never needs it

    return httpx2.create_ssl_context()


@cache
def _idle_client() -> httpx2.Client:
    """Returns a client that is never used; without it LangChain makes one and reads the certificates again."""
    import httpx2  # noqa: PLC0415  # slow to import, and offline never needs it

    return httpx2.Client(verify=_certificates())


def _check_environment(settings: Settings) -> None:
    """Raises `SettingsError` for proxies or certificates of the environment that no client can be made with."""
    names = {"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    named = sorted(name for name in os.environ if name.upper() in names and os.environ[name])
    if settings.is_offline or not named:
        return
    from openai import DefaultAsyncHttpx2Client  # noqa: PLC0415  # slow to import, and most need no check

    try:
        DefaultAsyncHttpx2Client(verify=_certificates())
    except (ImportError, OSError, ValueError) as error:
        words = scrubbed(str(error))
        msg = f"{', '.join(named)}: no connection to a model's server can be made with these: {words}"
        raise SettingsError(msg) from None


@contextmanager
def open_models(settings: Settings) -> Iterator[ChatModels]:
    _check_environment(settings)
    keys = (settings.openai_api_key, settings.embedding_api_key)
    secrets = [key.get_secret_value() for key in keys if key is not None]
    with ModelCaller(secrets=secrets, silence_seconds=settings.model_silence_seconds) as caller:
        models = ChatModels(settings, caller)
        try:
            yield models
        finally:
            models.close()


def request_body(
    chat: BaseChatModel,
    name: str,
    messages: Sequence[AnyMessage],
    tools: Sequence[Mapping[str, Any]],
    *,
    tool_choice: str | None,
) -> dict[str, Any]:
    """Returns the request body of a call; for the embedded model, the same input in the same shape."""
    if not isinstance(chat, OfflineChat):
        from graph.model.endpoint import EndpointChat  # noqa: PLC0415  # slow to import, see there

        if isinstance(chat, EndpointChat):
            return chat.request_body(messages, tools, tool_choice=tool_choice)
    body: dict[str, Any] = {"model": name, "messages": convert_to_openai_messages(list(messages))}
    chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
    return {**body, "tools": list(tools), **chosen} if tools else body
