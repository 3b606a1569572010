"""What the tools of one run may use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from langchain_core.messages import AnyMessage

from graph.model.caller import ChatRunnable, ModelCaller, drop
from graph.model.chunk import Usage

Search = Callable[[str, int, float], list[Mapping[str, str]]]


@dataclass(frozen=True)
class SideCall:
    """A model call that a tool has made by itself, well or not.

    Attributes:
        call_id: The tool call that it was made for; its arguments are what was sent.
        messages: The tool's own prompt, then what was given to it.
        usage: As the provider reported it, None if it didn't.
        error_code: Why it failed, "" if it didn't.
    """

    call_id: str
    messages: tuple[AnyMessage, AnyMessage]
    usage: Usage | None
    seconds: float
    error_code: str = ""


@dataclass(frozen=True)
class ToolContext:
    """Made anew for each run of the graph, and cheap.

    Attributes:
        caller: Makes calls of `model`.
        model: The chat model of the turn, without tools.
        stop: Set when the turn is to end.
        time_zone: IANA name of the user's zone, "" for UTC.
        clock: Tells the time, with a zone.
        deadline_seconds: How long one tool call may take.
        search: Searches the web: (query, number of results, seconds) to entries with `title`, `href` and `body`;
            raises ModelError. None for DuckDuckGo.
        keep: Hears of each call of a model that a tool made, for what it cost.
    """

    caller: ModelCaller
    model: ChatRunnable
    stop: threading.Event
    time_zone: str
    clock: Callable[[], datetime]
    deadline_seconds: float
    search: Search | None = None
    keep: Callable[[SideCall], None] = drop
