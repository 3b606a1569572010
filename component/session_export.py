"""Draws the dialog that saves a chat as a file."""

from __future__ import annotations

import re
from typing import Final

import streamlit as st

from component.format import format_bytes
from component.page_state import PageState
from graph.value.view import SessionItem

_NO_FILE_NAME: Final = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')
_NAME_CHARS: Final = 60
# As `asset/open_file.js` reads one: text of JSON that is sent within JSON, in one message of the page's connection.
OPENED_BYTES: Final = 10 * 1024 * 1024


def draw(now: PageState, item: SessionItem) -> None:
    """Draws the two kinds of file to choose from; each is made when it is asked for."""
    said, sessions, identifier = now.words.sessions, now.service.sessions, item.session_id
    size = sessions.export_size(identifier)
    with_images = True
    name = file_name(item.title) or file_name(now.words.untitled)
    st.download_button(
        said.as_markdown,
        lambda: sessions.export_markdown(identifier),
        file_name=f"{name}.md",
        mime="text/markdown",
        key="export_markdown",
        icon=":material/description:",
        width="stretch",
        on_click="ignore",
    )
    if size.whole > OPENED_BYTES and size.without_images < size.whole:
        sizes = {"whole": format_bytes(size.whole), "without": format_bytes(size.without_images)}
        with_images = not st.checkbox(said.without_images.format(**sizes), key="export_without_images")
    st.download_button(
        said.as_json,
        lambda: "\n".join(sessions.export(identifier, with_images=with_images)),
        file_name=f"{name}.jsonl",
        mime="application/jsonl",
        key="export_json",
        icon=":material/data_object:",
        width="stretch",
        on_click="ignore",
    )
    chosen = size.whole if with_images else size.without_images
    note = said.json_note
    if chosen > OPENED_BYTES:
        note = said.json_too_large.format(size=format_bytes(chosen), limit=format_bytes(OPENED_BYTES))
    st.markdown(f":small[:gray[{note}]]")


def file_name(title: str) -> str:
    """Returns a title as the name of a file on any system, without its ending; "" if nothing is left of it."""
    return " ".join(_NO_FILE_NAME.sub(" ", title).split())[:_NAME_CHARS].strip(". ")
