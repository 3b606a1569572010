"""Reads from the file what the calls of a session were sent, block by block."""

from __future__ import annotations

from graph.core.manifest import Manifest, decode_manifest
from tests.fake.chat import Chat


def last_manifest(chat: Chat) -> Manifest:
    """Returns the whole list of the newest answer call of the session."""
    query = "SELECT manifest FROM model_call WHERE session_id = ? AND kind = 'answer' ORDER BY turn, attempt, ordinal"
    return decode_manifest([text for (text,) in chat.rows(query, chat.session_id)])


def last_kinds(chat: Chat) -> list[str]:
    """Returns the kinds of the blocks that the newest answer call was sent."""
    return [kind for kind, *_ in last_manifest(chat)]
