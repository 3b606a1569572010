"""Draws the signed-in user at the end of the sidebar, with the sign-out buttons."""

from __future__ import annotations

from typing import Final

import streamlit as st

from component import action, asset_file, dialog, widget
from component.format import escape_label
from component.page_state import PageState
from component.words.en import Words

_DIALOG: Final = "sign_out_everywhere"


def draw(now: PageState) -> None:
    if now.visitor is None:
        return
    st.html(asset_file.FOLDER / "visitor.css")
    said, name = now.words.sign_in, escape_label(now.visitor.name)
    with st.container(key="visitor", horizontal=True, gap="xsmall", wrap=False, vertical_alignment="center"):
        st.markdown(f":material/account_circle: {name or said.signed_in}")
        st.button(said.sign_out, key="sign_out", type="tertiary", on_click=st.logout)
        widget.draw_menu(said.more, "menu_visitor", {said.everywhere: lambda: dialog.request(_DIALOG)})
    dialog.draw(_DIALOG, said.everywhere_title, _draw_question, now.words)


def _draw_question(words: Words) -> None:
    said = words.sign_in
    st.markdown(said.everywhere_question)
    st.markdown(f":small[:gray[{said.everywhere_note}]]")
    # Enter presses the first button; the style sheet reverses the order.
    with st.container(horizontal=True, key="dialog_choice"):
        st.button(said.everywhere, key="dialog_confirm", type="primary", on_click=action.sign_out_everywhere)
        st.button(words.cancel, key="dialog_cancel", on_click=dialog.close)
    if not dialog.is_open():
        st.rerun()
