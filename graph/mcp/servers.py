"""The servers of `MCP_SERVERS`: started when first needed, kept open, ended with the service."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import ExitStack
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from graph.mcp import THREAD_NAME
from graph.mcp.config import ServerConfig, asks_first, hide, secrets_of
from graph.value.error import ClosingError, McpError, TurnStoppedSignal
from graph.value.mcp import McpResult, ServerStatus, ToolInfo
from prompt.system.framing import Language
from prompt.tool import mcp as words

if TYPE_CHECKING:
    from graph.mcp.connection import Connection
    from graph.mcp.translate import Listing

_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.05
_LIST_SECONDS: Final = 60.0
_START_SECONDS: Final = 60.0
T = TypeVar("T")


class McpServers:
    """All servers; the methods are thread-safe, and raise `ClosingError` once it is closed.

    Args:
        allow: The patterns of `MCP_ALLOW`.
        silence_seconds: How long nothing may be heard of a call.
        start_seconds: How long a server may take to start; one that is downloaded first takes a while.
    """

    def __init__(
        self,
        configs: Sequence[ServerConfig],
        *,
        allow: Sequence[str],
        silence_seconds: float,
        start_seconds: float = _START_SECONDS,
    ) -> None:
        self._allow = tuple(allow)
        self._silence_seconds = silence_seconds
        self._servers = {config.name: _Server(config, self._allow, start_seconds) for config in configs}
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._tasks: TaskGroup | None = None
        self._is_closed = False

    def names(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def statuses(self) -> tuple[ServerStatus, ...]:
        """Returns what is known at the moment; starts nothing, waits for nothing."""
        return tuple(server.status for server in self._servers.values())

    def asks(self, tool: ToolInfo) -> bool:
        """Returns whether the user is asked before a tool runs, by its mark and today's `MCP_ALLOW`."""
        return asks_first(tool.server, tool.name, is_read_only=tool.is_read_only, allow=self._allow)

    def start(self, name: str) -> None:
        """Begins to start a server, if it isn't running; `statuses` tells how it went."""
        if (server := self._servers.get(name)) is not None:
            self._run(server.list_tools)

    def tools(self, name: str, *, wait_seconds: float) -> tuple[ToolInfo, ...]:
        """Returns a server's tools by name; starts it if needed.

        Raises `McpError`: it can't be used, or isn't ready in time and goes on starting.
        """
        server = self._servers.get(name)
        if server is None:
            raise McpError(name, "no such server")
        listing = self._run(server.list_tools)
        try:
            return listing.result(timeout=wait_seconds)
        except TimeoutError:
            raise McpError(name, f"no answer within {wait_seconds:g} s") from None
        except CancelledError:
            raise ClosingError from None

    def call(
        self,
        tool: ToolInfo,
        arguments: Mapping[str, Any],
        *,
        stop: threading.Event,
        on_progress: Callable[[str], None],
        language: Language = "en",
    ) -> McpResult:
        """Calls a tool as it was when it was chosen, and waits for its result; whatever a server does is a result.

        Args:
            stop: Set by Stop, which cancels the call at the server.
            on_progress: Called in another thread with what the tool tells of its progress, at most four times a second.
            language: Of the sentences that stand for a missing result.

        Raises `TurnStoppedSignal`: `stop` was set, or the service is closing.
        """
        server = self._servers.get(tool.server)
        if server is None:
            return _no_result(tool.server, "not_started", "", language)
        try:
            calling = self._run(
                partial(server.call, tool, arguments, self._silence_seconds, on_progress=on_progress, language=language)
            )
        except ClosingError:
            raise TurnStoppedSignal from None
        while not wait([calling], timeout=_POLL_SECONDS).done:
            if stop.is_set():
                calling.cancel()
                raise TurnStoppedSignal
        try:
            return calling.result()
        except CancelledError:
            raise TurnStoppedSignal from None

    def close(self) -> None:
        """Ends all servers with all that they have started; calls that run end as stopped."""
        with self._lock:
            self._is_closed = True
            portal, tasks = self._portal, self._tasks
        if portal is not None and tasks is not None:
            portal.call(tasks.cancel_scope.cancel)
            portal.call(partial(portal.stop, cancel_remaining=True))
        self._stack.close()

    def _run(self, function: Callable[[TaskGroup], Awaitable[T]]) -> Future[T]:
        """Starts a function on the loop, which is started itself when it is first needed."""
        with self._lock:
            if self._is_closed:
                raise ClosingError
            if self._portal is None or self._tasks is None:
                self._portal = self._stack.enter_context(start_blocking_portal(name=THREAD_NAME))
                _, self._tasks = self._portal.start_task(_hold_connections)
            # In an empty context, or the libraries would find LangGraph's callbacks of the run that calls us.
            return Context().run(self._portal.start_task_soon, function, self._tasks)


async def _hold_connections(*, task_status: TaskStatus[TaskGroup]) -> None:
    """Gives connections tasks of their own, which outlive the calls that needed them."""
    async with anyio.create_task_group() as tasks:
        task_status.started(tasks)
        await anyio.sleep_forever()


class _Server:
    """One server through all its connections; lives on the loop, but for `status`."""

    def __init__(self, config: ServerConfig, allow: Sequence[str], start_seconds: float) -> None:
        self._config = config
        self._allow = allow
        self._start_seconds = start_seconds
        self._hide = partial(hide, secrets=secrets_of(config))
        self._connection: Connection | None = None
        self._listed_at = 0.0
        self.status = ServerStatus(config.name)

    async def list_tools(self, tasks: TaskGroup) -> tuple[ToolInfo, ...]:
        await self._refreshed(tasks)
        return self.status.tools

    async def call(
        self,
        tool: ToolInfo,
        arguments: Mapping[str, Any],
        silence_seconds: float,
        tasks: TaskGroup,
        *,
        on_progress: Callable[[str], None],
        language: Language,
    ) -> McpResult:
        from graph.mcp.connection import NoResultError  # noqa: PLC0415 - slow to import
        from graph.mcp.translate import result_of  # noqa: PLC0415 - same

        async def called() -> Mapping[str, Any]:
            connection = await self._refreshed(tasks)
            known = next((known for known in self.status.tools if known.name == tool.name), None)
            if known is None or known.fingerprint != tool.fingerprint:
                raise NoResultError("changed" if known else "gone")
            return await connection.call(tool.name, arguments, silence_seconds=silence_seconds, on_progress=on_progress)

        try:
            try:
                result = await called()
            except NoResultError as error:
                if not error.is_unheard:
                    raise
                result = await called()
        except NoResultError as error:
            return _no_result(tool.server, error.reason, error.detail, language, limit=error.limit)
        except McpError as error:
            return _no_result(tool.server, "not_started", error.reason, language)
        # In a thread, as what a server sends may be large, and its pictures are scaled.
        try:
            return await anyio.to_thread.run_sync(partial(result_of, result, language=language, hide=self._hide))
        except ValueError:
            _LOG.warning("a result of the MCP server %s can't be read", tool.server)
            return _no_result(tool.server, "broken", "", language)

    async def _refreshed(self, tasks: TaskGroup) -> Connection:
        """Returns an open connection whose tools are listed as they are now. Raises `McpError`."""
        connection = await self._connect(tasks)
        if connection.is_outdated or time.monotonic() - self._listed_at > _LIST_SECONDS:
            try:
                await connection.refresh()
            except Exception as error:  # noqa: BLE001 - an answer breaks the protocol in one of many ways
                raise McpError(self._config.name, f"its tools can't be listed ({type(error).__name__})") from None
        return connection

    async def _connect(self, tasks: TaskGroup) -> Connection:
        from graph.mcp.connection import Connection  # noqa: PLC0415 - slow to import
        from graph.mcp.translate import Listing  # noqa: PLC0415 - same

        while (connection := self._connection) and connection.is_over and not connection.closed.is_set():
            await connection.closed.wait()
        if connection is None or connection.is_over:
            new_listing = partial(Listing, self._config.name, allow=self._allow, hide=self._hide)
            self._connection = connection = Connection(
                self._config, self._hide, new_listing=new_listing, on_tools=self._take_tools
            )
            self.status = ServerStatus(self._config.name, "starting", self.status.tools)
            tasks.start_soon(self._keep, connection)
        await connection.opened.wait()
        if connection.is_over:
            raise McpError(self._config.name, str(connection.failure or ""))
        return connection

    async def _keep(self, connection: Connection) -> None:
        await connection.keep(start_seconds=self._start_seconds)
        if connection.failure:
            name = self._config.name
            _LOG.warning("the MCP server %s can't be used: %s", name, connection.failure)
            self.status = ServerStatus(name, "failed", self.status.tools, connection.failure)

    def _take_tools(self, listing: Listing) -> None:
        self._listed_at = time.monotonic()
        self.status = ServerStatus(self._config.name, "ready", listing.tools, unusable=listing.unusable)


def _no_result(server: str, reason: words.NoResult, detail: str, language: Language, *, limit: float = 0) -> McpResult:
    sentence = words.no_result(reason, server=server, detail=detail, limit=limit, language=language)
    return McpResult(sentence, is_error=True)
