"""Draws a chat in the sidebar's list: title, menu, dialogs and export."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import streamlit as st

from component import action, dialog, page_state, session_list, widget
from component.format import escape_label, format_bytes, format_count
from component.page_state import PageState
from component.words.words import Words
from graph.value.view import SessionItem

_NO_FILE_NAME: Final = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')
_NAME_CHARS: Final = 60
_ROW_CHARS: Final = 14  # of wide letters
# The limit of `asset/attach.js`: the file is sent as a JSON string in one message of the page's websocket.
OPENED_BYTES: Final = 10 * 1024 * 1024


def draw_session_export(now: PageState, item: SessionItem) -> None:
    labels, sessions, identifier = now.words.sessions, now.service.sessions, item.session_id
    size = sessions.export_size(identifier)
    name = file_name(item.title) or file_name(now.words.untitled)
    draw_download = partial(st.download_button, width="stretch", on_click="ignore")
    kind: dict[str, Any] = {"mime": "text/markdown", "key": "export_markdown", "icon": ":material/description:"}
    draw_download(labels.as_markdown, lambda: sessions.export_markdown(identifier), file_name=f"{name}.md", **kind)
    with_images = not _leaves_out(labels.without_images, "images", size.whole, size.images)
    with_whole = not _leaves_out(labels.without_long_texts, "long_texts", size.whole, size.long_texts)
    kind = {"mime": "application/jsonl", "key": "export_json", "icon": ":material/data_object:"}

    def read() -> str:
        return "\n".join(sessions.export(identifier, with_images=with_images, with_whole=with_whole))

    draw_download(labels.as_json, read, file_name=f"{name}.jsonl", **kind)
    chosen = size.whole - (0 if with_images else size.images) - (0 if with_whole else size.long_texts)
    note = labels.json_note
    if chosen > OPENED_BYTES:
        note = labels.json_too_large.format(size=format_bytes(chosen), limit=format_bytes(OPENED_BYTES))
    widget.draw_note(note)


def _leaves_out(label: str, name: str, whole: int, part: int) -> bool:
    """Offers to leave a part out of a file that is too large to be opened here."""
    sizes = {"whole": format_bytes(whole), "without": format_bytes(whole - part)}
    return whole > OPENED_BYTES and part > 0 and st.checkbox(label.format(**sizes), key=f"export_without_{name}")


def file_name(title: str) -> str:
    """Returns a title as a portable file name without extension; "" if nothing is left."""
    return " ".join(_NO_FILE_NAME.sub(" ", title).split())[:_NAME_CHARS].strip(". ")


def draw(now: PageState, item: SessionItem) -> None:
    words = now.words
    title = escape_label(item.title) or words.untitled
    state = "open" if item.session_id == page_state.session_id() else "row"
    with st.container(horizontal=True, gap=None, wrap=False, key=f"{state}_session_{item.session_id}"):
        # Both buttons use callbacks: if another fragment of the run reruns the page, a press without one is lost.
        key, act, hint = f"session_{item.session_id}", page_state.open_session, _hint(words, item, title)
        widget.draw_action(title, key, _icon(item), act, item.session_id, width="stretch", wrap=False, help=hint)
        _draw_menu(now, item, title)
    if item.found_turn is not None:
        found = words.found_in_turn if item.found_count == 1 else words.found_in_turns
        others, text = format_count(item.found_count - 1), escape_label(item.found_text)
        label, key = found.format(others=others, turn=item.found_turn, text=text), f"found_{item.session_id}"
        place = item.session_id, item.found_turn
        widget.draw_action(label, key, "", page_state.open_at, *place, width="stretch", wrap=True)
    dialog.draw(f"rename_{item.session_id}", words.rename_title, _draw_rename, now, item)
    dialog.draw(f"export_{item.session_id}", words.sessions.export_title, draw_session_export, now, item)


def _icon(item: SessionItem) -> str:
    if session_list.is_marked(item):
        return "pending"
    if item.is_asking:
        return "front_hand"
    if item.forked_from:
        return "alt_route"
    return "terminal" if item.client else ""


def _hint(words: Words, item: SessionItem, title: str) -> str | None:
    """Returns what the row has no room for: a long title, what it waits for, its project, the program that began it."""
    hint = title if len(item.title) > _ROW_CHARS else ""
    client = words.program.format(name=escape_label(item.client)) if item.client else ""
    asks = words.tools.waits if item.is_asking else ""
    return " · ".join(filter(None, (hint, asks, escape_label(item.project_root), client))) or None


def _draw_menu(now: PageState, item: SessionItem, title: str) -> None:
    words, labels, identifier = now.words, now.words.sessions, item.session_id
    choices: Mapping[str, Callable[[], None]] = {
        words.rename: lambda: dialog.request(f"rename_{identifier}"),
        labels.unpin if item.is_pinned else labels.pin: lambda: action.pin(identifier, is_pinned=not item.is_pinned),
        labels.export: lambda: dialog.request(f"export_{identifier}"),
        labels.fork: lambda: action.fork(identifier, after_turn=item.turn_count),
        words.delete: lambda: action.delete((identifier,)),
    }
    widget.draw_menu(words.chat_menu.format(title=title), f"menu_{identifier}", choices)


def _draw_rename(now: PageState, item: SessionItem) -> None:
    words = now.words
    with st.form("rename", border=False):  # in a form Enter saves
        title = st.text_input(words.title_label, value=item.title, key=page_state.NEW_TITLE, max_chars=80)
        if not title.strip():
            st.markdown(f":small[:red[:material/error: {words.title_missing}]]")
        dialog.draw_choice(words.save, action.rename, item.session_id, cancel=words.cancel)
