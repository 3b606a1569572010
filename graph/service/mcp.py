"""The MCP tools of a chat: which are chosen, and the user's word on calls that wait for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from graph.core.text import estimate_tokens
from graph.service.access import Choices, SessionAccess, newest_mcp_tools
from graph.service.turns import Turns
from graph.tool.registry import allowance_of, mcp_schema, mcp_tools, schema_text
from graph.value.event import PendingCall
from graph.value.mcp import ServerStatus, ToolInfo
from graph.value.view import McpChoice, McpServer, McpTool, TurnOptions, Word
from graph.worker.turn_log import pending_in

_MOST_TOOLS: Final = 40
_LARGEST_SHARE: Final = 0.08


class McpChat:
    """The MCP tools of one owner's chats; `choices` takes "" for the next new chat.

    Methods that take a session id raise `NotFoundError` for an unknown one.
    """

    def __init__(self, access: SessionAccess, choices: Choices, turns: Turns) -> None:
        self._access = access
        self._choices = choices
        self._servers = choices.mcp
        self._turns = turns

    def choices(self, session_id: str = "", *, chosen: Collection[str] | None = None, model: str = "") -> McpChoice:
        """Returns the servers and tools to choose from, with what is chosen; starts no server and never waits.

        Args:
            session_id: "" for a new chat, which begins with the choice of the owner's newest one.
            chosen: Offered names to take as chosen instead, for a choice that isn't kept yet.
            model: The model whose window counts; "" for that of the chat.
        """
        stored: tuple[Mapping[str, Any], ...]
        allowed: Collection[str] = ()
        if session_id:
            session = self._access.own(session_id)
            stored, allowed, model = session.mcp_tools, session.mcp_allowed, model or session.model
        else:
            self._access.check_admitted()
            stored = newest_mcp_tools(self._access.stores.sessions, self._access.owner)
        tools = {tool.offered: tool for tool in mcp_tools(stored)}
        if chosen is not None:
            known = tools | {tool.offered: tool for status in self._servers.statuses() for tool in status.tools}
            tools = {name: known[name] for name in chosen if name in known}
        servers = tuple(self._server(status, tools, allowed) for status in self._servers.statuses())
        # As they are sent: a tool that its server has changed is, too, until the next choice.
        sent = [tool for tool in tools.values() if tool.server in self._servers.names()]
        tokens = sum(map(_tokens, sent))
        window_tokens = self._choices.models.window_tokens(self._choices.models.known_name(model))
        is_too_much = len(sent) > _MOST_TOOLS or tokens > window_tokens * _LARGEST_SHARE
        return McpChoice(servers, len(sent), tokens, is_too_much)

    def _server(self, status: ServerStatus, chosen: Mapping[str, ToolInfo], allowed: Collection[str]) -> McpServer:
        """Returns a server with its tools, or while they aren't known with those that are chosen."""
        tools = {tool.offered: tool for tool in chosen.values() if tool.server == status.name}
        is_known = status.state == "ready" or bool(status.tools)
        gone = {name for name in tools if is_known} - {tool.offered for tool in status.tools}
        views = []
        for tool in (tools | {tool.offered: tool for tool in status.tools}).values():
            was = tools.get(tool.offered)
            is_changed = was is not None and (tool.offered in gone or was.fingerprint != tool.fingerprint)
            views.append(
                McpTool(
                    tool.name,
                    tool.offered,
                    tool.title,
                    tool.description,
                    _tokens(tool),
                    self._servers.asks(tool),
                    is_on=was is not None and not is_changed,
                    is_changed=is_changed,
                    is_allowed=allowance_of(was or tool) in allowed,
                )
            )
        views.sort(key=lambda view: view.name)
        return McpServer(status.name, status.state, tuple(views), status.failure, status.unusable)

    def choose(self, session_id: str, offered: Collection[str]) -> None:
        """Chooses these tools, in place of the chat's, from the next turn on.

        A tool that its server has changed is chosen as it is now. A call of one that is left out asks again, once the
        tool is chosen again.

        Raises `InputError` `unknown_tool`: no server here that is ready has a tool of that name.
        """
        session = self._access.own(session_id)
        self._access.stores.sessions.update(
            session_id, self._access.owner, **self._choices.mcp_chosen(offered, session)
        )

    def ask_again(self, session_id: str, offered: str) -> None:
        """Takes back that all calls of a tool are allowed in this chat, from the next turn on."""
        session = self._access.own(session_id)
        allowed = tuple(allowance for allowance in session.mcp_allowed if allowance.split()[0] != offered)
        self._access.stores.sessions.update(session_id, self._access.owner, mcp_allowed=allowed)

    def start(self, server: str) -> None:
        """Begins to start a server in the background, so that `choices` has its tools soon; ignores unknown names."""
        self._access.check_admitted()
        self._servers.start(server)

    def pending(self, session_id: str) -> tuple[PendingCall, ...]:
        """Returns the calls that wait for the user's word, in order; () for none."""
        self._access.own(session_id)
        last = self._access.stores.turns.last(session_id)
        if last is None or last.status != "asking":
            return ()
        entries = self._access.stores.archive.live_turns(session_id, last.number, last.number)
        return pending_in(last, [entry.message for entry in entries])

    def answer(self, session_id: str, words: Mapping[str, Word], *, options: TurnOptions | None = None) -> int:
        """Gives the user's word on all pending calls by their ids, continues the turn, and returns its number.

        "always" allows all calls of the tool, as it is now, in this chat. A call that gets "no" isn't made, and the
        model is told.

        Raises:
            InputError: `unanswered_call` or `unknown_call`, with their ids: nothing was done.
            BusyError: A turn is in progress, or a limit of the server is reached.
        """
        return self._turns.answer(session_id, words, options=options)


def _tokens(tool: ToolInfo) -> int:
    return estimate_tokens(schema_text([mcp_schema(tool)]))
