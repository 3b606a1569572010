"""Draws the menu of a summary's card."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from component import menu, record_action
from component.format import format_turns
from component.record_action import EDIT, REMAKE, VERSIONS
from component.word_steering import SteeringWords
from graph.value.record import Record


def draw(said: SteeringWords, session_id: str, record: Record, place: str) -> None:
    """Draws the menu of an active record; `place` makes its key unique."""
    label = said.menu.format(turns=format_turns(record.turns))
    menu.draw(label, f"menu_card_{place}_{record.id}", _choices(said, session_id, record))


def _choices(said: SteeringWords, session_id: str, record: Record) -> dict[str, Callable[[], None]]:
    """Returns what can be done with a record, by its label."""

    def opening(name: str) -> Callable[[], None]:
        return partial(record_action.open_dialog, name, session_id, record)

    versions = {said.versions: opening(VERSIONS)}
    if record.kind == "verbatim":
        again = {said.fold_again: partial(record_action.fold_again, session_id, record)} if record.version > 1 else {}
        return {**again, **versions}
    # That of a compaction has a button of its own.
    undo = {} if record.kind == "compaction" else {said.undo_fold: partial(record_action.undo_fold, session_id, record)}
    return {said.edit: opening(EDIT), said.remake: opening(REMAKE), **versions, **undo}
