"""Checks that the rows of an export, which may be any file, are whole sessions as this program writes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, get_args, get_type_hints

from langchain_core.messages import AIMessage, ToolMessage
from sqlalchemy import Table

from graph.core.image import reference_of
from graph.core.imported_message import shown_message
from graph.record import RecordKind, RecordOutcome, RecordStatus
from graph.store.message_row import decode_message
from graph.store.schema import (
    call_table,
    image_table,
    message_table,
    pin_table,
    record_table,
    session_table,
    turn_table,
)
from graph.store.transfer import ReadRow, not_an_export
from graph.store.turn_row import TurnRow

_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_TURN_TYPES: Final = get_type_hints(TurnRow)
_CHOICES: Final[Mapping[Table, Mapping[str, Sequence[object]]]] = {
    turn_table: {name: get_args(_TURN_TYPES[name]) for name in ("status", "rating")},
    message_table: {"role": ("human", "ai", "tool")},
    record_table: {
        "kind": get_args(RecordKind),
        "status": get_args(RecordStatus),
        "outcome": (*get_args(RecordOutcome), None),
    },
}
_USER: Final = "human"
_PINNED_ROLES: Final = (_USER, "ai")


def check_rows(rows: Sequence[ReadRow]) -> None:
    """Checks that each session has its turns, each of them its question, and that all that is stored can be read.

    Raises:
        InputError: `not_an_export`, with the number of the line; that of the last one if the rows don't fit together.
    """
    for number, table, row in rows:
        try:
            is_sound = _is_sound(table, row)
        except _UNREADABLE:
            is_sound = False
        if not is_sound:
            raise not_an_export(number)
    if not (_has_turns(rows) and _shows_results(rows) and _pins_words(rows) and _is_acyclic(rows)):
        raise not_an_export(len(rows) + 1)


def _is_sound(table: Table, row: Mapping[str, Any]) -> bool:
    """Whether a row by itself can be one of ours; may raise one of `_UNREADABLE` if not."""
    has_choices = all(row[name] in choices for name, choices in _CHOICES.get(table, {}).items() if name in row)
    has_items = all(
        type(item) is (int if name == "turns" else str)
        for name, value in row.items()
        if isinstance(value, tuple)
        for item in value
    )
    own = _OWN_CHECKS.get(table)
    return has_choices and has_items and (own is None or own(row))


def _is_message(row: Mapping[str, Any]) -> bool:
    shown_message(decode_message(row["role"], row["message_id"], row["content"]))
    return bool(row["position"] > 0)


def _is_call(row: Mapping[str, Any]) -> bool:
    with suppress(ValueError):  # an unreadable list says so where it is shown
        json.loads(row["manifest"])
    return True


def _is_record(row: Mapping[str, Any]) -> bool:
    return bool(row["turns"]) and min(row["turns"]) > 0 and 0 < row["from_position"] <= row["to_position"]


def _is_image(row: Mapping[str, Any]) -> bool:
    return bool(row["hash"] == reference_of(row["data_url"]))


_OWN_CHECKS: Final[Mapping[Table, Callable[[Mapping[str, Any]], bool]]] = {
    message_table: _is_message,
    record_table: _is_record,
    call_table: _is_call,
    image_table: _is_image,
}


def _has_turns(rows: Sequence[ReadRow]) -> bool:
    """Whether each session is there once, with all of its turns, and each of these with its question."""
    sessions = [row for _, table, row in rows if table is session_table]
    counts = {row["session_id"]: row["turn_count"] for row in sessions}
    turns = {
        (row["session_id"], row["number"]): row["user_message_id"] for _, table, row in rows if table is turn_table
    }
    messages = [row for _, table, row in rows if table is message_table]
    asked = {(row["session_id"], row["turn"], row["message_id"]) for row in messages if row["role"] == _USER}
    found = Counter(session_id for session_id, _ in turns)
    return (
        len(counts) == len(sessions)
        and all(found[session_id] == count for session_id, count in counts.items())
        and all(1 <= number <= counts.get(session_id, 0) for session_id, number in turns)
        and all((row["session_id"], row["turn"]) in turns for row in messages)
        and {(*place, message_id) for place, message_id in turns.items()} == asked  # no other would be shown
    )


def _shows_results(rows: Sequence[ReadRow]) -> bool:
    """Whether each result of a tool is one of a call of its attempt, and the only one: no other would be shown."""
    calls: Counter[tuple[object, ...]] = Counter()
    results: Counter[tuple[object, ...]] = Counter()
    for _, table, row in rows:
        if table is not message_table or row["role"] == _USER:
            continue
        message = decode_message(row["role"], row["message_id"], row["content"])
        place = row["session_id"], row["turn"], row["attempt"]
        if isinstance(message, ToolMessage):
            results[*place, message.tool_call_id] += 1
        elif isinstance(message, AIMessage):
            calls.update((*place, call["id"]) for call in message.tool_calls)
    return results <= calls


def _pins_words(rows: Sequence[ReadRow]) -> bool:
    """Whether no answer of a tool is pinned; a branch may have pins of messages that stayed behind."""
    unsaid = {
        (row["session_id"], row["message_id"])
        for _, table, row in rows
        if table is message_table and row["role"] not in _PINNED_ROLES
    }
    return unsaid.isdisjoint((row["session_id"], row["message_id"]) for _, table, row in rows if table is pin_table)


def _is_acyclic(rows: Sequence[ReadRow]) -> bool:
    """Whether no record is, over any steps, its own source or earlier version: who follows them would never end."""
    before = {row["id"]: {*row["sources"], row.get("replaces")} for _, table, row in rows if table is record_table}
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        return False
    return True
