"""The part of a scripted service that has the tools of MCP servers, over plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from graph.value.event import PendingCall
from graph.value.view import McpChoice, McpServer, McpTool, TurnOptions, Word

if TYPE_CHECKING:
    from tests.fake.scripted_service import ScriptedService

READ: Final = McpTool("read", "files__read", "Read *a* file", "Reads _all_ of it.", tokens=1_120, asks=False)
WRITE: Final = McpTool("write", "files__write", "Write a file", "", tokens=80, asks=True)
FILES: Final = McpServer("files", "ready", (READ, WRITE))


def write_call(number: int, arguments: str = '{\n  "path": "a.txt"\n}') -> PendingCall:
    return PendingCall(f"call-{number}", "files", "write", "Write a file", arguments)


class ScriptedMcp:
    """Servers and words as a test sets them.

    Attributes:
        servers: () for a service without MCP servers.
        chosen: Offered names by session, under "" those of the newest chat.
        started: The servers that were to start.
        words: What was answered, by session.
        asking_again: The tools that are to ask again, by session.
    """

    def __init__(self, service: ScriptedService) -> None:
        self._service = service
        self.servers: tuple[McpServer, ...] = ()
        self.chosen: dict[str, Collection[str]] = {}
        self.is_too_much = False
        self.started: list[str] = []
        self.words: dict[str, dict[str, Word]] = {}
        self.asking_again: dict[str, str] = {}

    def choices(self, session_id: str = "", *, chosen: Collection[str] | None = None, model: str = "") -> McpChoice:
        assert isinstance(model, str)
        names = self.chosen.get(session_id, ()) if chosen is None else chosen
        servers = tuple(
            server._replace(tools=tuple(tool._replace(is_on=tool.offered in names) for tool in server.tools))
            for server in self.servers
        )
        tools = [tool for server in servers for tool in server.tools if tool.is_on]
        return McpChoice(servers, len(tools), sum(tool.tokens for tool in tools), self.is_too_much)

    def choose(self, session_id: str, offered: Collection[str]) -> None:
        self._service.act("choose")
        self._service.session_of(session_id)
        self.chosen[session_id] = offered

    def ask_again(self, session_id: str, offered: str) -> None:
        self._service.act("ask_again")
        self.asking_again[session_id] = offered

    def start(self, server: str) -> None:
        self.started.append(server)

    def pending(self, session_id: str) -> tuple[PendingCall, ...]:
        return self._service.session_of(session_id).turns[-1].pending

    def answer(self, session_id: str, words: Mapping[str, Word], *, options: TurnOptions | None = None) -> int:
        """The turn is answered at once."""
        self._service.act("answer")
        assert options is not None
        turns = self._service.session_of(session_id).turns
        assert words.keys() == {call.call_id for call in turns[-1].pending}
        self.words[session_id] = dict(words)
        turns[-1] = replace(turns[-1], status="finished", pending=(), answer_text="다 했습니다.")
        return turns[-1].number
