"""The settings' form of the user's own instructions, for all chats and for the open one."""

from __future__ import annotations

from typing import Final

import streamlit as st

from component import page_state, widget
from component.bridge import delivery, service_provider
from component.format import format_count
from component.page_state import PageState
from component.words.wording import words_of
from graph.value.error import TurnfoldError

_ALL: Final = "instructions_all"
_READ, _REFUSED = "read_instructions", "refused_instructions"


def draw(now: PageState) -> None:
    words, identifier = now.words, now.session.session_id if now.session else ""
    own, chat = now.service.instructions, f"instructions_{identifier or 'new'}"
    new = st.session_state.get(page_state.NEW_INSTRUCTIONS, "")
    with st.form("own_instructions", border=False), widget.error_box(words):
        kept = {_ALL: own.for_all(), chat: own.of_session(identifier) if identifier else new}
        read = st.session_state.get(_READ, {})
        for key, label in ((_ALL, words.instructions_all), (chat, words.instructions_chat)):
            # What another tab has saved is shown, unless something else is typed here. An assignment without need would
            # take away what the browser has and hasn't sent.
            if st.session_state.setdefault(key, kept[key]) == read.get(key, kept[key]) != kept[key]:
                st.session_state[key] = kept[key]
            st.text_area(label, key=key, height=96, help=words.instructions_help if key == _ALL else None)
            if tokens := own.tokens(kept[key]):
                widget.draw_note(words.steering.pin_tokens.format(tokens=format_count(tokens)))
        st.session_state[_READ] = kept
        widget.show_error(words, st.session_state.pop(_REFUSED, None))
        st.form_submit_button(words.save, key="save_instructions", on_click=_save, args=(identifier, chat))


@delivery.once
def _save(identifier: str, chat: str) -> None:
    read, state = st.session_state.get(_READ, {}), st.session_state
    try:
        own = service_provider.current().instructions
        # Only what was changed here: another tab may have saved the other one meanwhile.
        if state[_ALL] != read.get(_ALL):
            own.keep_for_all(state[_ALL])
        if state[chat] != read.get(chat):
            if identifier:
                own.keep_of_session(identifier, state[chat])
            else:
                state[page_state.NEW_INSTRUCTIONS] = own.checked(state[chat])
    except TurnfoldError as error:
        state[_REFUSED] = error
    else:
        page_state.queue_toast(words_of(state[page_state.LANGUAGE]).instructions_saved)
