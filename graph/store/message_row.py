"""A message as its row has it, and which rows are live."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from langchain_core.messages import AnyMessage, messages_from_dict
from sqlalchemy import and_, or_

from graph.core.text import plain_value
from graph.store.schema import message_table, turn_table

_message = message_table.c
# The fields that nearly every message of a role has beside its text; written only where they differ.
_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {"ai": {"response_metadata": {"finish_reason": "stop"}}}
_USER_ROLE: Final = "human"
_OF_TURN = and_(turn_table.c.session_id == _message.session_id, turn_table.c.number == _message.turn)
WITH_TURN = message_table.join(turn_table, _OF_TURN)
# A message is live if it belongs to its turn's current attempt; a user's message belongs to every attempt.
IS_LIVE = or_(_message.attempt == turn_table.c.attempt, _message.role == _USER_ROLE)


def encode_message(message: AnyMessage) -> str:
    """Encodes what the other columns don't have as JSON; a message with the usual fields of its role as its text."""
    data: Any = message.model_dump(exclude_defaults=True, exclude={"id", "type"})
    if isinstance(message.content, str) and data == _usual(message.type, message.content):
        data = message.content
    return json.dumps(plain_value(data), ensure_ascii=False, separators=(",", ":"))


def decode_message(role: str, message_id: str, content: str) -> AnyMessage:
    """Decodes what `encode_message` wrote, and older rows, which repeat role and id and may contain lone surrogates."""
    data = plain_value(json.loads(content))
    data = _usual(role, data) if isinstance(data, str) else data.get("data", data)
    return cast("AnyMessage", messages_from_dict([{"type": role, "data": {**data, "id": message_id}}])[0])


def _usual(role: str, text: str) -> dict[str, Any]:
    return {**_USUAL.get(role, {}), "content": text}
