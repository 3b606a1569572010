"""The sessions listed in the sidebar, and changes since they were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import streamlit as st

from component import page_state, reading
from graph.value.error import NotFoundError

if TYPE_CHECKING:
    from graph.service import ChatService
    from graph.value.view import SessionItem

SESSIONS_PER_PAGE = 30
SHOWN, _LISTED = "shown_sessions", "listed_sessions"
_shown_of = attrgetter("session_id", "title", "is_pinned", "found_turn", "found_text", "found_count", "is_asking")


def read(service: ChatService) -> Sequence[SessionItem]:
    """Returns the sessions that match the search, pinned first, then newest first, and always the open one."""
    also = page_state.session_id() or ""
    read = partial(service.sessions.list, search=search(), last=shown_count(), also=also, pinned_first=True)
    if not also or has_marked():
        return read()
    try:
        return reading.once(service, also, ("list", search(), shown_count()), read, of="all")
    except NotFoundError:  # the open one was deleted
        return read()


def search() -> str:
    return str(st.session_state.get(page_state.SEARCH) or "").strip()


def note_drawn(items: Sequence[SessionItem]) -> None:
    st.session_state[_LISTED] = _rows(items)


def is_changed(service: ChatService, *, keeps_order: bool) -> bool:
    """Returns True if the drawn list is outdated; a different order counts unless `keeps_order`."""
    rows, drawn = _rows(read(service)), st.session_state.get(_LISTED, [])
    return set(rows) != set(drawn) or not (keeps_order or rows == drawn)


def is_marked(item: SessionItem) -> bool:
    return item.is_running and item.session_id != page_state.session_id()


def has_marked() -> bool:
    """Whether a drawn session is marked as running."""
    return any(row[-1] for row in st.session_state.get(_LISTED, ()))


def shown_count() -> int:
    return int(st.session_state.get(SHOWN, SESSIONS_PER_PAGE))


def _rows(items: Sequence[SessionItem]) -> list[tuple[object, ...]]:
    return [(*_shown_of(item), is_marked(item)) for item in items]
