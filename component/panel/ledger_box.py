"""Draws the ledger: what is kept of the user's words, line by line, with what strikes a line out or restores it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from component import page_state, redraw, turn_buttons, widget
from component.bridge import service_provider
from component.format import format_count
from component.page_state import PageState
from component.words.words import Words
from graph.value.view import KeptLine

_KEY = "ledger"


def draw(now: PageState) -> None:
    """Draws the lines of the open chat; nothing before there is one."""
    if now.session is None:
        return
    view, labels = now.service.folds.ledger(now.session.session_id), now.words.ledger
    if not view.lines:
        return
    standing = [line for line in view.lines if line.state in ("sent", "no_room")]
    if outside := sum(line.state == "no_room" for line in standing):
        widget.draw_note(labels.over.format(count=outside))
    used, budget = format_count(view.used_tokens), format_count(view.budget_tokens)
    label = labels.title.format(count=len(standing), used=used, budget=budget)
    if box := widget.open_box(label, _KEY, "format_quote"):
        with box:
            widget.draw_note(labels.note)
            rows = "".join(_row(now.words, now.session.session_id, line) for line in view.lines)
            st.html(f'<ul class="ledger">{rows}</ul>')


def strike(asked: Mapping[str, str]) -> Callable[[], None]:
    """Strikes a line out, or restores it, on a press of its button."""
    is_struck = asked["wanted"] == "true"

    def change() -> None:
        service_provider.current().folds.strike(asked["session"], asked["line"], is_struck=is_struck)

    st.session_state[_KEY] = True  # its label changes, with which the box would close
    page_state.attempt(change)
    return partial(redraw.ask, [redraw.PANEL])


def _row(words: Words, identifier: str, line: KeptLine) -> str:
    labels, text = words.ledger, html.escape(line.text)
    is_out = line.state in ("struck", "taken_back")
    label = f"{labels.restore if is_out else labels.strike}: {line.text}"
    button = turn_buttons.markup(
        "strike", label, {"session": identifier, "line": line.id}, icon="undo" if is_out else "close", is_on=is_out
    )
    about = " · ".join(filter(None, (labels.kinds[line.kind], labels.states.get(line.state))))
    return (
        f'<li data-state="{line.state}"><p>{f"<del>{text}</del>" if is_out else text}</p>'
        f"<p><span>{about}</span>{widget.turn_link(words, line.turn, words.input.turn.format(turn=line.turn))}</p>"
        f'<div class="turn-buttons">{button}</div></li>'
    )
