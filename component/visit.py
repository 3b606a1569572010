"""What one browser tab looks at: session, language, time zone and the settings of its next turn; draws nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import streamlit as st

from component import door
from component.door import Service
from component.text import language_of_locale, words_of
from component.word import LANGUAGES, Language, Words
from graph.error import NotFoundError, TurnfoldError
from graph.view import SessionView, TurnOptions

LANGUAGE_COOKIE = "turnfold_language"
TURNS_PER_PAGE = 30

# Keys of session_state. Widgets with the same key write them too.
SESSION_PARAMETER = "session"
RATE, STRATEGY, MODEL, LANGUAGE = "compression_rate", "strategy", "model", "language"
ASK, SEARCH, NEW_TITLE = "ask", "search", "new_title"
_NOTICE, _SHOWN_TURNS, _SETTINGS_OF = "notice", "shown_turns", "settings_of"


@dataclass(frozen=True)
class Visit:
    """Everything that one run of the page's script needs to draw.

    Attributes:
        session: The open session, or None on the empty page.
        time_zone: IANA name as the browser gives it, "" if it gives none.
    """

    service: Service
    words: Words
    time_zone: str
    session: SessionView | None


def begin() -> Visit:
    """Reads what this tab looks at and brings the settings' widgets in line with the session.

    Raises:
        TurnfoldError: The service can't be opened or the session can't be read.
    """
    service = door.current()
    language = _language(service)
    st.session_state.setdefault(LANGUAGE, language)
    session = _session(service)
    _follow_settings(service, session)
    return Visit(service, words_of(language), st.context.timezone or "", session)


def session_id() -> str | None:
    """Returns the id in the page's address: the one place that says which session is open."""
    return st.query_params.get(SESSION_PARAMETER) or None


def open_session(identifier: str | None) -> None:
    """Turns to another session, or to the empty page with None."""
    if identifier is None:
        st.query_params.pop(SESSION_PARAMETER, None)
    else:
        st.query_params[SESSION_PARAMETER] = identifier
    st.session_state.pop(_SHOWN_TURNS, None)
    clear_notice()


def options() -> TurnOptions:
    """Returns the settings for a turn that starts now."""
    state = st.session_state
    return TurnOptions(
        compression_rate=round(float(state[RATE]), 2),
        strategy=state[STRATEGY],
        model=state[MODEL],
        time_zone=st.context.timezone or "",
        language=state[LANGUAGE],
    )


def shown_turns() -> int:
    """Returns how many of the newest turns this tab shows."""
    return int(st.session_state.get(_SHOWN_TURNS, TURNS_PER_PAGE))


def show_earlier() -> None:
    """Shows one page of earlier turns more."""
    st.session_state[_SHOWN_TURNS] = shown_turns() + TURNS_PER_PAGE


def notice() -> TurnfoldError | None:
    """Returns the error of the last action, until another action succeeds."""
    return cast("TurnfoldError | None", st.session_state.get(_NOTICE))


def set_notice(error: TurnfoldError) -> None:
    """Keeps the error of an action for the next drawing."""
    st.session_state[_NOTICE] = error


def clear_notice() -> None:
    """Forgets the error of the last action."""
    st.session_state.pop(_NOTICE, None)


def _language(service: Service) -> Language:
    wishes = (
        st.session_state.get(LANGUAGE),
        st.context.cookies.get(LANGUAGE_COOKIE),
        service.settings.turnfold_language,
    )
    chosen = next((wish for wish in wishes if wish in LANGUAGES), None)
    return chosen or language_of_locale(st.context.locale)


def _session(service: Service) -> SessionView | None:
    identifier = session_id()
    if identifier is None:
        return None
    try:
        return service.session(identifier)
    except NotFoundError as error:
        open_session(None)
        set_notice(error)
        return None


def _follow_settings(service: Service, session: SessionView | None) -> None:
    state = st.session_state
    owner = session.session_id if session else ""
    if state.get(_SETTINGS_OF) == owner:
        return
    models = [option.name for option in service.model_options()]
    wish = session.model if session else ""
    state[_SETTINGS_OF] = owner
    state[RATE] = session.compression_rate if session else service.settings.compression_rate
    state[STRATEGY] = session.strategy if session else service.default_strategy()
    state[MODEL] = wish if wish in models else service.default_model()
