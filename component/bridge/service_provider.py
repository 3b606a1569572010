"""Holds the server's service; returns the signed-in user's service to the page's scripts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import streamlit as st

from component.bridge import sign_in
from graph.server.settings import load_settings
from graph.value.error import ClosingError, SignInError, TurnfoldError

if TYPE_CHECKING:
    from graph.service import ChatService


class _Provided:
    service: ChatService | None = None
    is_closed = False


def provide(service: ChatService | None) -> None:
    _Provided.service = service
    _Provided.is_closed = False


def close() -> None:
    """Removes the service at shutdown; from then on no page opens its own."""
    _Provided.service = None
    _Provided.is_closed = True


def current() -> ChatService:
    """Returns the service of this tab's user; call it again in each run and each callback.

    Raises:
        SignInError: Nobody is signed in, or the sign-in has ended.
        ClosingError: The server is shutting down.
        TurnfoldError: The page's own service can't be opened.
    """
    service = opened()
    visitor = sign_in.visitor(service.settings)
    return service if visitor is None else service.for_owner(visitor.owner, sign_in=visitor.sign_in)


def is_signed_out() -> bool:
    """Returns True if a sign-in is required and nobody is signed in."""
    try:
        current()
    except SignInError:
        return True
    except TurnfoldError:  # the page shows the error
        return False
    return False


def opened() -> ChatService:
    """Returns the server's service, which belongs to no user; a page that runs without `app.py` opens its own.

    Raises:
        ClosingError: The server is shutting down.
        TurnfoldError: The page's own service can't be opened.
    """
    if _Provided.is_closed:
        raise ClosingError
    return _Provided.service or _own_service()[0]


@st.cache_resource(show_spinner=False, on_release=lambda opened: opened[1].close())
def _own_service() -> tuple[ChatService, ExitStack]:
    from graph.service import open_service  # noqa: PLC0415  # imports LangGraph, which a page with a provided service doesn't need

    stack = ExitStack()
    return stack.enter_context(open_service(load_settings())), stack
