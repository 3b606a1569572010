"""The project of the open chat or the next, and if the next starts with the project's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from component import widget
from component.words.words import Words
from graph.value.error import TurnfoldError

if TYPE_CHECKING:
    from graph.service import ChatService
    from graph.value.view import SessionView

# Keys of session_state that no widget has; named as in `TurnOptions`.
ROOT: Final = "project_root"
HAS_MEMORY: Final = "has_memory"
# Keys of the widgets: an allowed folder, and the path below it.
LISTED, BELOW = "project_listed", "project_below"
_LAST = "last_project"


def is_on(service: ChatService) -> bool:
    """Returns True if any folder is allowed; otherwise the page shows nothing about projects."""
    return bool(service.projects.roots())


def root_of(service: ChatService, session: SessionView | None) -> str:
    if not is_on(service):
        return ""
    return session.project_root if session is not None else str(st.session_state.get(ROOT, ""))


def take(service: ChatService) -> TurnfoldError | None:
    """Applies the choice made since the page was drawn; returns the refusal, if any."""
    state, roots = st.session_state, service.projects.roots()
    if not roots or (key := widget.choice_key(LISTED)) not in state or ROOT not in state:
        return None
    known, below = _split(state[ROOT], roots)
    listed, typed = state[key], str(state.get(BELOW, below or "")).strip()
    if (listed, typed) == (known, below or ""):
        return None
    path = f"{listed}/{typed}" if listed == known and typed else listed
    if listed == known and typed.startswith("/"):
        path = typed
    try:
        state[ROOT] = state[_LAST] = service.projects.get(path).root if path else ""
    except TurnfoldError as error:
        return error
    return None


def preset(service: ChatService) -> dict[str, Any]:
    """Returns a new chat's settings that aren't the default: the project last chosen here, or else the newest's."""
    if _LAST not in st.session_state:
        newest = service.sessions.list(last=1)
        root = service.sessions.get(newest[0].session_id).project_root if newest else ""
        st.session_state[_LAST] = root if _split(root, service.projects.roots())[1] is not None else ""
    return {ROOT: st.session_state[_LAST]}


def follow(service: ChatService) -> None:
    listed, below = _split(st.session_state[ROOT], service.projects.roots())
    for key, value in ((widget.choice_key(LISTED), listed), (BELOW, below or "")):
        if st.session_state.get(key) != value:
            st.session_state[key] = value


def draw(service: ChatService, words: Words) -> None:
    project, key = words.project, widget.choice_key(LISTED)
    roots, listed = service.projects.roots(), st.session_state[key]
    names = ["", *roots] if listed in {"", *roots} else ["", *roots, listed]
    named = {root: label(root) or project.none for root in names}
    st.selectbox(project.tab, names, key=key, format_func=named.__getitem__, persist_state="session")
    if listed in roots:
        st.text_input(project.below, key=BELOW, placeholder=project.below_hint, persist_state="session")
    else:
        widget.draw_note(project.choice_note)


def label(root: str) -> str:
    """Returns the folder's name before its parent, as the end of a long label is cut off."""
    parent, _, name = root.rpartition("/")
    return f"{name} · {parent or '/'}" if name else root


def _split(root: str, roots: tuple[str, ...]) -> tuple[str, str | None]:
    """Returns the allowed folder of a project and the path below it; None if no allowed folder contains it."""
    if not root:
        return "", ""
    around = [allowed for allowed in roots if f"{root}/".startswith(f"{allowed.rstrip('/')}/")]
    if not around:
        return root, None
    listed = max(around, key=len)
    return listed, root[len(listed) :].strip("/")
