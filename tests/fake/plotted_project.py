"""The project of a plotted session: its rules change from turn to turn, and each turn names another file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from langchain_core.messages import AnyMessage

from graph.value.error import NotFoundError
from graph.value.view import TurnOptions
from tests.fake.chat import Chat
from tests.fake.context_source import ScriptedContext, volatile_of
from tests.fake.oracle import check_context


class PlottedProject:
    """A folder that the session may be in."""

    def __init__(self, folder: Path) -> None:
        self.source = ScriptedContext()
        self._folder = str(folder)
        self._root = ""

    def enter(self, chat: Chat) -> None:
        self._choose(chat, self._folder)

    def leave(self, chat: Chat) -> None:
        self._choose(chat, "")

    def change_rules(self) -> None:
        self.source.front += f"\n    규칙 {len(self.source.requests)}을 더합니다."

    def options(self, turn: int) -> TurnOptions:
        context = {"currentFile": f"file-{turn}.py"} if self._root else {}
        return TurnOptions(project_root=self._root, context=context)

    def check(self, sent: Sequence[AnyMessage], turn: int) -> None:
        """In the project a request has the blocks of its turn, outside it none."""
        if not self._root:
            check_context(sent, front="", volatile="")
            return
        asked = self.source.requests[-1]
        assert (asked.turn, asked.root) == (turn, self._root)
        check_context(sent, front=self.source.front, volatile=volatile_of(asked.context))

    def _choose(self, chat: Chat, root: str) -> None:
        self._root = root
        with suppress(NotFoundError):  # a session that has no turn yet is told with its first one
            chat.service.sessions.configure(chat.session_id, project_root=root)
