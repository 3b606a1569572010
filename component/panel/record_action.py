"""Callbacks that change a summary, and the line to undo the last change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from component import background, dialog, page_state, redraw, widget
from component.bridge import delivery, service_provider
from component.format import format_count, format_turns
from component.page_state import PageState
from component.words.part import SteeringWords
from component.words.wording import words_of
from component.words.words import Words
from graph.value.error import TurnfoldError
from graph.value.record import Record

if TYPE_CHECKING:
    from graph.service.folds import Folds


def draw(page: PageState, surface: str) -> None:
    change = background.last_change()
    if change is None:
        return
    session = page_state.look_again(page).session
    if session is None or (session.session_id, session.turn_count) != (change.session_id, change.turn_count):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"change_{surface}"):
        st.markdown(f":small[:material/check: {change.text}]", width="content")
        widget.draw_action(page.words.undo, f"take_back_{surface}", "undo", _take_back, change)


@delivery.once
def _take_back(change: background.Change) -> None:
    def take_back() -> None:
        folds = service_provider.current().folds
        (folds.restore if change.is_compaction else folds.use_version)(change.session_id, change.back_to)

    background.forget_change()
    page_state.attempt(take_back)
    redraw.page()


EDIT, REMAKE, VERSIONS = "edit_record", "remake_record", "record_versions"
_TARGET, _REFUSAL, _INSTRUCTION = "steered_record", "refused_steering", "unfulfilled_wish"


class Target(NamedTuple):
    session_id: str
    record: Record

    def key(self, name: str) -> str:
        return f"{name}_{self.record.id}"


def open_dialog(name: str, session_id: str, record: Record) -> None:
    st.session_state.update({_TARGET: Target(session_id, record), _REFUSAL: None})
    dialog.request(name)
    redraw.page()


def target() -> Target | None:
    opened: Target | None = st.session_state.get(_TARGET)
    return opened


def show_refusal(words: Words) -> None:
    widget.show_error(words, st.session_state.get(_REFUSAL))


def instruction_of(record: Record) -> str:
    """Returns the last failed instruction for a record, or else the instruction in the record."""
    asked_of, instruction = st.session_state.get(_INSTRUCTION, ("", ""))
    return str(instruction) if asked_of == record.id else record.wish


@delivery.once
def edit(about: Target) -> None:
    text = str(st.session_state[about.key("text")])
    done = _labels().edit_done.format(turns=_turns(about.record))
    _change_in_dialog(about, lambda folds: folds.edit(about.session_id, about.record.id, text), done)


def add_fact(asked: Mapping[str, str]) -> Callable[[], None]:
    """Adds a missing fact to a summary, on a press of the button in the card's list, which stays open."""
    session_id, back_to = asked["session"], asked["record"]

    def add() -> None:
        made = service_provider.current().folds.add_fact(session_id, back_to, asked["fact"])
        background.keep(session_id, _labels().fact_added.format(turns=_turns(made)), back_to=made.replaces or back_to)
        if st.session_state.get(facts_key(back_to)):
            st.session_state[facts_key(made.id)] = True

    page_state.attempt(add)
    return redraw.changed


def facts_key(record_id: str) -> str:
    return f"facts_{record_id}"


@delivery.once
def use_version(about: Target, version: Record) -> None:
    done = _labels().use_done.format(turns=_turns(about.record), version=version.version)
    _change_in_dialog(about, lambda folds: folds.use_version(about.session_id, version.id), done)


@delivery.once
def remake(about: Target) -> None:
    rate = round(float(st.session_state[about.key("rate")]), 2)
    wish = str(st.session_state[about.key("wish")]).strip()
    st.session_state[_INSTRUCTION] = about.record.id, wish
    dialog.close()

    def done(made: Record) -> str:
        st.session_state.pop(_INSTRUCTION, None)
        before, after = format_count(about.record.summary_chars), format_count(made.summary_chars)
        return _labels().remake_done.format(turns=_turns(made), before=before, after=after)

    _make(about, lambda folds: folds.remake(about.session_id, about.record.id, rate=rate, instruction=wish), done)


@delivery.once
def fold_again(session_id: str, record: Record) -> None:
    def done(made: Record) -> str:
        return _labels().fold_again_done.format(turns=_turns(made))

    _make(Target(session_id, record), lambda folds: folds.fold_again(session_id, record.id), done)
    redraw.page()


@delivery.once
def undo_fold(session_id: str, record: Record) -> None:
    def undo() -> None:
        quoted = service_provider.current().folds.undo(session_id, record.id)
        done = _labels().unmerged if quoted is None else _labels().undo_fold_done
        text = done.format(turns=_turns(record), count=record.source_count)
        background.keep(session_id, text, back_to=record.id)

    page_state.attempt(undo)
    redraw.page()


def _change_in_dialog(about: Target, change: Callable[[Folds], Record], done: str) -> None:
    """Changes a record and closes the dialog; a refusal is shown in the dialog."""
    try:
        change(service_provider.current().folds)
        background.keep(about.session_id, done, back_to=about.record.id)
    except TurnfoldError as error:
        st.session_state[_REFUSAL] = error
        return
    page_state.set_notice(None)
    dialog.close()


def _make(about: Target, make: Callable[[Folds], Record], done: Callable[[Record], str]) -> None:
    def report(made: Record) -> None:
        background.keep(about.session_id, done(made), back_to=about.record.id)

    background.start(_labels().making.format(turns=_turns(about.record)), make, report)


def _labels() -> SteeringWords:
    return words_of(st.session_state[page_state.LANGUAGE]).steering


def _turns(record: Record) -> str:
    return format_turns(record.turns)
