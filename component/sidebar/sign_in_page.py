"""Draws the sign-in page."""

from __future__ import annotations

import base64

import streamlit as st

from component import asset_file
from component.words.en import Words
from graph.server.settings import Settings
from graph.value.error import SignInError


def draw(words: Words, settings: Settings, error: SignInError) -> None:
    said = words.sign_in
    st.html(asset_file.FOLDER / "sign_in_page.css")
    with st.container(key="sign_in_page", horizontal_alignment="center", gap="small"):
        mark = base64.b64encode(asset_file.read("icon.svg").encode()).decode()
        st.html(f'<img alt="" width="56" height="56" src="data:image/svg+xml;base64,{mark}">', width="content")
        st.title(said.title, anchor=False, text_alignment="center")
        st.markdown(getattr(said, error.reason), text_alignment="center")
        if error.reason == "withdrawn":
            st.button(said.sign_out, key="sign_out", icon=":material/logout:", on_click=st.logout)
        elif _is_at(settings.turnfold_origin):
            st.button(said.sign_in, key="sign_in", type="primary", icon=":material/login:", on_click=st.login)
        else:
            st.markdown(f":small[:gray[{said.elsewhere}]]", text_alignment="center")
            st.link_button(said.go_there, settings.turnfold_origin or "", icon=":material/login:", type="primary")
    component = st.components.v2.component("turnfold_sign_in", js=asset_file.read("sign_in.js"))
    component(key="sign_in_script", data={"language": words.language})


def _is_at(origin: str | None) -> bool:
    """Returns True if the browser is at the provider's redirect origin; a cookie of another origin isn't accepted."""
    url = st.context.url or origin or ""
    return f"{url}/".startswith(f"{origin}/")
