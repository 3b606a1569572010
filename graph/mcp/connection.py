"""One connection to a server, over a child process or streamable HTTP."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.to_thread
import httpx2
from anyio.abc import ObjectReceiveStream
from mcp import Client, MCPError, types
from mcp.shared.message import SessionMessage
from pydantic import BaseModel, ValidationError

from graph.mcp import THREAD_NAME
from graph.mcp.config import ServerConfig
from graph.mcp.translate import Hide, Listing, one_line
from graph.mcp.transport import open_process, open_url
from graph.value.mcp import Failure, FailureKind
from prompt.tool.mcp import NoResult

_LOG = logging.getLogger(__name__)

_RESULT_MEGABYTES: Final = 8
_RESULT_BYTES: Final = _RESULT_MEGABYTES * 1024 * 1024
LONGEST_CALL_SECONDS: Final = 3_600.0
_LIST_SECONDS: Final = 30.0
_CHANGE_SECONDS: Final = 0.5
_PAGES: Final = 50
_PROGRESS_SECONDS: Final = 0.25
_PROGRESS_CHARS: Final = 200
_SESSION_LOST: Final = "Session terminated"
_CLOSED: Final = "Connection closed"
_TOO_LARGE: Final = "byte limit"
# The library writes to the log, beside what can't be read of a message, parts of the message.
_LOUD: Final = ("client", "mcp.client.client", "mcp.client.streamable_http", "mcp.shared.jsonrpc_dispatcher")
# What the library is shown of any result: valid in each version of the protocol.
_SHOWN: Final = {"content": [], "tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_CURSOR_CHARS: Final = 10_000
_SMALL: Final = 1_000


class NoResultError(Exception):
    """A call brought no result; `detail` is what the server said, `limit` the seconds or megabytes that were passed.

    `is_unheard`: a server behind a URL has forgotten the connection, as after a restart, and did nothing.
    """

    def __init__(self, reason: NoResult, detail: str = "", *, limit: float = 0, is_unheard: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
        self.limit = limit
        self.is_unheard = is_unheard


class Connection:
    """A connection that `keep` opens, holds and closes, all in one task; others call tools meanwhile.

    Attributes:
        opened: Set when the server can be used, or can't.
        closed: Set when nothing is left of it.
        failure: Why it can't be used; None if it can, or ended as asked.
        is_outdated: Whether the server told that it has other tools now.
    """

    def __init__(
        self,
        config: ServerConfig,
        hide: Hide,
        *,
        new_listing: Callable[[], Listing],
        on_tools: Callable[[Listing], None],
    ) -> None:
        self._config = config
        self._hide = hide
        self._new_listing = new_listing
        self._on_tools = on_tools
        self._end_failure: Failure | None = None
        self._last_line = ""
        self._client: Client | None = None
        self._ended = anyio.Event()
        self._calls: set[Call] = set()
        self.opened = anyio.Event()
        self.closed = anyio.Event()
        self.failure: Failure | None = None
        self.is_outdated = False
        self._list_seconds = 0.0

    @property
    def is_over(self) -> bool:
        return self._ended.is_set() or self.closed.is_set()

    def hear_error(self, line: str) -> None:
        """Keeps a line of the standard error."""
        self._last_line = one_line(line, self._hide) or self._last_line

    def hear_too_large(self) -> None:
        """Ends what waits for a message that was over the bound, and isn't delivered."""
        if not self._calls:
            self.hear_end(Failure("too_large", f"{_RESULT_MEGABYTES}"))
        for call in self._calls:
            call.is_too_large = True
            call.scope.cancel()

    def hear_end(self, failure: Failure | None = None) -> None:
        """Ends the connection; `failure` is given if that isn't the server's own doing."""
        self._end_failure = self._end_failure or failure
        self._ended.set()

    async def keep(self, *, start_seconds: float) -> None:
        """Opens the connection, and closes it once the server has gone or the task is cancelled."""
        scope = anyio.CancelScope(deadline=anyio.current_time() + start_seconds)
        try:
            with scope:
                async with Client(
                    self._transport(),
                    cache=None,
                    message_handler=self._hear,
                    client_info=types.Implementation(name="turnfold", version="1"),
                ) as self._client:
                    await self.refresh()
                    scope.deadline = math.inf
                    self.opened.set()
                    await self._ended.wait()
            if scope.cancelled_caught:
                self._fail(Failure("silent", f"{start_seconds:g}"))
            elif self.opened.is_set():
                self._fail(Failure("ended"))
        except Exception as error:  # noqa: BLE001 - the edge of a task: a library's groups of errors, whatever a server does
            self._fail(_failure_of(error))
        finally:
            self._client = None
            self._ended.set()
            self.closed.set()
            self.opened.set()

    def _fail(self, failure: Failure) -> None:
        """Keeps why it can't be used: a server's last words if it has ended, else the reason with these behind it."""
        kind: FailureKind = "other" if failure.kind == "ended" and self._last_line else failure.kind
        said = ": ".join(filter(None, (one_line(failure.said, self._hide), self._last_line)))
        self.failure = self._end_failure or Failure(kind, one_line(failure.about, self._hide), said)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        opening = open_process if self._config.command else open_url
        async with opening(self._config, self, most_bytes=_RESULT_BYTES) as (read, write):
            # The answers that open the connection are small, and for the library itself.
            yield _Unchecked(read, lambda: self._client is not None), write

    async def _hear(self, message: object) -> None:
        """Reads a changed list soon, for the menu; a call that comes before reads it first."""
        if isinstance(message, types.ToolListChangedNotification) and not self.is_outdated:
            self.is_outdated = True
            # One whose list takes long to read can't have it read all the time.
            await anyio.sleep(max(_CHANGE_SECONDS, 10 * self._list_seconds))
            if self.is_outdated:
                await self.refresh()

    async def refresh(self) -> None:
        """Lists the tools anew. Raises `MCPError`, `TimeoutError`, or what an answer that can't be read causes."""
        client = self._open_client()
        self.is_outdated = False
        listing, cursor, began = self._new_listing(), None, anyio.current_time()
        with anyio.fail_after(_LIST_SECONDS):
            for _ in range(_PAGES):
                request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
                page = (await client.session.send_request(request, _Answer)).raw
                await anyio.to_thread.run_sync(listing.take, page.get("tools"))
                cursor = page.get("nextCursor")
                if not isinstance(cursor, str) or len(cursor) > _CURSOR_CHARS or listing.is_full:
                    break
        self._list_seconds = anyio.current_time() - began
        self._on_tools(listing)

    def _open_client(self) -> Client:
        if self._client is None or self._ended.is_set():
            raise NoResultError("ended", str(self.failure or ""))
        return self._client

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        silence_seconds: float,
        on_progress: Callable[[str], None],
    ) -> Mapping[str, Any]:
        """Calls a tool, and returns its result as it came; a cancelled call is cancelled at the server too.

        Raises `NoResultError`.
        """
        client = self._open_client()
        call = Call(silence_seconds, on_progress, self._hide)
        self._calls.add(call)
        try:
            with call.scope:
                # Not Client.call_tool: it checks results by the server's own patterns, which may take for ever.
                request = types.CallToolRequest(
                    params=types.CallToolRequestParams(name=tool, arguments=dict(arguments))
                )
                answer = await client.session.send_request(request, _Answer, progress_callback=call.hear_progress)
        except MCPError as error:
            raise await self._judged(error) from None
        except Exception as error:  # noqa: BLE001 - what a server sends breaks the protocol in one of many ways
            _LOG.warning("a result of the MCP server %s can't be read: %s", self._config.name, type(error).__name__)
            raise NoResultError("broken") from None
        finally:
            self._calls.discard(call)
        if call.is_too_large:
            raise NoResultError("too_large", limit=_RESULT_MEGABYTES)
        if call.scope.cancelled_caught:
            raise NoResultError("silent", limit=silence_seconds)
        if answer.raw.get("resultType") == "input_required":
            raise NoResultError("wants_input")
        return answer.raw

    async def _judged(self, error: MCPError) -> NoResultError:
        """Tells what befell the connection from what was answered: the library has the same error for both."""
        if error.code == types.CONNECTION_CLOSED and error.message == _CLOSED:
            self._ended.set()
            await self.closed.wait()  # its last words come after its last answer
            return NoResultError("ended", str(self.failure or ""))
        if self._config.url and error.code == types.INVALID_REQUEST and error.message == _SESSION_LOST:
            self._ended.set()
            return NoResultError("not_started", is_unheard=True)
        if self._config.url and error.code == types.CONNECTION_CLOSED:
            if _TOO_LARGE in error.message:
                return NoResultError("too_large", limit=_RESULT_MEGABYTES)
            return NoResultError("ended", one_line(error.message, self._hide))
        return NoResultError("refused", one_line(error.message, self._hide))


class _Answer(BaseModel):
    """A result as `_Unchecked` shows it."""

    raw: dict[str, Any]


class _Unchecked(ObjectReceiveStream[Any]):
    """A stream whose results are put aside unchecked; the library would check each part of them, on the loop, twice.

    What a server asks or tells by itself, and has more than 1,000 values, is dropped.
    """

    def __init__(self, stream: Any, is_open: Callable[[], bool]) -> None:  # noqa: ANN401 - one of the library's streams
        self._stream = stream
        self._is_open = is_open

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def receive(self) -> object:
        while True:
            item = await self._stream.receive()
            message = item.message if isinstance(item, SessionMessage) else None
            if isinstance(message, types.JSONRPCResponse) and self._is_open():
                shown = message.model_copy(update={"result": {**_SHOWN, "raw": message.result}})
                return SessionMessage(shown, item.metadata)
            if not isinstance(message, types.JSONRPCRequest | types.JSONRPCNotification) or _is_small(message.params):
                return item


def _is_small(value: object) -> bool:
    values, count = [value], 0
    while values and count <= _SMALL:
        each, count = values.pop(), count + 1
        values += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    return count <= _SMALL


class Call:
    """A call that runs; its scope ends it at the deadline of silence."""

    def __init__(self, silence_seconds: float, on_progress: Callable[[str], None], hide: Hide) -> None:
        now = anyio.current_time()
        self.scope = anyio.CancelScope(deadline=now + min(silence_seconds, LONGEST_CALL_SECONDS))
        self.is_too_large = False
        self._silence_seconds = silence_seconds
        self._last_deadline = now + LONGEST_CALL_SECONDS
        self._on_progress = on_progress
        self._hide = hide
        self._told_at = -math.inf

    async def hear_progress(self, progress: float, total: float | None, message: str | None) -> None:
        now = anyio.current_time()
        self.scope.deadline = min(now + self._silence_seconds, self._last_deadline)
        if now - self._told_at < _PROGRESS_SECONDS:
            return
        self._told_at = now
        figure = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self._on_progress(one_line(message or figure, self._hide, most_chars=_PROGRESS_CHARS))


def _failure_of(error: BaseException) -> Failure:  # noqa: PLR0911 - one for each kind
    """Returns why a server can't be used: of a group of errors, by the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case FileNotFoundError(filename=str() as command):
            return Failure("not_installed", command)
        case OSError():
            return Failure("other", said=error.strerror or type(error).__name__)
        case ValidationError():
            place = ".".join(map(str, error.errors(include_input=False, include_url=False)[0]["loc"]))
            return Failure("protocol", place)
        case ValueError(args=(str(place),)):  # of a list of tools
            return Failure("protocol", place)
        case MCPError() | RuntimeError():  # the client's own, for versions of the protocol that don't fit
            return Failure("ended") if str(error) == _CLOSED else Failure("other", said=str(error))
        case httpx2.HTTPError():
            return Failure("other", said=f"{type(error).__name__}: {error}")
    return Failure("other", said=type(error).__name__)


for _name in _LOUD:
    logging.getLogger(_name).addFilter(lambda record: record.threadName != THREAD_NAME)
