"""Calls single tools as the graph would, with a clock and a search engine that a test scripts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from langchain_core.messages import ToolCall, ToolMessage

from graph.model.caller import ModelCaller
from graph.offline.chat_model import OfflineChat
from graph.tool.registry import ToolContext, build_tools
from graph.value.error import ModelError

NOW = datetime(2026, 11, 20, 23, 50, 12, 345678, tzinfo=UTC)


@dataclass
class ScriptedSearch:
    """A search engine that returns what the test says, or fails as it says."""

    results: list[Mapping[str, str]] = field(default_factory=list)
    error: ModelError | None = None
    asked: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, query: str, count: int, deadline_seconds: float) -> list[Mapping[str, str]]:
        assert deadline_seconds > 0
        self.asked.append((query, count))
        if self.error is not None:
            raise self.error
        return self.results


@contextmanager
def tool_context() -> Iterator[ToolContext]:
    with ModelCaller() as caller:
        yield ToolContext(
            caller=caller,
            model=OfflineChat(pause_seconds=0),
            stop=threading.Event(),
            time_zone="Asia/Seoul",
            clock=lambda: NOW,
            deadline_seconds=5,
            language="en",
        )


def call(context: ToolContext, name: str, /, **arguments: object) -> ToolMessage:
    (tool,) = [tool for tool in build_tools(context) if tool.name == name]
    result = tool.invoke(dict(ToolCall(type="tool_call", name=name, args=arguments, id="call-1")))
    assert isinstance(result, ToolMessage)
    return result


def run(context: ToolContext, name: str, /, **arguments: object) -> str:
    result = call(context, name, **arguments)
    assert result.status == "success"
    return result.text


def fail(context: ToolContext, name: str, /, **arguments: object) -> str:
    """Runs a call that must fail, and returns what the model reads of it."""
    result = call(context, name, **arguments)
    assert result.status == "error"
    return result.text
