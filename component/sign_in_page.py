"""Draws what stands in the page's place until somebody is signed in."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from component.word import Words
from graph.error import SignInError
from graph.settings import Settings

_ASSETS = Path(__file__).parent / "asset"


def draw(words: Words, settings: Settings, error: SignInError) -> None:
    """Draws why nobody is let in, and the button that leads to the provider."""
    said = words.sign_in
    with st.container(key="sign_in_page", horizontal_alignment="center", gap="small"):
        st.image(_ASSETS / "icon.svg", width=56)
        st.title(said.title, anchor=False, text_alignment="center")
        st.markdown(getattr(said, error.reason), text_alignment="center")
        if error.reason == "withdrawn":
            st.button(said.sign_out, key="sign_out", icon=":material/logout:", on_click=st.logout)
        elif _is_at(settings.turnfold_origin):
            st.button(said.sign_in, key="sign_in", type="primary", icon=":material/login:", on_click=st.login)
        else:
            st.markdown(f":small[:gray[{said.elsewhere}]]", text_alignment="center")
            st.link_button(said.go_there, settings.turnfold_origin or "", icon=":material/login:", type="primary")
    component = st.components.v2.component("turnfold_sign_in", js=_script())
    component(key="sign_in_script", data={"language": words.language})


def _is_at(origin: str | None) -> bool:
    """Whether the browser shows the address that the provider leads back to: a cookie of another one doesn't count."""
    url = st.context.url or origin or ""
    return f"{url}/".startswith(f"{origin}/")


@cache
def _script() -> str:
    return (_ASSETS / "sign_in.js").read_text(encoding="utf-8")
