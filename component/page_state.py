"""The state of a browser tab: session, language, time zone, settings of the next turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import streamlit as st

from component import project_choice, reading, widget
from component.bridge import delivery, service_provider
from component.words.text import LANGUAGES, Language
from component.words.wording import explain_error, is_refusal, language_of_locale, words_of
from component.words.words import Words
from graph.server.identity import Identity
from graph.value.error import NotFoundError, TurnfoldError
from graph.value.view import NextFold, PinView, SessionView, Statistics, TurnOptions, TurnView

if TYPE_CHECKING:
    from graph.service import ChatService

# RATE is a key that no widget has: the slider isn't always drawn, and Streamlit then drops its value.
RATE = "compression_rate"
_EDITION = "slider_edition"


def slider_key() -> str:
    return f"slider_{st.session_state.get(_EDITION, 0)}"


def is_moved() -> bool:
    """Returns True if the slider was moved since the page was drawn, so that the whole page has to be drawn."""
    return _shown() not in {None, st.session_state[RATE]}


def set_rate(rate: float) -> None:
    """Sets the rate from elsewhere than the panel's slider, which is then drawn with it."""
    st.session_state[_EDITION] = st.session_state.get(_EDITION, 0) + 1
    st.session_state[RATE] = round(rate, 2)


def _shown() -> float | None:
    shown = st.session_state.get(slider_key())
    return None if shown is None else round(shown, 2)


LANGUAGE_COOKIE, THEME_COOKIE = "turnfold_language", "turnfold_theme"
PANEL_COOKIE, PANEL_WIDTH_COOKIE = "turnfold_panel", "turnfold_panel_width"
KEEP_LANGUAGE = "keep_language"
THEMES = ("light", "dark", "system")
TURNS_PER_PAGE = 30

# Keys of session_state, some of them also widgets' keys.
SESSION_PARAMETER, OPEN = "session", "open_session"
STRATEGY, FOLD_WHEN, MODEL, THINKING = "strategy", "fold_when", "model", "thinking"
LANGUAGE, THEME = "language", "theme"
ASK, FILES, SEARCH, FIND, NEW_TITLE, SELECTING = "ask", "files", "search", "find_words", "new_title", "is_selecting"
_CHOICES = (STRATEGY, FOLD_WHEN, MODEL, THINKING)
_SETTINGS = (RATE, *_CHOICES, project_choice.ROOT, project_choice.HAS_MEMORY)
settings_of = attrgetter(*_SETTINGS)
NEW_INSTRUCTIONS = "new_instructions"  # saved for the chat that the next message begins
NEW_TOOLS = "new_tools"  # chosen for it
WANTED_TURN, _LANDING, _FINDING = "wanted_turn", "landing", "finding_in"
_SHOWN_ATTEMPTS = "shown_attempts"
_NOTICE, _PASSING, SHOWN_TURNS = "notice", "passing", "shown_turns"
_SETTINGS_OF, _READ, _OPENED = "settings_of", "read_settings", "opened"


@dataclass(frozen=True)
class PageState:
    """The input of a run of the page's script; `visitor` is None if the server has no sign-in."""

    service: ChatService
    words: Words
    time_zone: str
    session: SessionView | None
    visitor: Identity | None

    @cached_property
    def following(self) -> NextFold:
        """The next fold by the strategy that is chosen."""
        strategy = chosen(STRATEGY)
        if self.session is None:
            return self.service.folds.next_fold(None, strategy=strategy, fold_when=chosen(FOLD_WHEN))
        return next_fold(self.service, self.session.session_id, strategy)

    @cached_property
    def statistics(self) -> Statistics | None:
        """The figures of the session's folds, ready ones included; None on the empty page."""
        if self.session is None:
            return None
        identifier, folds, ready = self.session.session_id, self.service.folds, self.following.ready
        name = "statistics", chosen(STRATEGY)
        return reading.once(self.service, identifier, name, lambda: folds.statistics(identifier, ready=ready))


def begin() -> PageState:
    """Reads the tab's state, saves changed settings, and sets the settings' widgets from the session.

    Raises:
        SignInError: Nobody is signed in.
        TurnfoldError: The server is shutting down, or the session can't be read.
    """
    service = service_provider.current()
    service.sessions.leave(delivery.tab())  # the chat that is drawn now follows anew
    spoken = language(service)
    st.session_state.setdefault(LANGUAGE, spoken)
    theme = st.context.cookies.get(THEME_COOKIE)
    st.session_state.setdefault(THEME, theme if theme in THEMES else "system")
    st.session_state[RATE] = _shown() or st.session_state.get(RATE)
    if refusal := project_choice.take(service):
        set_notice(refusal)
    session = _session(service)
    if session is not None:
        session = _keep_changes(service, session)
        if turn := st.session_state.pop(WANTED_TURN, None):
            show_turns(session.turn_count - turn + 1)
            st.session_state[_LANDING] = (turn, landing()[1] + 1)
    _follow_settings(service, session)
    visitor = service_provider.visitor(service.settings)
    return PageState(service, words_of(spoken), st.context.timezone or "", session, visitor)


def take_changes(now: PageState) -> PageState:
    """Applies what was chosen in a dialog, as `begin` does, and returns the state with it.

    The page around it is drawn when the dialog closes: with the whole page Streamlit may draw a dialog anew, and the
    focus in it is lost.
    """
    if refusal := project_choice.take(now.service):
        set_notice(refusal)
    session = now.session and _keep_changes(now.service, now.session)
    _follow_settings(now.service, session)
    return replace(now, session=session)


def look_again(now: PageState) -> PageState:
    """Returns the state with the session read again, for a fragment run. Raises `TurnfoldError`."""
    if delivery.is_whole():
        return now
    session = now.session
    try:
        return replace(now, session=session and reading.session(now.service, session.session_id))
    except NotFoundError:  # deleted in another tab: draw the empty page
        st.rerun()


def next_fold(service: ChatService, identifier: str, strategy: str) -> NextFold:
    """Returns the session's next fold by this strategy."""
    read = partial(service.folds.next_fold, identifier, strategy=strategy)
    return reading.once(service, identifier, ("next_fold", strategy), read, of="folds")


def pins(service: ChatService, identifier: str) -> PinView:
    return reading.once(service, identifier, "pins", lambda: service.folds.pins(identifier))


def session_id() -> str | None:
    """Returns the id of the open session; None on the empty page.

    The URL decides when the tab is opened and on the browser's back and forward; else the tab's state, as a request may
    carry a stale URL.
    """
    named = st.query_params.get(SESSION_PARAMETER) or None
    if OPEN not in st.session_state or delivery.is_by_history():
        st.session_state[OPEN] = named
    opened: str | None = st.session_state[OPEN]
    if opened != named:
        _name_in_url(opened)
    return opened


def open_session(identifier: str | None, turn: int | None = None) -> None:
    """Opens a session, scrolled to a turn if given; None opens the empty page."""
    st.session_state[OPEN] = identifier
    _name_in_url(identifier)
    if identifier is None:
        st.session_state[project_choice.HAS_MEMORY] = True
    for key in (SHOWN_TURNS, _SHOWN_ATTEMPTS, NEW_INSTRUCTIONS, NEW_TOOLS):
        st.session_state.pop(key, None)
    st.session_state[WANTED_TURN] = turn
    st.session_state[_OPENED] = opened_count() + 1
    set_notice(None)


def open_at(identifier: str, turn: int) -> None:
    """Widget callback: opens a session at a turn with the words of the sidebar's search, and finds them there."""
    open_session(identifier, turn)
    find(str(st.session_state.get(SEARCH) or ""))


def find(words: str | None) -> None:
    """Opens the search in the open session with these words; None closes it."""
    st.session_state[_FINDING] = None if words is None else session_id()
    st.session_state[FIND] = words or ""


def is_finding() -> bool:
    return st.session_state.get(_FINDING) in {session_id()} - {None}


def _name_in_url(identifier: str | None) -> None:
    if identifier is None:
        st.query_params.pop(SESSION_PARAMETER, None)
    else:
        st.query_params[SESSION_PARAMETER] = identifier


def opened_count() -> int:
    return int(st.session_state.get(_OPENED, 0))


def landing() -> tuple[int, int]:
    """Returns the turn last scrolled to and a count of such openings; (0, 0) before the first."""
    turn, count = st.session_state.get(_LANDING, (0, 0))
    return turn, count


def options() -> TurnOptions:
    own = st.session_state.get(NEW_INSTRUCTIONS) if session_id() is None else None
    settings, zone = changed_settings(), st.context.timezone or ""
    return TurnOptions(**settings, instructions=own or None, mcp_tools=new_tools(), time_zone=zone)


def new_tools() -> tuple[str, ...] | None:
    """Returns the tools chosen for the chat that the next message begins; None for those of the newest chat."""
    return st.session_state.get(NEW_TOOLS) if session_id() is None else None


def changed_settings() -> dict[str, Any]:
    """Returns the settings changed in this tab, by the names of `TurnOptions`: others may be stale here."""
    read = st.session_state.get(_READ, {})
    return {
        name: value for name in _SETTINGS if (value := chosen(name)) not in (None, read.get(name))
    }  # a widget that isn't drawn has no value


def show_attempt(identifier: str, turn: int, attempt: int) -> None:
    st.session_state[_SHOWN_ATTEMPTS] = {**st.session_state.get(_SHOWN_ATTEMPTS, {}), (identifier, turn): attempt}


def shown_version(service: ChatService, identifier: str, turn: TurnView) -> TurnView:
    """Returns the turn as the attempt answered it that the user looks at, else as the one that counts."""
    shown, place = st.session_state.get(_SHOWN_ATTEMPTS, {}), (identifier, turn.number)
    attempt = shown.get(place)
    if attempt == turn.attempt or attempt not in turn.attempts:
        shown.pop(place, None)  # whoever looks at the one that counts looks at the next that does, too
        return turn
    return service.turns.version(identifier, turn.number, attempt)


def shown_turns() -> int:
    return int(st.session_state.get(SHOWN_TURNS, TURNS_PER_PAGE))


def show_turns(count: int) -> None:
    """Widget callback: shows at least this number of the newest turns, in whole pages."""
    pages = -(-count // TURNS_PER_PAGE)
    st.session_state[SHOWN_TURNS] = max(shown_turns(), pages * TURNS_PER_PAGE)


def notice() -> TurnfoldError | None:
    return cast("TurnfoldError | None", st.session_state.get(_NOTICE))


def set_notice(error: TurnfoldError | None) -> None:
    """Sets the error of the last action; None after a success. A refusal becomes a toast: nothing failed."""
    if error is not None and is_refusal(error):
        queue_toast(explain_error(words_of(st.session_state[LANGUAGE]), error), ":material/info:")
        error = None
    st.session_state[_NOTICE] = error


def attempt(act: Callable[[], object], passes_on: str = "") -> bool:
    """Returns True if an action succeeded; an error other than `passes_on` becomes the notice."""
    try:
        act()
    except TurnfoldError as error:
        if error.code == passes_on:
            raise
        set_notice(error)
        return False
    set_notice(None)
    return True


def queue_toast(text: str, icon: str | None = None) -> None:
    st.session_state[_PASSING] = (*st.session_state.get(_PASSING, ()), (text, icon))


def draw_in_passing() -> None:
    """Draws the queued toasts. In a callback they would replace a style sheet's element."""
    for text, icon in st.session_state.pop(_PASSING, ()):
        st.toast(text, icon=icon)


def language(service: ChatService) -> Language:
    """Returns the page's language: this tab's choice, the cookie's, the server's setting, or the browser's."""
    own, from_cookie = st.session_state.get(LANGUAGE), st.context.cookies.get(LANGUAGE_COOKIE)
    candidates = (own, from_cookie, service.settings.turnfold_language)
    locale_language = language_of_locale(st.context.locale)
    return next((language for language in candidates if language in LANGUAGES), locale_language)


def _session(service: ChatService) -> SessionView | None:
    identifier = session_id()
    if identifier is None:
        return None
    try:
        return reading.session(service, identifier)
    except NotFoundError as error:
        open_session(None)
        set_notice(error)
        return None


def _keep_changes(service: ChatService, session: SessionView) -> SessionView:
    # Not in a widget callback: an interrupted run may skip it, and the next run sees no change.
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
    set_notice(None)
    return session


def _follow_settings(service: ChatService, session: SessionView | None) -> None:
    """Sets the widgets to the session's settings; without a session, choices for the first message stay."""
    state, has_projects = st.session_state, project_choice.is_on(service)
    choices: dict[str, Any] = {}
    if session is not None:
        identifier, settings = session.session_id, settings_of(session)
    else:
        identifier, own = "", service.sessions
        rate, fold_when = service.settings.compression_rate, service.settings.fold_when
        settings = rate, own.default_strategy(), fold_when, own.default_model(), "", "", True
        if state.get(_SETTINGS_OF) == identifier:
            choices = changed_settings()
        elif has_projects:
            choices = project_choice.preset(service)
    current: dict[str, Any] = dict(zip(_SETTINGS, settings, strict=True))
    state[_SETTINGS_OF], state[_READ] = identifier, current
    values = {**current, **choices}
    if values[RATE] != state[RATE]:  # with a new key the slider is drawn again, with this value
        state[_EDITION] = state.get(_EDITION, 0) + 1
    state.update({name: value for name, value in values.items() if name not in _CHOICES})
    state[widget.DRAWN_LANGUAGE] = state[LANGUAGE]  # up to here the choices are those of the boxes drawn before
    for name in _CHOICES:
        # An assignment would override a choice the user is making at this moment.
        if chosen(name) != values[name]:
            state[widget.choice_key(name)] = values[name]
    if has_projects:
        project_choice.follow(service)


def chosen(name: str) -> Any:  # noqa: ANN401  # a number or a name, as the widget has it
    return st.session_state.get(widget.choice_key(name), st.session_state.get(name))


def keep_language() -> None:
    """Widget callback: makes the browser store the chosen language in its cookie."""
    st.session_state[KEEP_LANGUAGE] = True
    # Without a new assignment the browser shows the theme in the previous language.
    st.session_state[THEME] = st.session_state[THEME]
