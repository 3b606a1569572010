"""The script that Streamlit runs to draw the page."""

from __future__ import annotations

import re

import streamlit as st

from component import browser, dialog, page_state, redraw, widget
from component.bridge import delivery, service_provider
from component.chat import composer, find, transcript
from component.panel import record_dialog, summary_panel
from component.sidebar import sidebar, sign_in
from component.words.wording import language_of_locale, words_of
from graph.value.error import SignInError

STYLE_SHEETS = ("page.css", "chat.css", "sidebar.css", "panel.css")
_PIXELS = re.compile(r"\d{3,4}")


def main() -> None:
    delivery.begin_page()
    with widget.error_box(words_of(language_of_locale(st.context.locale))):
        st.set_page_config(
            page_title=redraw.tab_title(),
            page_icon=widget.ASSETS / "icon.svg",
            layout="wide",
            initial_sidebar_state=272,
        )
        is_closed = st.context.cookies.get(page_state.PANEL_COOKIE) == "closed"
        for name in (*STYLE_SHEETS, "panel_closed.css") if is_closed else STYLE_SHEETS:
            st.html(widget.ASSETS / name)
        if _PIXELS.fullmatch(width := str(st.context.cookies.get(page_state.PANEL_WIDTH_COOKIE))):
            # Until panel.js has looked at the room; the panel over a chat isn't widened.
            st.html(f"<style>:root:not([data-panel]) {{ --panel-width: min({width}px, 40vw) }}</style>")
        st.logo(widget.ASSETS / "logo.svg", icon_image=widget.ASSETS / "icon.svg", size="large")
        redraw.need_page()
        dialog.begin()
        try:
            now = page_state.begin()
        except SignInError as error:
            service = service_provider.opened()
            sign_in.draw_page(words_of(page_state.language(service)), service.settings, error)
            return
        for part in (sidebar, transcript, find, summary_panel, composer, browser, record_dialog):
            with widget.error_box(now.words):
                part.draw(now)
        dialog.close_undrawn()
        redraw.end_page()


if __name__ == "__main__":
    main()
