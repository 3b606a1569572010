"""Hands the one opened service to the page; knows nothing of how it works inside."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Literal, Protocol

import streamlit as st

from graph.error import ClosingError
from graph.record import Record
from graph.settings import Settings, load_settings
from graph.view import (
    ChartPoint,
    Gauge,
    LiveTurn,
    ModelOption,
    SessionItem,
    SessionView,
    Statistics,
    Transcript,
    TurnOptions,
)


class Service(Protocol):
    """What the page needs of `graph.service.ChatService`; its errors are those of `graph.error`."""

    @property
    def settings(self) -> Settings:
        """The settings of this server."""

    def new_session_id(self) -> str:
        """Makes an id; nothing is stored until the first send."""

    def send(self, session_id: str, text: str, *, message_id: str, options: TurnOptions) -> int:
        """Commits the message, starts its turn and returns the turn's number."""

    def retry(self, session_id: str, *, options: TurnOptions) -> int:
        """Starts a new attempt of a failed or stopped last turn."""

    def regenerate(self, session_id: str, *, options: TurnOptions) -> int:
        """Starts a new attempt of a finished last turn."""

    def stop(self, session_id: str) -> None:
        """Asks the running turn to stop."""

    def command_of(self, text: str) -> Literal["compact", "reset"] | None:
        """Returns the command that was typed instead of a message."""

    def compact(self, session_id: str) -> Record:
        """Compacts the context now and returns the record."""

    def restore(self, session_id: str, record_id: str) -> None:
        """Undoes a compaction."""

    def reset(self, session_id: str) -> None:
        """Begins the context anew; the transcript stays."""

    def compactions(self, session_id: str) -> tuple[Record, ...]:
        """Returns the compactions that can be restored, newest first."""

    def default_strategy(self) -> str:
        """Returns the strategy of sessions that chose none."""

    def live(self, session_id: str) -> LiveTurn | None:
        """Returns the running turn."""

    def session(self, session_id: str) -> SessionView:
        """Returns a session's own settings."""

    def sessions(self, *, search: str = "", last: int | None = None) -> tuple[SessionItem, ...]:
        """Lists the newest sessions, newest first."""

    def session_count(self, *, search: str = "") -> int:
        """Counts the sessions."""

    def rename(self, session_id: str, title: str) -> None:
        """Gives a session another title."""

    def delete(self, session_id: str) -> None:
        """Removes a session with all that belongs to it."""

    def configure(
        self,
        session_id: str,
        *,
        compression_rate: float | None = None,
        strategy: str | None = None,
        model: str | None = None,
    ) -> SessionView:
        """Changes a session's own settings and returns it as it is then."""

    def transcript(self, session_id: str, *, last: int = 30) -> Transcript:
        """Returns the newest turns."""

    def records(self, session_id: str, *, last: int | None = None) -> tuple[Record, ...]:
        """Returns the newest records in force, oldest first."""

    def statistics(self, session_id: str) -> Statistics:
        """Returns the sums over the records."""

    def chart(self, session_id: str) -> tuple[ChartPoint, ...]:
        """Returns the tokens sent and of the full history, turn by turn."""

    def gauge(self, session_id: str | None, *, model: str) -> Gauge:
        """Returns how full the model's window is."""

    def model_options(self) -> tuple[ModelOption, ...]:
        """Lists the models to choose from."""

    def default_model(self) -> str:
        """Returns the model of a new session."""

    def strategies(self) -> tuple[str, ...]:
        """Lists the strategies to choose from."""

    def health(self) -> None:
        """Checks that the service can work."""


class _Door:
    service: Service | None = None
    is_closed = False


def provide(service: Service | None) -> None:
    """Gives the page the service to use; None takes it away again."""
    _Door.service, _Door.is_closed = service, False


def close() -> None:
    """Takes the service away from a server that ends: a page that is drawn meanwhile opens no second one."""
    _Door.service, _Door.is_closed = None, True


def current() -> Service:
    """Returns the service that was provided; a page that runs without `app.py` opens one of its own.

    Raises:
        ClosingError: The server is ending.
        TurnfoldError: The page had to open a service and couldn't.
    """
    if _Door.is_closed:
        raise ClosingError
    return _Door.service or _own_service()[0]


def _close(opened: tuple[Service, ExitStack]) -> None:
    opened[1].close()


@st.cache_resource(show_spinner=False, on_release=_close)
def _own_service() -> tuple[Service, ExitStack]:
    # Imported late: it brings LangGraph, and a page with a provided service needs none of it.
    from graph.service import open_service  # noqa: PLC0415

    stack = ExitStack()
    return stack.enter_context(open_service(load_settings())), stack
