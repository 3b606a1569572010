"""The section of the user's own instructions: for all chats, for the open one, and presets to choose for it.

What is typed is a draft, which stays while the dialog is closed, until it is saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import streamlit as st

from component import dialog, page_state, widget
from component.bridge import service_provider
from component.chat import transcript
from component.format import format_count
from component.page_state import PageState
from graph.value.view import MOST_INSTRUCTIONS_CHARS

_OF_ALL, _OF_NEW = "all", "new"  # beside the ids of chats
_KEPT: Final = "kept_instructions"  # what the fields were filled from
_PRESET, _NEW_NAME = "preset", "preset_name"
_LINES_PIXELS: Final = 216  # eight lines


def draw(now: PageState) -> None:
    words, own = now.words, now.service.instructions
    _draw_field(now, _OF_ALL, own.for_all(), words.instructions_all)
    widget.draw_note(words.instructions_help)
    of_chat, kept = _OF_NEW, st.session_state.get(page_state.NEW_INSTRUCTIONS, "")  # the first message takes them along
    if now.session is not None:
        of_chat, kept = now.session.session_id, own.of_session(now.session.session_id)
        transcript.draw_brought_instructions(now, "brought_setting")
    _draw_field(now, of_chat, kept, words.instructions_chat)
    _draw_presets(now, _key(of_chat), own.presets())


def _key(of: str) -> str:
    return f"instructions_{of}"


def _draw_field(now: PageState, of: str, kept: str, label: str) -> None:
    words, state, key = now.words, st.session_state, _key(of)
    filled: dict[str, str] = state.setdefault(_KEPT, {})
    # What another tab has saved is shown, unless there is a draft. An assignment without need would take away what the
    # browser has and hasn't sent.
    if key not in state or (state[key] == filled.get(key) != kept):
        state[key] = kept
    filled[key] = kept
    with st.container(key=f"counted_{key}", gap="xsmall"):
        draft = str(st.text_area(label, key=key, height=_LINES_PIXELS, persist_state="session") or "")
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", horizontal_alignment="distribute"):
            tokens = words.steering.pin_tokens.format(tokens=format_count(now.service.instructions.tokens(draft)))
            size = words.instructions_size.format(
                chars=f"<span data-count>{format_count(len(draft.strip()))}</span>",
                most=format_count(MOST_INSTRUCTIONS_CHARS),
            )
            is_draft, is_done = draft.strip() != kept, dialog.outcome(key) == (True, None)
            told = words.instructions_unsaved if is_draft else words.instructions_saved if is_done else ""
            st.html(f'<p class="faint">{size} · {tokens}{f" · <b>{told}</b>" if told else ""}</p>')
            look = "primary" if is_draft else "secondary"
            widget.draw_action(words.save, f"save_{key}", "", _save, of, type=look)
        widget.show_error(words, dialog.outcome(key)[1])


def _save(of: str) -> None:
    state, key = st.session_state, _key(of)

    def save() -> None:
        own, text = service_provider.current().instructions, state[key]
        if of == _OF_ALL:
            own.keep_for_all(text)
        elif of == _OF_NEW:
            state[page_state.NEW_INSTRUCTIONS] = own.checked(text)
        else:
            own.keep_of_session(of, text)
        state[key] = own.checked(text)

    dialog.attempt(key, save)


def _draw_presets(now: PageState, key: str, presets: Mapping[str, str]) -> None:
    labels, state = now.words.presets, st.session_state
    if state.get(_PRESET) not in presets:
        state[_PRESET] = None
    with st.container(key="presets", border=True, gap="small"):
        st.markdown(f"**{labels.title}**  \n:small[:gray[{labels.note}]]")
        if presets:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                name = st.selectbox(labels.load, [*presets], key=_PRESET, index=None, placeholder=labels.choose)
                look = {"type": "secondary", "disabled": name is None}
                text = {key: presets.get(name or "", "")}
                widget.draw_action(labels.use, "use_preset", "", state.update, text, **look)
                widget.draw_action(
                    now.words.delete, "icon_forget_preset", "delete", _forget, name, disabled=name is None
                )
        with (
            st.form("new_preset", border=False),
            st.container(horizontal=True, wrap=False, vertical_alignment="bottom"),
        ):
            st.text_input(labels.name, key=_NEW_NAME, placeholder=labels.hint)
            st.form_submit_button(labels.keep, key="keep_preset", on_click=_keep, args=(key,))
        widget.show_error(now.words, dialog.outcome(_PRESET)[1])


def _forget(name: str) -> None:
    dialog.attempt(_PRESET, lambda: service_provider.current().instructions.forget_preset(name))


def _keep(key: str) -> None:
    state = st.session_state

    def keep() -> None:
        kept = service_provider.current().instructions.keep_preset(state[_NEW_NAME], state[key])
        state[_PRESET], state[_NEW_NAME] = kept, ""

    dialog.attempt(_PRESET, keep)
