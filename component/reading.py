"""Reads of the service that a tab shares between its runs: none is read again before something has changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast

import streamlit as st

from component.bridge import delivery

if TYPE_CHECKING:
    from graph.service import ChatService
    from graph.value.record import Record
    from graph.value.view import SessionView, Transcript

_Value = TypeVar("_Value")
Scope = Literal["session", "folds", "all"]
_KNOWN: Final = "known_reads"
_IS_ELSEWHERE: Final = "runs_elsewhere"
_TURNS: Final = "read_turns"
_MOST_RECORDS: Final = 16


def session(service: ChatService, identifier: str) -> SessionView:
    """Returns the session's settings and state. Raises `TurnfoldError`."""
    view = once(service, identifier, ("session",), lambda: service.sessions.get(identifier))
    # Of a turn that another server runs nobody hears when that server dies.
    is_elsewhere = view.is_running and delivery.is_served() and not service.sessions.mark(identifier).is_running_here
    st.session_state[_IS_ELSEWHERE] = is_elsewhere
    if is_elsewhere:
        st.session_state.pop(_KNOWN, None)
    return view


def transcript(service: ChatService, identifier: str, last: int) -> Transcript:
    """Returns the newest `last` turns, of as many as were asked for before if it is one: more will be asked for."""
    state, known = st.session_state, _known(service, identifier, "session")
    if last > 1:
        state[_TURNS] = last
    most = max(last, cast("int", known.get(_TURNS, state.get(_TURNS, 1))))
    read = once(service, identifier, ("turns", most), lambda: service.turns.transcript(identifier, last=most))
    known[_TURNS] = most
    left = len(read.turns) - last
    if left <= 0:
        return read
    at, count = read.turns[left - 1].started_at, read.earlier_count + left
    return replace(read, turns=read.turns[left:], earlier_count=count, previous_at=at)


def records(service: ChatService, identifier: str, last: int) -> Sequence[Record]:
    """Returns the newest active records, oldest first."""
    most = max(last, _MOST_RECORDS)
    return once(service, identifier, ("records", most), lambda: service.folds.records(identifier, last=most))[-last:]


def once(
    service: ChatService, identifier: str, name: Hashable, read: Callable[[], _Value], *, of: Scope = "session"
) -> _Value:
    """Returns what `read` returns, from memory while nothing has changed.

    Args:
        service: Of the tab's user.
        identifier: The session's.
        name: What is read, with the arguments.
        of: What counts: changes of the session, also those of the folds that are made here, or of all sessions.
    """
    values = _known(service, identifier, of)
    if name in values:
        return cast("_Value", values[name])
    with shared(service, identifier, "session"):
        value = read()
    if _known(service, identifier, of) is values:  # nothing has changed while it was read
        values[name] = value
    return value


@contextmanager
def shared(service: ChatService, identifier: str | None, of: Scope = "all") -> Iterator[None]:
    """Has what is read within share what each would read of the session."""
    if identifier is None or not _is_shared():
        yield
        return
    with service.sessions.sharing(_known(service, identifier, of)):
        yield


def _is_shared() -> bool:
    return delivery.is_served() and not st.session_state.get(_IS_ELSEWHERE)


def _known(service: ChatService, identifier: str, of: Scope) -> dict[Hashable, object]:
    """Returns what was read of the session since its last change."""
    if not _is_shared():
        return {}
    mark = service.sessions.mark(identifier)
    memory = mark.memory._replace(folds=(False, False)) if of == "session" else mark.memory
    now = (identifier, mark if of == "all" else (mark.session, memory))
    known: dict[Scope, tuple[object, dict[Hashable, object]]] = st.session_state.setdefault(_KNOWN, {})
    if of not in known or known[of][0] != now:
        known[of] = now, {}
    return known[of][1]
