"""What the routes of sessions take and answer, where no value of the service is that already."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.message import Sent
from graph.value.input_view import CallInput
from graph.value.record import Record
from graph.value.view import ChartPoint, ContextNotice, Gauge, NextFold, SessionItem, Statistics

SESSIONS_AT_ONCE = 200
TURNS_AT_ONCE = 1_000
_TEXT_CHARS = 2_000


class Exact(Sent):
    """An object of our own routes, where a field that isn't known is a mistake; null means absent."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ListSessions(BaseModel, extra="forbid"):
    """Which sessions are listed, the newest first."""

    search: str = Field(default="", max_length=_TEXT_CHARS, description="Words that the title or one message has.")
    last: int = Field(default=30, ge=1, le=SESSIONS_AT_ONCE, description="How many at most.")
    before: str = Field(default="", max_length=512, description="`next` of the page before this one.")


class SessionPage(BaseModel):
    """Some of the sessions, the newest first; `next` leads to the older ones, null if there are none."""

    sessions: tuple[SessionItem, ...]
    next: str | None


class SessionAnswer(BaseModel):
    """A session's settings and state; the code of what its project lacks stands in `project_problem`."""

    model_config = ConfigDict(from_attributes=True)

    session_id: str
    title: str
    compression_rate: float
    strategy: str
    model: str
    turn_count: int
    is_running: bool
    fold_failures: int
    fold_error_code: str
    unsent_messages: int
    context_notice: ContextNotice
    project_root: str
    has_memory: bool
    project_problem: Annotated[str, BeforeValidator(lambda error: getattr(error, "code", ""))]
    client: str
    is_pinned: bool
    forked_from: str
    forked_after: int


class ChangeSession(Exact):
    """What is to change; what isn't named stays. Each holds from the next fold and the next turn on."""

    title: str | None = Field(default=None, max_length=_TEXT_CHARS)
    compression_rate: float | None = Field(default=None, ge=0.1, le=0.5)
    strategy: str | None = Field(default=None, max_length=64)
    model: str | None = Field(default=None, max_length=256)
    project_root: str | None = Field(default=None, max_length=4_096, description="An allowed folder; empty for none.")
    has_memory: bool | None = None


class ListTurns(BaseModel, extra="forbid"):
    """Which turns are listed, the oldest of them first."""

    last: int = Field(default=30, ge=1, le=TURNS_AT_ONCE, description="How many of the newest.")
    before: int | None = Field(default=None, ge=1, le=2**31, description="Only turns with a smaller number.")


class RecordList(BaseModel):
    """The summaries in force, oldest first, and the ids of those that `restore` can undo, newest first."""

    records: tuple[Record, ...]
    restorable: tuple[str, ...]


class Figures(BaseModel):
    """What folding saved and cost, what is folded next, how full the window is, and what each turn sent."""

    statistics: Statistics
    next_fold: NextFold
    gauge: Gauge
    chart: tuple[ChartPoint, ...]


class TurnInputs(BaseModel):
    """What each call of a turn was sent."""

    calls: tuple[CallInput, ...]


class TurnBegun(BaseModel):
    """The turn that runs now."""

    session_id: str
    turn: int


class Restore(Exact):
    """What is undone: a compaction with every later one, or without `record_id` the last reset."""

    record_id: str | None = Field(default=None, max_length=256)
