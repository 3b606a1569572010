"""Hands the one opened service to the page."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import streamlit as st

from graph.error import ClosingError
from graph.settings import load_settings

if TYPE_CHECKING:
    from graph.service import ChatService


class _Door:
    service: ChatService | None = None
    is_closed = False


def provide(service: ChatService | None) -> None:
    """Gives the page the service to use; None takes it away again."""
    _Door.service, _Door.is_closed = service, False


def close() -> None:
    """Takes the service away from a server that ends: a page that is drawn meanwhile opens no second one."""
    _Door.service, _Door.is_closed = None, True


def current() -> ChatService:
    """Returns the service that was provided; a page that runs without `app.py` opens one of its own.

    Raises:
        ClosingError: The server is ending.
        TurnfoldError: The page had to open a service and couldn't.
    """
    if _Door.is_closed:
        raise ClosingError
    return _Door.service or _own_service()[0]


def _close(opened: tuple[ChatService, ExitStack]) -> None:
    opened[1].close()


@st.cache_resource(show_spinner=False, on_release=_close)
def _own_service() -> tuple[ChatService, ExitStack]:
    from graph.service import open_service  # noqa: PLC0415  # brings LangGraph; a page with a provided service needs none

    stack = ExitStack()
    return stack.enter_context(open_service(load_settings())), stack
