"""What the tools of one run may use; knows nothing of the tools."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from graph.model.call import ChatRunnable, ModelCaller

Search = Callable[[str, int, float], list[Mapping[str, str]]]


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
    """

    caller: ModelCaller
    model: ChatRunnable
    stop: threading.Event
    time_zone: str
    clock: Callable[[], datetime]
    deadline_seconds: float
    search: Search | None = None
