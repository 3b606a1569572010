"""Dependencies of the tools in a run, and what makes a function one of them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from langchain_core.messages import AnyMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field, create_model

from graph.core.attached import Attachment
from graph.model.caller import ChatRunnable, ModelCaller, drop
from graph.model.chunk import Usage
from graph.project.project_memory import ProjectMemory
from graph.value.record import ArchivedMessage
from prompt.system.framing import Language

Search = Callable[[str, int, float], list[Mapping[str, str]]]


@dataclass(frozen=True)
class SideCall:
    """A model call made by a tool: the input follows from the arguments of the tool call `call_id`.

    `messages` are the tool's system prompt and the material; `usage` is None without a report, `error_code` "" on
    success.
    """

    call_id: str
    messages: tuple[AnyMessage, AnyMessage]
    usage: Usage | None
    seconds: float
    error_code: str = ""


@dataclass(frozen=True)
class PastTurns:
    """The session's turns between the last reset and the open turn; the user reset earlier ones to be forgotten.

    Attributes:
        find: Searches for words: (query, first turn, limit) to turn numbers, the best first.
        unsaid: Returns the words of a query that no turn from a first one on has.
        read: Returns the live messages from a first to a last turn.
        first_turn: Returns the first turn after the last reset.
        time_zone: IANA name of the user's zone, "" for UTC.
    """

    open_turn: int
    result_chars: int
    find: Callable[[str, int, int], list[int]]
    read: Callable[[int, int], list[ArchivedMessage]]
    first_turn: Callable[[], int] = lambda: 1
    unsaid: Callable[[str, int], list[str]] = lambda *_: []
    time_zone: str = ""


@dataclass(frozen=True)
class ProjectAccess:
    """The session's project. `find_rule` returns the text of a rule agreed to by the owner, by name, or None."""

    memory: Callable[[], ProjectMemory]
    find_rule: Callable[[str], str | None]


@dataclass(frozen=True)
class ToolContext:
    """The collaborators of the tools in one run of the graph.

    Attributes:
        model: The chat model of the turn, without tools.
        time_zone: IANA name of the user's zone, "" for UTC.
        deadline_seconds: Limit for one tool call.
        search: Searches the web: (query, number of results, seconds) to entries with `title`, `href` and `body`; raises
            ModelError. None for DuckDuckGo.
        past: Turns searched by `recall`; None if the tool isn't offered.
        project: None without one, and its tools aren't offered.
        files: Returns the long files of the chat by name; None without any, and their tool isn't offered.
        user_words: Returns the user's messages since the last reset, including the open turn's.
    """

    caller: ModelCaller
    model: ChatRunnable
    stop: threading.Event
    time_zone: str
    clock: Callable[[], datetime]
    deadline_seconds: float
    language: Language
    search: Search | None = None
    keep: Callable[[SideCall], None] = drop
    past: PastTurns | None = None
    project: ProjectAccess | None = None
    files: Callable[[], Mapping[str, Attachment]] | None = None
    result_chars: int = 10_000
    user_words: Callable[[], Iterable[str]] = tuple


# Building one takes half a millisecond, for each call of a model.
_SCHEMAS: Final[dict[tuple[object, ...], type[BaseModel]]] = {}


def build_tool(function: Callable[..., str], description: str, /, **described: str) -> BaseTool:
    """Returns a tool that a function is, with its name; a `ToolException` becomes a text for the model.

    Args:
        described: The descriptions of the function's arguments; one without is injected, not in the schema.
    """
    key = function.__qualname__, *described.items()
    return StructuredTool(
        name=function.__name__,
        description=description,
        args_schema=_SCHEMAS.get(key) or _SCHEMAS.setdefault(key, _schema(function, described)),
        func=function,
        handle_tool_error=True,
    )


def _schema(function: Callable[..., str], described: Mapping[str, str]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, argument in inspect.signature(function, eval_str=True).parameters.items():
        default = ... if argument.default is argument.empty else argument.default
        fields[name] = argument.annotation, Field(default, description=described.get(name))
    return create_model("Arguments", **fields)
