"""Calls the scripted server through the real client, and keeps what was heard."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from pydantic import SecretStr

from graph.model.caller import ChatRunnable
from graph.model.chunk import Answer
from graph.model.factory import ChatModels
from graph.server.settings import Settings
from tests.fake.openai_server import FakeOpenAI

KEY = "sk-test-0123456789abcdef"


@dataclass
class Caller:
    """Calls the scripted server through the real client and keeps what was heard."""

    server: FakeOpenAI
    models: ChatModels
    question: str = "question"
    heard: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    revoked: int = 0
    restarts: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def __call__(
        self,
        *,
        deadline_seconds: float | None = 10.0,
        attempts: int = 1,
        model: ChatRunnable | None = None,
        may_restart: bool = True,
    ) -> Answer:
        return self.models.caller.call(
            model or self.models.chat("scripted-model"),
            self.input,
            stop=self.stop,
            deadline_seconds=deadline_seconds,
            attempts=attempts,
            on_text=self.heard.append,
            on_restart=self._restart,
            on_thought=self.thoughts.append,
            on_revoke=self._revoke,
            may_restart=may_restart,
        )

    @property
    def input(self) -> list[AnyMessage]:
        return [SystemMessage("system"), HumanMessage(self.question)]

    def _restart(self) -> None:
        self.restarts += 1
        self.heard.clear()
        self.thoughts.clear()

    def _revoke(self) -> None:
        self.revoked += 1
        self.heard.clear()
        self.thoughts.clear()


def settings_of(server: FakeOpenAI) -> Settings:
    return Settings(  # type: ignore[call-arg]  # _env_file is the base class's own argument
        _env_file=None, openai_api_key=SecretStr(KEY), openai_base_url=server.url, chat_model=None
    )
