"""What the tools of one run get."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from langchain_core.messages import AnyMessage

from graph.model.caller import ChatRunnable, ModelCaller, drop
from graph.model.chunk import Usage
from graph.project.project_memory import ProjectMemory
from graph.value.record import ArchivedMessage
from prompt.system.framing import Language

Search = Callable[[str, int, float], list[Mapping[str, str]]]


@dataclass(frozen=True)
class SideCall:
    """A model call that a tool made itself.

    Attributes:
        call_id: The tool call it was made for; the input follows from its arguments.
        messages: The tool's system prompt, then the material.
        usage: The provider's report, None without one.
        error_code: Why the call failed, "" if it didn't.
    """

    call_id: str
    messages: tuple[AnyMessage, AnyMessage]
    usage: Usage | None
    seconds: float
    error_code: str = ""


@dataclass(frozen=True)
class PastTurns:
    """The turns of the session before the open one, back to the last reset: the user had the model forget the others.

    Attributes:
        open_turn: The number of the open turn.
        result_chars: How long a result may be.
        find: Returns the numbers of turns from a number on with words of a query, at most so many, the best first.
        read: Returns the live messages of these turns, both ends included.
        first_turn: Returns the number of the first turn behind the last reset.
    """

    open_turn: int
    result_chars: int
    find: Callable[[str, int, int], list[int]]
    read: Callable[[int, int], list[ArchivedMessage]]
    first_turn: Callable[[], int] = lambda: 1


@dataclass(frozen=True)
class ProjectAccess:
    """The session's project.

    Attributes:
        memory: Opens where its decisions, tasks and files are noted.
        find_rule: Returns the quoted text of a rule that the owner agreed to, by its name; None if there is none.
    """

    memory: Callable[[], ProjectMemory]
    find_rule: Callable[[str], str | None]


@dataclass(frozen=True)
class ToolContext:
    """The collaborators of the tools in one run of the graph.

    Attributes:
        caller: Makes calls of `model`.
        model: The chat model of the turn, without tools.
        stop: Set when the turn is to end.
        time_zone: IANA name of the user's zone, "" for UTC.
        clock: Returns the current time, with a zone.
        deadline_seconds: How long one tool call may take.
        language: The session's language, that of the descriptions and results.
        search: Searches the web: (query, number of results, seconds) to entries with `title`, `href` and `body`;
            raises ModelError. None for DuckDuckGo.
        keep: Stores the row of a model call that a tool made.
        past: What `recall` looks up; None if it isn't offered.
        project: What the tools of a project use; None if the session has none: they aren't offered.
        user_words: Returns the user's messages since the last reset, that of the open turn too.
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
    user_words: Callable[[], Iterable[str]] = tuple
