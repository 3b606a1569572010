"""The script that Streamlit runs for each drawing of the page; knows only in which order its parts are drawn."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from component import browser, composer, sidebar, summary_panel, transcript, visit
from component.text import explain_error, language_of_locale, words_of
from graph.error import TurnfoldError

ASSETS = Path(__file__).parent / "asset"


def main() -> None:
    """Draws the page for the session in its address."""
    st.set_page_config(page_title="Turnfold", page_icon=ASSETS / "icon.svg", layout="wide", initial_sidebar_state=272)
    st.html(ASSETS / "style.css")
    st.logo(ASSETS / "logo.svg", icon_image=ASSETS / "icon.svg", size="large")
    try:
        now = visit.begin()
        sidebar.draw(now)
        transcript.draw(now)
        summary_panel.draw_rail(now)
        composer.draw(now)
        browser.draw(now.words)
    except TurnfoldError as error:
        st.error(explain_error(words_of(language_of_locale(st.context.locale)), error), icon=":material/error:")


if __name__ == "__main__":
    main()
