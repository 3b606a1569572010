"""An allowed folder with one project in it, and services that may use it."""

from __future__ import annotations

from pathlib import Path

from graph.service.projects import Projects
from tests.fake.chat import Chat
from tests.fake.open_chat import OpenChat
from tests.fake.project import Project


class Rooted:
    """Opens chats whose `PROJECT_ROOTS` is the folder that the project is in."""

    def __init__(self, folder: Path, open_chat: OpenChat) -> None:
        self.project = Project(folder / "allowed")
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.root = str(self.project.root)
        self._open_chat = open_chat

    def open(self, session_id: str = "", **settings: object) -> Chat:
        return self._open_chat(session_id, project_roots=(self.project.allowed,), **settings)

    def projects(self, **settings: object) -> Projects:
        return self.open(**settings).service.projects

    def write(self, path: str, text: str) -> Path:
        """Writes a file of the project."""
        place = self.project.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place
