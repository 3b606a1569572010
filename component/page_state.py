"""Page state of one browser tab: session, language, time zone and the settings of its next turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import streamlit as st

from component import service_provider
from component.word import LANGUAGES, Language, Words
from component.wording import language_of_locale, words_of
from graph.error import NotFoundError, TurnfoldError
from graph.view import SessionView, TurnOptions

if TYPE_CHECKING:
    from graph.service import ChatService

LANGUAGE_COOKIE = "turnfold_language"
TURNS_PER_PAGE = 30

# Keys of session_state. Widgets with the same key write them too.
SESSION_PARAMETER = "session"
RATE, STRATEGY, MODEL, LANGUAGE = "compression_rate", "strategy", "model", "language"
ASK, SEARCH, NEW_TITLE = "ask", "search", "new_title"
_SETTINGS = (RATE, STRATEGY, MODEL)
_NOTICE, _SHOWN_TURNS, _SETTINGS_OF, _READ = "notice", "shown_turns", "settings_of", "read_settings"


@dataclass(frozen=True)
class PageState:
    """Everything that one run of the page's script needs to draw.

    Attributes:
        session: The open session, or None on the empty page.
        time_zone: IANA name as the browser gives it, "" if it gives none.
    """

    service: ChatService
    words: Words
    time_zone: str
    session: SessionView | None


def begin() -> PageState:
    """Reads what this tab looks at and brings the settings' widgets in line with the session.

    Raises:
        TurnfoldError: The service can't be opened or the session can't be read.
    """
    service = service_provider.current()
    language = _language(service)
    st.session_state.setdefault(LANGUAGE, language)
    session = _session(service)
    if session is not None:
        session = _keep_changes(service, session)
    _follow_settings(service, session)
    return PageState(service, words_of(language), st.context.timezone or "", session)


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
    """Returns how a turn that starts now shall run: of the settings only what was changed here."""
    return TurnOptions(**changed_settings(), time_zone=st.context.timezone or "")


def changed_settings() -> dict[str, Any]:
    """Returns the settings that this tab's user changed since they were last read, by the names of `TurnOptions`.

    What another tab or the server chose meanwhile must not be undone by a tab that only shows what was.
    """
    read = st.session_state.get(_READ, {})
    return {name: _setting(name) for name in _SETTINGS if _setting(name) != read.get(name)}


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


def _language(service: ChatService) -> Language:
    wishes = (
        st.session_state.get(LANGUAGE),
        st.context.cookies.get(LANGUAGE_COOKIE),
        service.settings.turnfold_language,
    )
    chosen = next((wish for wish in wishes if wish in LANGUAGES), None)
    return chosen or language_of_locale(st.context.locale)


def _session(service: ChatService) -> SessionView | None:
    identifier = session_id()
    if identifier is None:
        return None
    try:
        return service.sessions.get(identifier)
    except NotFoundError as error:
        open_session(None)
        set_notice(error)
        return None


def _keep_changes(service: ChatService, session: SessionView) -> SessionView:
    """Keeps with the session what was changed here, and returns the session as it is then."""
    # By the widgets' values: a run that another overtakes may never get to a callback, and the next sees no change.
    if st.session_state.get(_SETTINGS_OF) != session.session_id:
        return session
    changed = {name: value for name, value in changed_settings().items() if value != getattr(session, name)}
    if not changed:
        return session
    try:
        session = service.sessions.configure(session.session_id, **changed)
    except TurnfoldError as error:
        set_notice(error)
        return session
    clear_notice()
    return session


def _follow_settings(service: ChatService, session: SessionView | None) -> None:
    """Sets the widgets to what holds; without a session, what was chosen for the first message stays."""
    state = st.session_state
    owner = session.session_id if session else ""
    is_same_draft = session is None and state.get(_SETTINGS_OF) == owner
    chosen = changed_settings() if is_same_draft else {}
    holding: dict[str, Any] = {
        RATE: session.compression_rate if session else service.settings.compression_rate,
        STRATEGY: session.strategy if session else service.sessions.default_strategy(),
        MODEL: session.model if session else service.sessions.default_model(),
    }
    state[_SETTINGS_OF], state[_READ] = owner, holding
    for name, value in {**holding, **chosen}.items():
        # Set only where it differs: a value that is set takes the place of what a finger is just moving.
        if _setting(name) != value:
            state[name] = value


def _setting(name: str) -> Any:  # noqa: ANN401  # a number or a name, as the widget has it
    value = st.session_state.get(name)
    return round(value, 2) if isinstance(value, float) else value
