"""Validates an export, which may be any file, and imports its sessions; inserts turns that were answered elsewhere."""

from __future__ import annotations

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, get_args, get_type_hints

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call
from sqlalchemy import Connection, Table, insert, select

from graph.core.attached import content_of, images_of, reference_of
from graph.core.day import is_range
from graph.core.long_file import is_whole_of
from graph.core.manifest import without_gaps
from graph.core.model_input import SUMMARY_PREFIX
from graph.core.text import sum_tokens, title_of
from graph.core.turn import MARK, closed_mark, ending_of, text_of, words_of
from graph.fold.fact_line import kept_lines
from graph.fold.spec import round_rate
from graph.store.archive import insert_message
from graph.store.column import database_time
from graph.store.database import Database
from graph.store.row import decode_message, encode_message
from graph.store.schema import (
    attempt_table,
    call_table,
    context_block_table,
    image_table,
    message_table,
    pin_table,
    record_table,
    session_table,
    turn_table,
)
from graph.store.session import change_session, title_values
from graph.store.transfer import ReadRow, add_rows, not_an_export, read_rows
from graph.store.turn_row import TurnRow, new_attempt, sum_history_tokens
from graph.value.error import BusyError, InputError
from graph.value.record import LedgerLine, Record, RecordKind, RecordOutcome, RecordStatus, is_line
from graph.value.view import MOST_INSTRUCTIONS_CHARS, FoldWhen
from prompt.system.framing import CLOSED_ANSWER

_METADATA: Final = ("model_name", "finish_reason")


def shown_message(message: AnyMessage) -> AnyMessage:
    """Returns the message with the fields that this program writes; unknown fields could be sent without being shown.

    Raises:
        LookupError: The message isn't built as this program builds messages; or TypeError, ValueError.
    """
    mark = _mark_of(message)
    kwargs: dict[str, Any] = {} if mark is None else {MARK: mark}
    match message:
        case HumanMessage():
            return HumanMessage(content_of(words_of(message), images_of(message)), id=message.id)
        case AIMessage():
            known = {name: message.response_metadata[name] for name in _METADATA if name in message.response_metadata}
            return AIMessage(
                words_of(message),
                id=message.id,
                tool_calls=[_plain_call(call) for call in message.tool_calls],
                response_metadata=known,
                usage_metadata=message.usage_metadata,
                additional_kwargs=kwargs,
            )
        case ToolMessage():
            return ToolMessage(
                content_of(words_of(message), images_of(message)),
                id=message.id,
                tool_call_id=message.tool_call_id,
                name=message.name,
                status=message.status,
                additional_kwargs=kwargs,
            )
    raise TypeError(message.type)


def _plain_call(call: ToolCall) -> ToolCall:
    return tool_call(name=call["name"], args=call["args"], id=call["id"])


def _mark_of(message: AnyMessage) -> Mapping[str, Any] | None:
    """Returns the program's mark; a closed turn's answer other than a fixed sentence is marked partial, so shown."""
    mark = message.additional_kwargs.get(MARK)
    if mark is None or not isinstance(mark, dict):
        return None
    is_fixed = words_of(message) in CLOSED_ANSWER.values()
    return mark if closed_mark(message) is None or is_fixed else {**mark, "is_partial": True}


_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_STATUS: Final = {"status": get_args(get_type_hints(TurnRow)["status"])}
_CHOICES: Final[Mapping[Table, Mapping[str, Sequence[object]]]] = {
    session_table: {"fold_when": ("", *get_args(FoldWhen))},
    turn_table: _STATUS,
    attempt_table: _STATUS,
    message_table: {"role": ("human", "ai", "tool")},
    record_table: {
        "kind": get_args(RecordKind),
        "status": get_args(RecordStatus),
        "outcome": (*get_args(RecordOutcome), None),
    },
}
# Of the lists that have other items than texts.
_ITEMS: Final[Mapping[str, type]] = {"turns": int, "mcp_tools": dict, "asked_calls": dict, "ledger": list}
_USER: Final = "human"
_PINNED_ROLES: Final = (_USER, "ai")


def check_rows(rows: Sequence[ReadRow]) -> None:
    """Raises `InputError` unless each session has its turns, each turn its question, and all values can be read."""
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
    """True if the row is valid by itself; may also raise one of `_UNREADABLE`."""
    has_choices = all(row[name] in choices for name, choices in _CHOICES.get(table, {}).items() if name in row)
    has_items = all(
        type(item) is _ITEMS.get(name, str) for name, value in row.items() if isinstance(value, tuple) for item in value
    )
    own = _OWN_CHECKS.get(table)
    return has_choices and has_items and (own is None or own(row))


def _is_session(row: Mapping[str, Any]) -> bool:
    return max(len(row.get(name, "")) for name in ("instructions", "brought_instructions")) <= MOST_INSTRUCTIONS_CHARS


def _is_message(row: Mapping[str, Any]) -> bool:
    message = decode_message(row["role"], row["message_id"], row["content"])
    if (whole := row.get("whole_text")) and not (row["role"] == "tool" or _is_whole_question(message, whole)):
        return False
    shown_message(message)
    return bool(row["position"] > 0)


def _is_whole_question(message: AnyMessage, whole_text: str) -> bool:
    return isinstance(message, HumanMessage) and is_whole_of(whole_text, words_of(message))


def _is_call(row: Mapping[str, Any]) -> bool:
    with suppress(ValueError):  # the view of a call reports an unreadable manifest
        json.loads(row["manifest"])
    return True


def _is_record(row: Mapping[str, Any]) -> bool:
    return bool(row["turns"]) and min(row["turns"]) > 0 and 0 < row["from_position"] <= row["to_position"]


def _is_image(row: Mapping[str, Any]) -> bool:
    return bool(row["hash"] == reference_of(row["data_url"]))


_OWN_CHECKS: Final[Mapping[Table, Callable[[Mapping[str, Any]], bool]]] = {
    session_table: _is_session,
    message_table: _is_message,
    record_table: _is_record,
    call_table: _is_call,
    image_table: _is_image,
}


def _has_turns(rows: Sequence[ReadRow]) -> bool:
    """Checks that each session appears once, with all of its turns, and each turn with its question."""
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
        and {(*key, message_id) for key, message_id in turns.items()} == asked  # others would be invisible
    )


def _shows_results(rows: Sequence[ReadRow]) -> bool:
    """Checks that each tool result is the only one of a call in its attempt: others would be invisible."""
    calls: Counter[tuple[object, ...]] = Counter()
    results: Counter[tuple[object, ...]] = Counter()
    for _, table, row in rows:
        if table is not message_table or row["role"] == _USER:
            continue
        message = decode_message(row["role"], row["message_id"], row["content"])
        attempt_key = row["session_id"], row["turn"], row["attempt"]
        if isinstance(message, ToolMessage):
            results[*attempt_key, message.tool_call_id] += 1
        elif isinstance(message, AIMessage):
            calls.update((*attempt_key, call["id"]) for call in message.tool_calls)
    return results <= calls


def _pins_words(rows: Sequence[ReadRow]) -> bool:
    """Checks that no tool result is pinned; a branch may have pins of messages left in its origin."""
    unsaid = {
        (row["session_id"], row["message_id"])
        for _, table, row in rows
        if table is message_table and row["role"] not in _PINNED_ROLES
    }
    return unsaid.isdisjoint((row["session_id"], row["message_id"]) for _, table, row in rows if table is pin_table)


def _is_acyclic(rows: Sequence[ReadRow]) -> bool:
    """Checks that no record is, over any steps, its own source or version before: following them would never end."""
    before = {row["id"]: {*row["sources"], row.get("replaces")} for _, table, row in rows if table is record_table}
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        return False
    return True


# Of the texts in which the older records of a file may have rules: several times what a year of turns has.
_MOST_READ_CHARS: Final = 100_000
_FACTS: Final = ("kept_facts", "missing_facts")


def _with_said_lines(rows: Sequence[ReadRow]) -> Iterator[ReadRow]:
    """Yields the rows, whose records have those lines and rules alone that the user's messages of their turns have."""
    said: dict[tuple[object, object], str] = {}
    for _, table, row in rows:
        if table is message_table and row["role"] == _USER:
            message = decode_message(row["role"], row["message_id"], row["content"])
            said[row["session_id"], row["turn"]] = _squeezed(text_of(message))

    def is_said(text: str, row: Mapping[str, Any]) -> bool:
        squeezed, turns = _squeezed(text), dict.fromkeys(row["turns"])  # of a rule found later the turn is a guess
        return bool(squeezed) and any(squeezed in said.get((row["session_id"], turn), "") for turn in turns)

    left_chars = _MOST_READ_CHARS
    for number, table, row in rows:
        if table is not record_table:
            yield ReadRow(number, table, row)
            continue
        lines = (LedgerLine(*line) for line in row.get("ledger", ()) if is_line(line))
        retained = [line for line in lines if line.kind == "lifted" or is_said(line.text, row)]
        facts = {name: row.get(name) or () for name in _FACTS}
        if not retained and not is_range(row.get("days", "")):  # a merge reads its rules, as there were no lines yet
            left_chars -= sum(map(len, (row["summary"], *facts["kept_facts"], *facts["missing_facts"])))
            rules = _rules_of(row) if left_chars >= 0 else (LedgerLine(row["turns"][0], "rule", "?"),)
            unsaid = {rule.text: rule for rule in rules if not is_said(rule.text, row)}
            if unsaid:
                retained = [rule for rule in rules if rule.text not in unsaid]
                retained += (LedgerLine(rule.turn, "lifted", rule.id) for rule in unsaid.values())
                facts = {name: tuple(fact for fact in facts[name] if fact not in unsaid) for name in _FACTS}
        yield ReadRow(number, table, {**row, **facts, "ledger": tuple(retained)})


def _rules_of(row: Mapping[str, Any]) -> tuple[LedgerLine, ...]:
    values = {field.name: row[field.name] for field in fields(Record) if row.get(field.name) is not None}
    record = Record(**{"thread_id": row["session_id"], "outcome": None, **values, "ledger": (), "days": ""})
    return kept_lines([record])


def _squeezed(text: str) -> str:
    return "".join(text.split())


# Ids as this program makes them (`service.access.new_session_id`, `Sessions.new_id`). An owner's example chat has an id
# of another form, so that no import can take it.
_OWN_ID: Final = re.compile(r"[A-Za-z0-9_-]{16}|[0-9a-f]{32}")


def import_sessions(
    database: Database,
    lines: Iterable[str],
    *,
    owner: str,
    new_session_id: Callable[[], str],
    allowed: Callable[[dict[str, Any]], dict[str, Any]],
) -> tuple[str, ...]:
    """Imports an export in one transaction; returns the ids of the sessions here, in order.

    A session gets a new id if its own is taken or has a foreign form. Records always get new ids: the cache of records
    by id must not trust a file. Nothing is sent that the transcript or the summaries don't show: the chat's own
    instructions aren't until the user agrees; a program's instructions and project memory can be viewed, but their
    blocks end. `allowed` limits a row to the owner's permissions.

    Raises:
        InputError: `not_an_export`: a line is invalid; `detail` is its number.
        NewerDatabaseError: A newer version wrote the export.
        BusyError: One of the sessions was added concurrently.
    """
    rows = list(read_rows(lines))
    check_rows(rows)
    rows = [*_with_said_lines([*_with_readable_lists(rows)]), *_ends_of_blocks(rows)]
    exported = [row["session_id"] for _, table, row in rows if table is session_table]
    with database.write() as connection:
        sessions = {old: new_session_id() if _is_taken(connection, old) else old for old in exported}
        records = {row["id"]: f"rec-{secrets.token_urlsafe(9)}" for _, table, row in rows if table is record_table}
        adapted = (_adapted(read, sessions, records, allowed) for read in rows)
        if not all(add_rows(connection, adapted, owner=owner).values()):
            raise BusyError
    return tuple(sessions.values())


def _ends_of_blocks(rows: Sequence[ReadRow]) -> Iterator[ReadRow]:
    """Yields rows that end each imported block a turn would send: nobody here has written or accepted it."""
    newest: dict[tuple[str, str], ReadRow] = {}
    for read in rows:
        if read.table is context_block_table:
            key = read.row["session_id"], read.row["kind"]
            if key not in newest or newest[key].row["version"] < read.row["version"]:
                newest[key] = read
    for number, table, row in newest.values():
        if row["text"]:
            yield ReadRow(number, table, {**row, "version": row["version"] + 1, "text": "", "lost_tokens": 0})


def _with_readable_lists(rows: Sequence[ReadRow]) -> Iterator[ReadRow]:
    """Yields the rows; manifests that can't be decoded become empty, as when calls between them are missing."""
    calls = [read for read in rows if read.table is call_table]
    calls.sort(key=lambda read: tuple(read.row[name] for name in ("turn", "attempt", "ordinal", "created_at")))
    chains: dict[tuple[str, str], list[ReadRow]] = {}
    for read in calls:
        alone = "" if read.row["kind"] == "answer" else read.row["id"]
        chains.setdefault((read.row["session_id"], alone), []).append(read)
    readable: dict[int, str] = {}
    for chain in chains.values():
        texts = without_gaps([read.row["manifest"] for read in chain])
        readable |= {read.line_number: text for read, text in zip(chain, texts, strict=True)}
    for read in rows:
        is_call = read.table is call_table
        yield read._replace(row={**read.row, "manifest": readable[read.line_number]}) if is_call else read


def _is_taken(connection: Connection, session_id: str) -> bool:
    if not _OWN_ID.fullmatch(session_id):
        return True
    query = select(session_table.c.session_id).where(session_table.c.session_id == session_id)
    return connection.execute(query).first() is not None


def _adapted(
    read: ReadRow,
    sessions: Mapping[str, str],
    records: Mapping[str, str],
    allowed: Callable[[dict[str, Any]], dict[str, Any]],
) -> ReadRow:
    """Returns the row with the ids used here.

    Raises `InputError` `not_an_export` for an unknown session or an invalid rate.
    """
    number, table, row = read
    if row["session_id"] not in sessions:
        raise not_an_export(number)
    row = {**row, "session_id": sessions[row["session_id"]]}
    if table is session_table:
        origin = row.get("forked_from", "")
        row |= {"deleted_at": None, "forked_from": sessions.get(origin, origin), **title_values(title_of(row["title"]))}
        row = allowed(row)
        try:
            round_rate(row["compression_rate"])
        except InputError:
            raise not_an_export(number) from None
    elif table is record_table:
        row |= {
            name: records.get(row[name], row[name]) for name in ("id", "replaces", "superseded_by") if row.get(name)
        }
        row["sources"] = tuple(records.get(source, source) for source in row["sources"])
    elif table is message_table:
        message = decode_message(row["role"], row["message_id"], row["content"])
        if (shown := shown_message(message)) != message:
            row["content"] = encode_message(shown)
    elif table is call_table:
        row["manifest"] = _renamed(row["manifest"], records)
    return ReadRow(number, table, row)


def _renamed(manifest: str, records: Mapping[str, str]) -> str:
    """Returns a manifest, full or differential, with the new ids; unchanged if it can't be parsed."""
    try:
        entries = json.loads(manifest)
    except ValueError:
        return manifest
    if not isinstance(entries, list):
        return manifest
    renamed = [_renamed_block(entry, records) if isinstance(entry, list) else entry for entry in entries]
    return json.dumps(renamed, ensure_ascii=False, separators=(",", ":"))


def _renamed_block(block: Sequence[object], records: Mapping[str, str]) -> list[object]:
    return [_renamed_item(value, records) if isinstance(value, str) else value for value in block]


def _renamed_item(name: str, records: Mapping[str, str]) -> str:
    prefix = SUMMARY_PREFIX if name.startswith(SUMMARY_PREFIX) else ""
    record = name.removeprefix(prefix)
    return prefix + records.get(record, record)


def insert_turns(
    connection: Connection,
    turns: Iterable[Sequence[AnyMessage]],
    *,
    session_id: str,
    owner: str,
    turn_count: int,
    client: str,
    model: str,
    now: datetime,
) -> int:
    """Appends complete turns, each with the user's message first, to an idle session; returns the last number.

    Message ids must be new to the session. `model` only fills the column: no model of ours was called.
    """
    listed = list(turns)
    history_tokens = sum_history_tokens(connection, session_id, turn_count)
    for number, messages in enumerate(listed, start=turn_count + 1):
        status, code = ending_of(messages, stop_requested=False)
        row = {
            "session_id": session_id,
            "number": number,
            "owner": owner,
            "user_message_id": messages[0].id,
            "is_casual": False,
            "history_tokens": history_tokens,
            "is_imported": True,
            **new_attempt(1, model, client, now),
            "status": status,
            "error_code": code,
            "finished_at": database_time(),
        }
        connection.execute(insert(turn_table).values(row))
        attempt_key = {"session_id": session_id, "owner": owner, "turn": number, "attempt": 1, "created_at": now}
        for message in messages:
            insert_message(connection, message, attempt_key)
        history_tokens += sum_tokens(messages)
    last = turn_count + len(listed)
    change_session(connection, session_id, turn_count=last, updated_at=database_time())
    return last
