"""An allowed folder with one project in it, and services that may use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph.service import ChatService
from graph.service.projects import Projects
from graph.value.view import TurnOptions
from tests.fake.chat import Chat
from tests.fake.open_chat import OpenChat
from tests.fake.project import Project

_HOLDING = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


class Rooted:
    """Opens chats whose `PROJECT_ROOTS` is the folder that the project is in.

    Args:
        folder: Where that folder is made.
        open_chat: Opens a server for each chat.
        service: One that may use the folder, for the chats that need no settings of their own.
    """

    def __init__(self, folder: Path, open_chat: OpenChat, service: ChatService | None = None) -> None:
        self.project = Project(folder / "allowed")
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.root = str(self.project.root)
        self._open_chat = open_chat
        self._service = service

    def open(self, session_id: str = "", **settings: Any) -> Chat:  # noqa: ANN401  # settings of any kind
        if self._service is not None and not settings:
            return Chat(self._service, session_id)
        return self.start(session_id, **settings)

    def start(self, session_id: str = "", **settings: Any) -> Chat:  # noqa: ANN401  # settings of any kind
        """Opens a chat of a server of its own."""
        return self._open_chat(session_id, project_roots=(self.project.allowed,), **settings)

    def enter(self, **settings: Any) -> Chat:  # noqa: ANN401  # settings of any kind
        """Opens a chat that is in the project from its first turn on, which is said here."""
        chat = self.open(**settings)
        chat.say("안녕하세요, 이 프로젝트에서 일합니다.", options=self.options())
        return chat

    def options(self, *, has_memory: bool | None = None, **context: str) -> TurnOptions:
        return TurnOptions(project_root=self.root, has_memory=has_memory, context=context)

    def projects(self, **settings: Any) -> Projects:  # noqa: ANN401  # settings of any kind
        return self.open(**settings).service.projects

    def agree(self, chat: Chat, current_file: str = "") -> None:
        """Has the rules used that are there now."""
        projects = chat.service.projects
        digest = projects.rules(self.root, current_file=current_file).digest
        projects.agree(self.root, digest, current_file=current_file)

    def write(self, path: str, text: str) -> Path:
        """Writes a file of the project."""
        file = self.project.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def noted(self) -> list[tuple[str, str]]:
        """Who said what, as the memory has it."""
        window = self.project.context().data.conversation.recent_window
        return [(message.role, message.content) for message in window]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Has another process hold the lock of the project's memory."""
        self.project.memory()
        command = [sys.executable, "-c", _HOLDING, str(self.project.brain / ".lock")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # our own
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield
            process.communicate()


def wait_for_notes(chat: Chat) -> None:
    """Waits until all that the turns had noted is noted, and summarised if it was too much."""
    turns = chat.service._engine.project_turns  # noqa: SLF001  # nobody but a test has to know
    assert turns is not None
    turns._notes.submit(lambda: None).result()  # noqa: SLF001
    turns._roll_ups._pool.submit(lambda: None).result()  # noqa: SLF001
