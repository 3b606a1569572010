"""Draws the sign-in page, and the signed-in user at the end of the sidebar."""

from __future__ import annotations

import base64
from typing import Final

import streamlit as st

from component import action, dialog, widget
from component.format import escape_label
from component.page_state import PageState
from component.words.words import Words
from graph.server.settings import Settings
from graph.value.error import SignInError


def draw_page(words: Words, settings: Settings, error: SignInError) -> None:
    labels, origin = words.sign_in, settings.turnfold_origin
    st.html(widget.ASSETS / "sign_in_page.css")
    with st.container(key="sign_in_page", horizontal_alignment="center", gap="small"):
        mark = base64.b64encode(widget.read_assets("icon.svg").encode()).decode()
        st.html(f'<img alt="" width="56" height="56" src="data:image/svg+xml;base64,{mark}">', width="content")
        st.title(labels.title, anchor=False, text_alignment="center")
        st.markdown(getattr(labels, error.reason), text_alignment="center")
        if error.reason == "withdrawn":
            st.button(labels.sign_out, key="sign_out", icon=":material/logout:", on_click=st.logout)
        # A cookie of another origin than the provider's redirect isn't accepted.
        elif f"{st.context.url or origin or ''}/".startswith(f"{origin}/"):
            st.button(labels.sign_in, key="sign_in", type="primary", icon=":material/login:", on_click=st.login)
        else:
            st.markdown(f":small[:gray[{labels.elsewhere}]]", text_alignment="center")
            st.link_button(labels.go_there, origin or "", icon=":material/login:", type="primary")
    component = st.components.v2.component("turnfold_sign_in", js=widget.read_assets("sign_in.js"))
    component(key="sign_in_script", data={"language": words.language})


_DIALOG: Final = "sign_out_everywhere"


def draw_visitor(now: PageState) -> None:
    if now.visitor is None:
        return
    labels, name = now.words.sign_in, escape_label(now.visitor.name)
    with st.container(key="visitor", horizontal=True, gap="xsmall", wrap=False, vertical_alignment="center"):
        st.markdown(f":material/account_circle: {name or labels.signed_in}")
        widget.draw_action(labels.sign_out, "sign_out", "", st.logout)
        widget.draw_menu(labels.more, "menu_visitor", {labels.everywhere: lambda: dialog.request(_DIALOG)})
    dialog.draw(_DIALOG, labels.everywhere_title, _draw_question, now.words)


def _draw_question(words: Words) -> None:
    labels = words.sign_in
    st.markdown(labels.everywhere_question)
    widget.draw_note(labels.everywhere_note)
    dialog.draw_choice(labels.everywhere, action.sign_out_everywhere, cancel=words.cancel, is_form=False)
