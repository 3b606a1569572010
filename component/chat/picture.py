"""Draws the pictures of a question: small ones that open larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from component import dialog, widget
from component.bridge import delivery, service_provider
from component.format import escape_label
from component.words.words import Words
from graph.attachment import enlarged, thumbnail
from graph.value.view import NamedImage

_WIDTH: Final = 1_000


@delivery.fragment()
def draw(words: Words, identifier: str, images: Sequence[NamedImage], key: str) -> None:
    with st.container(horizontal=True, gap="xsmall", key=f"pictures_{key}"):
        for number, image in enumerate(images):
            _draw_small(words, identifier, image, f"{key}_{number}")


def _draw_small(words: Words, identifier: str, image: NamedImage, key: str) -> None:
    name = image.name or words.attachment.picture
    url = _thumb(identifier, image.url)
    if not url:
        text, gone = f":material/image: :small[:gray[{escape_label(name)}]]", words.attachment.picture_gone
        st.markdown(text, width="content", help=gone)
        return
    with st.container(key=f"picture_{key}", width="content", gap=None):
        st.html(widget.picture(url, name), width="content")
        label = words.attachment.enlarge.format(name=escape_label(name))
        widget.draw_action(label, f"enlarge_{key}", "", dialog.request, f"picture_{key}")
    dialog.draw(f"picture_{key}", escape_label(name), _draw_large, words, identifier, image, width=_WIDTH)


def _draw_large(words: Words, identifier: str, image: NamedImage) -> None:
    if url := enlarged(service_provider.current().turns.image(identifier, image.url)):
        st.html(widget.picture(url, image.name or words.attachment.picture))
    else:
        st.markdown(words.attachment.picture_gone)


@st.cache_data(scope="session", max_entries=100, show_spinner=False)
def _thumb(identifier: str, reference: str) -> str:
    """Returns the small picture, "" if there is none; kept for this tab, since a turn is drawn often."""
    return thumbnail(service_provider.current().turns.image(identifier, reference))
