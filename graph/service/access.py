"""Whose a session is, what runs in it, and what it can be set to; the only place that checks a session's owner."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, get_args

from graph.core.instruction import checked_instructions
from graph.core.text import plain_text
from graph.file.root_folder import RootFolders
from graph.fold.spec import round_rate
from graph.mcp.servers import McpServers
from graph.model.factory import ChatModels
from graph.node.recovery import StateRecovery
from graph.server.identity import SignIn
from graph.server.settings import Settings
from graph.store.access import SignInStore
from graph.store.database import Lease
from graph.store.owner import OwnerStore
from graph.store.session import SessionRow, SessionStore
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow
from graph.strategy.strategies import Strategies
from graph.tool.registry import TOOL_NAMES, allowance_of, mcp_tools
from graph.value.client import ClientOptions
from graph.value.error import BusyError, InputError, McpError, NotFoundError, SignInError
from graph.value.mcp import ToolInfo
from graph.value.view import FoldWhen, LiveTurn, Thinking, TurnOptions
from graph.worker.session_watcher import SessionWatcher
from graph.worker.turn_log import TurnLog
from graph.worker.turn_poller import DistantTurn, TurnPoller
from graph.worker.turn_runner import TurnRunner

# A worker releases the lease after its turn has ended for the user.
AFTERMATH_SECONDS: Final = 5.0
# Between server and tool in the names that models and tokens of programs have for MCP tools.
MCP_SEPARATOR: Final = "__"
_NAMED_SECONDS: Final = 10.0
# What all offered names of a server begin with, see `graph.mcp.translate.offered_name`.
_NOT_OFFERED: Final = re.compile(r"[^a-zA-Z0-9_-]")
_BEGIN_CHARS: Final = 50
_WILD: Final = re.compile(r"[*?\[]")
_NEWEST_SESSIONS: Final = 20


@dataclass(frozen=True, kw_only=True)
class SessionAccess:
    """The sessions of one owner: checks ownership, and knows what runs in each.

    Attributes:
        owners: Knows which owners were withdrawn.
        sign_ins: Knows which sign-ins have ended.
        sign_in: None for a program, and on a server without a sign-in.
        compacting: The stop event of each manual compaction running here, by session.
    """

    owner: str
    sign_in: SignIn | None
    stores: ChatStores
    owners: OwnerStore
    sign_ins: SignInStore
    runner: TurnRunner
    poller: TurnPoller
    recovery: StateRecovery
    watcher: SessionWatcher
    compacting: dict[str, threading.Event]
    clock: Callable[[], datetime]

    def check_admitted(self) -> None:
        """Raises `SignInError` if the sign-in has ended or the owner was withdrawn."""
        self._check_end()
        if self.owners.is_withdrawn(self.owner):
            raise SignInError("withdrawn")
        if self.sign_in is not None and self.sign_ins.is_ended(self.owner, self.sign_in):
            raise SignInError("ended")

    def own(self, session_id: str) -> SessionRow:
        """Returns the session; called first by every method that takes a session id.

        Raises:
            NotFoundError: There is no such session of this owner, or the owner was withdrawn or signed out.
            SignInError: The sign-in has expired.
        """
        self._check_end()
        return self.stores.sessions.get_admitted(session_id, self.owner, self.sign_in)

    def find(self, session_id: str) -> SessionRow | None:
        """Returns the session, None if the owner has none of this id; raises `SignInError`."""
        try:
            return self.own(session_id)
        except NotFoundError:
            return None

    def _check_end(self) -> None:
        if self.sign_in is not None and self.sign_in.until <= self.clock():
            raise SignInError("ended")

    def is_ended(self) -> bool:
        """Whether the sign-in has run out."""
        try:
            self._check_end()
        except SignInError:
            return True
        return False

    def is_busy(self, session_id: str, *, is_open: bool = True) -> bool:
        """Whether a turn of the session runs in any process, or a manual compaction in this one.

        `is_open` is False if the session was just read, and its last turn was over.
        """
        is_here = session_id in self.compacting or self.runner.running(session_id) is not None
        return is_here or (is_open and self._running_elsewhere(session_id) is not None)

    def is_running(self, session_id: str) -> bool:
        """Whether a turn of the session runs in any process."""
        return self.runner.running(session_id) is not None or self._running_elsewhere(session_id) is not None

    def live_turn(self, session_id: str) -> LiveTurn | None:
        """Returns the progress of the session's running turn, in whichever process it runs; None if none runs."""
        if (log := self.runner.running(session_id)) is not None:
            return log.view()
        if (row := self._running_elsewhere(session_id)) is None:
            return None
        entries = self.stores.archive.live_turns(session_id, row.number, row.number)
        thoughts = self.stores.turns.thoughts(session_id, row.number) if row.thought_seconds else ""
        return DistantTurn(row, [entry.message for entry in entries], thoughts=thoughts).log.view()

    def log_of(self, row: TurnRow) -> TurnLog | None:
        """Returns the events of an attempt, from whichever process runs it; None if it has ended, but not here."""
        log = self.runner.log(row.session_id)
        if log is not None and log.attempt_key == (row.number, row.attempt):
            return log
        if row.status != "running" or not self.stores.leases.holder_is_alive(row.session_id):
            return None
        return self.poller.follow(row.session_id, row.number, row.attempt)

    def followed(self, session_id: str, seen: LiveTurn | None) -> TurnLog | None:
        """Returns the events of the turn to follow: the newest one here, or the one elsewhere that was seen before."""
        log = self.runner.log(session_id)
        if seen is not None and (log is None or log.attempt_key != (seen.number, seen.attempt)):
            return self.runner.running(session_id) or self.poller.follow(session_id, seen.number, seen.attempt)
        return log

    def _running_elsewhere(self, session_id: str) -> TurnRow | None:
        last = self.stores.turns.last(session_id)
        is_running = last is not None and last.status == "running" and self.stores.leases.holder_is_alive(session_id)
        return last if is_running else None

    @contextmanager
    def between_turns(self, session_id: str, *, keeps_waiting: bool = True) -> Iterator[Lease]:
        """Holds the lease of an idle session.

        A turn waiting for a program is closed unless `keeps_waiting`.

        Raises `BusyError`: A turn or a manual compaction is in progress.
        """
        if self.is_busy(session_id):
            raise BusyError
        lease = self.stores.leases.acquire(session_id, wait_seconds=AFTERMATH_SECONDS)
        try:
            session = self.own(session_id)
            self.recovery.reconcile(lease, session, keeps_waiting=keeps_waiting)
            self.recovery.close_gap(lease, self.stores.state(session_id))
            yield lease
        finally:
            self.stores.leases.release(lease)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The settings a session can have on this server; `roots` are the allowed project folders."""

    settings: Settings
    models: ChatModels
    strategies: Strategies
    roots: RootFolders
    mcp: McpServers

    def chosen(self, options: TurnOptions) -> dict[str, Any]:
        """Returns the settings given by the options, without a level of thinking or a time of folding that isn't known.

        Raises:
            InputError: A value is invalid.
            PathError: The project is outside the allowed folders.
        """
        _check_context(options.context, max_chars=self.settings.message_chars)
        changes: dict[str, Any] = {}
        if options.compression_rate is not None:
            changes["compression_rate"] = round_rate(options.compression_rate)
        if options.strategy is not None:
            if options.strategy not in self.strategies.by_name:
                raise InputError("bad_strategy", ", ".join(self.strategies.by_name))
            changes["strategy"] = options.strategy
        if options.fold_when in get_args(FoldWhen):
            changes["fold_when"] = options.fold_when
        if options.model is not None:
            changes["model"] = plain_text(options.model)
        if options.project_root is not None:
            changes["project_root"] = str(self.roots.resolve(options.project_root)) if options.project_root else ""
        if options.has_memory is not None:
            changes["has_memory"] = options.has_memory
        if options.thinking in get_args(Thinking):
            changes["thinking"] = options.thinking
        if options.instructions is not None:
            changes["instructions"] = checked_instructions(options.instructions)
        return changes

    def whole_turns(self, strategy: str) -> int | None:
        """Returns how many turns before the open one a strategy reads whole; None for the raw turns only."""
        return self.strategies.of(strategy).whole_turns

    def changes_of(self, session: SessionRow, options: TurnOptions) -> dict[str, Any]:
        """Returns the session's settings that the options change.

        Choosing the default strategy, time of folding or model, if none was ever chosen, changes nothing: the session
        follows the server's default. A program's tool replaces a tool of ours with the same name.

        Raises:
            InputError: A value is invalid.
            PathError: The project is outside the allowed folders.
        """
        changes = {name: value for name, value in self.chosen(options).items() if value != getattr(session, name)}
        defaults = {"strategy": self.strategies.default.name, "fold_when": self.settings.fold_when}
        if "model" in changes:  # the endpoint may have to be asked for its default
            defaults["model"] = self.models.default_name
        for name, default in defaults.items():
            if not getattr(session, name) and changes.get(name) == default:
                del changes[name]
        if off := TOOL_NAMES.intersection(options.client.tool_names if options.client else ()) - {*session.tools_off}:
            changes["tools_off"] = (*session.tools_off, *sorted(off))
        if options.mcp_tools is not None:
            chosen = self.mcp_chosen(options.mcp_tools, session)
            changes |= {name: value for name, value in chosen.items() if value != getattr(session, name)}
        return changes

    def mcp_chosen(self, offered: Collection[str], session: SessionRow) -> dict[str, tuple[Any, ...]]:
        """Returns the columns of a session that chooses the tools with these names, as their servers have them now.

        While a server isn't ready, those that the session has already count. Calls stay allowed of tools that stay
        chosen as they are. Raises `InputError` `unknown_tool`.
        """
        known = {tool.offered: tool for tool in mcp_tools(session.mcp_tools)}
        known |= {tool.offered: tool for status in self.mcp.statuses() for tool in status.tools}
        if unknown := [name for name in offered if name not in known]:
            raise InputError("unknown_tool", ", ".join(sorted(unknown)))
        chosen = mcp_tools(known[name]._asdict() for name in {*offered})
        stay = {allowance_of(tool) for tool in chosen}
        return {
            "mcp_tools": tuple(tool._asdict() for tool in chosen),
            "mcp_allowed": tuple(allowance for allowance in session.mcp_allowed if allowance in stay),
        }

    def mcp_named(self, client: ClientOptions) -> tuple[Mapping[str, Any], ...]:
        """Returns the fields of the tools that a program's token names; starts the servers that may have them.

        A server that can't be used has none.
        """
        found: list[ToolInfo] = []
        for name in self.mcp.names():
            if not _may_be_named(name, client):
                continue
            with suppress(McpError):
                tools = self.mcp.tools(name, wait_seconds=_NAMED_SECONDS)
                found += (tool for tool in tools if is_named(tool, client))
        return tuple(tool._asdict() for tool in mcp_tools(tool._asdict() for tool in found))

    def mcp_offered(self, chosen: Sequence[ToolInfo], client: ClientOptions | None) -> tuple[ToolInfo, ...]:
        """Returns which of a session's MCP tools a turn is offered.

        A program is offered those that its token names and that need no word of the user.
        """
        names = self.mcp.names()
        there = tuple(tool for tool in chosen if tool.server in names)
        if client is None:
            return there
        if client.is_demand:
            return ()
        return tuple(tool for tool in there if is_named(tool, client) and not self.mcp.asks(tool))


def is_named(tool: ToolInfo, client: ClientOptions) -> bool:
    """Returns whether a program's token names an MCP tool, which it does by a pattern such as `files__*`."""
    return tool.offered not in client.tool_names and any(fnmatchcase(tool.offered, each) for each in _patterns(client))


def _patterns(client: ClientOptions) -> list[str]:
    return [pattern for pattern in client.allowed_tools or () if MCP_SEPARATOR in pattern]


def _may_be_named(server: str, client: ClientOptions) -> bool:
    """Returns False for a server whose tools the token can't name: it would be started, and waited for, in vain."""
    begin = _NOT_OFFERED.sub("_", f"{server}{MCP_SEPARATOR}")[:_BEGIN_CHARS]
    heads = [_WILD.split(pattern, maxsplit=1)[0] for pattern in _patterns(client)]
    return any(begin.startswith(head) or head.startswith(begin) for head in heads)


def newest_mcp_tools(sessions: SessionStore, owner: str) -> tuple[Mapping[str, Any], ...]:
    """Returns the MCP tools of the owner's newest chat on the page, which a new one begins with."""
    newest = (session.session_id for session in sessions.list(owner, limit=_NEWEST_SESSIONS) if not session.client)
    return sessions.get(session_id, owner).mcp_tools if (session_id := next(newest, "")) else ()


def new_session_id() -> str:
    """Returns an unused id."""
    return secrets.token_urlsafe(12)


def _check_context(context: Mapping[str, str], *, max_chars: int) -> None:
    """Checks the context sent by another program.

    Raises `InputError`: `bad_context` (not all text) or `too_long` (over `max_chars` in all).
    """
    if not all(isinstance(part, str) for item in context.items() for part in item):
        raise InputError("bad_context")
    if (chars := sum(len(key) + len(value) for key, value in context.items())) > max_chars:
        raise InputError("too_long", f"{chars} > {max_chars}")
