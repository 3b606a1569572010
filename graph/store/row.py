"""Conversion between rows and records or messages."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage, messages_from_dict
from sqlalchemy import and_, or_

from graph.core.day import is_range
from graph.core.text import plain_text, plain_value
from graph.store.schema import message_table, turn_table
from graph.value.record import LedgerLine, Record, is_line

_LEVEL: Final = 9
_SEPARATOR: Final = "\0"  # `plain_text` leaves none in a fact

Facts = tuple[tuple[str, ...], tuple[str, ...]]


def to_values(record: Record) -> dict[str, object]:
    values = dict(vars(record))
    packed = pack_facts(values.pop("kept_facts"), values.pop("missing_facts"), record.summary)
    return {"session_id": values.pop("thread_id"), **values, "facts": packed}


def to_record(row: Mapping[Any, Any]) -> Record:
    values = dict(row)
    retained, missing = unpack_facts(values.pop("facts"), values["summary"])
    ledger = tuple(LedgerLine(*line) for line in values.pop("ledger") if is_line(line))
    days = values.pop("days")
    return Record(
        **values, ledger=ledger, days=days if is_range(days) else "", kept_facts=retained, missing_facts=missing
    )


def pack_facts(retained: Sequence[str], missing: Sequence[str], summary: str) -> bytes | None:
    """Packs both lists to a quarter of the size, as a zlib stream (RFC 1950) with the summary as its dictionary."""
    if not (retained or missing):
        return None
    facts = _SEPARATOR.join([str(len(retained)), *(plain_text(fact) for fact in (*retained, *missing))])
    packer = zlib.compressobj(_LEVEL, zdict=_dictionary(summary))
    return packer.compress(facts.encode()) + packer.flush()


def unpack_facts(packed: bytes | None, summary: str) -> Facts:
    """Returns the retained and the missing facts; none if the summary has changed since packing."""
    if packed is None:
        return (), ()
    try:
        unpacker = zlib.decompressobj(zdict=_dictionary(summary))
        count, *facts = (unpacker.decompress(packed) + unpacker.flush()).decode().split(_SEPARATOR)
        retained_count = int(count)
    except (zlib.error, ValueError):
        return (), ()
    return tuple(facts[:retained_count]), tuple(facts[retained_count:])


def _dictionary(summary: str) -> bytes:
    return plain_text(summary).encode()


_message = message_table.c
# Fields of nearly every message of a role; stored only if different.
_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {"ai": {"response_metadata": {"finish_reason": "stop"}}}
USER_ROLE: Final = "human"
_OF_TURN = and_(turn_table.c.session_id == _message.session_id, turn_table.c.number == _message.turn)
WITH_TURN = message_table.join(turn_table, _OF_TURN)
# A message is live if it belongs to its turn's current attempt; a user's message belongs to every attempt.
IS_LIVE = or_(_message.attempt == turn_table.c.attempt, _message.role == USER_ROLE)


def encode_message(message: AnyMessage) -> str:
    """Encodes a message, without id and role, as JSON; with the usual fields of its role, as its text alone."""
    data: Any = message.model_dump(exclude_defaults=True, exclude={"id", "type"})
    if isinstance(message.content, str) and data == _usual(message.type, message.content):
        data = message.content
    return json.dumps(plain_value(data), ensure_ascii=False, separators=(",", ":"))


def decode_message(role: str, message_id: str, content: str) -> AnyMessage:
    """Decodes the JSON of `encode_message`, and older rows, which repeat role and id and may have lone surrogates."""
    data = plain_value(json.loads(content))
    data = _usual(role, data) if isinstance(data, str) else data.get("data", data)
    return cast("AnyMessage", messages_from_dict([{"type": role, "data": {**data, "id": message_id}}])[0])


def _usual(role: str, text: str) -> dict[str, Any]:
    return {**_USUAL.get(role, {}), "content": text}
