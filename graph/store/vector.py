"""The vectors of messages: kept beside the full-text index, and ranked by how near they are to a query's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import and_, bindparam, delete, exists, insert, select

from graph.search.term import searchable_text
from graph.store.database import Database
from graph.store.row import IS_LIVE, WITH_TURN, decode_message
from graph.store.schema import message_table, message_vector_table

_message = message_table.c
_vector = message_vector_table.c
_OF_MESSAGE: Final = and_(_vector.session_id == _message.session_id, _vector.position == _message.position)
_IS_KNOWN: Final = and_(_OF_MESSAGE, _vector.model == bindparam("of_model"))
_MISSING: Final = (
    select(_message.position, _message.role, _message.message_id, _message.content)
    .select_from(WITH_TURN)
    .where(_message.session_id == bindparam("of_session"), IS_LIVE, ~exists().where(_IS_KNOWN))
    .order_by(_message.position.desc())
)
_KNOWN: Final = (
    select(_message.turn, _vector.vector)
    .select_from(WITH_TURN.join(message_vector_table, _IS_KNOWN))
    .where(_message.session_id == bindparam("of_session"), _message.turn >= bindparam("first"))
    .where(_message.turn < bindparam("end"), IS_LIVE)
    .order_by(_message.position)
    .execution_options(yield_per=1_000)
)
_ANY: Final = select(_vector.position).where(_vector.session_id == bindparam("of_session")).limit(1)


class Unread(NamedTuple):
    """A message without a vector. `text` is "" if none can be made."""

    position: int
    text: str


class VectorStore:
    """Vectors are bytes of little-endian float32, of length 1, so that a product of two is their cosine."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def missing(self, session_id: str, model: str, *, limit: int) -> list[Unread]:
        """Returns live messages without a vector of this model, the newest first."""
        query = _MISSING.limit(limit)
        with self._database.read() as connection:
            rows = connection.execute(query, {"of_session": session_id, "of_model": model}).all()
        return [Unread(row.position, _text_of(row.role, row.message_id, row.content)) for row in rows]

    def keep(self, session_id: str, model: str, vectors: Mapping[int, bytes]) -> None:
        """Stores vectors by position, in place of those of another model; of a deleted session none."""
        with self._database.write(session_id=session_id, is_context=False) as connection:
            of_session = _message.session_id == session_id
            there = select(_message.position).where(of_session, _message.position.in_(vectors))
            positions = connection.execute(there).scalars().all()
            if not positions:
                return
            stale = delete(message_vector_table).where(_vector.session_id == session_id, _vector.position.in_(vectors))
            connection.execute(stale)
            key = {"session_id": session_id, "model": model}
            rows = [{**key, "position": position, "vector": vectors[position]} for position in positions]
            connection.execute(insert(message_vector_table), rows)

    def has_any(self, session_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(_ANY, {"of_session": session_id}).first() is not None

    def turns(
        self, session_id: str, model: str, vector: bytes, *, from_turn: int = 1, before_turn: int, limit: int
    ) -> list[int]:
        """Returns the turns with the messages nearest to a vector, best first, then newest first."""
        import numpy as np  # noqa: PLC0415  # takes a tenth of a second, and only hybrid search needs it

        asked = np.frombuffer(vector, dtype="<f4")
        best: dict[int, float] = {}
        parameters = {"of_session": session_id, "of_model": model, "first": from_turn, "end": before_turn}
        with self._database.read() as connection, connection.execute(_KNOWN, parameters) as rows:
            for some in rows.partitions():
                known = [row for row in some if len(row.vector) == len(vector)]
                if not known:
                    continue
                matrix = np.frombuffer(b"".join(row.vector for row in known), dtype="<f4").reshape(len(known), -1)
                for row, cosine in zip(known, (matrix @ asked).tolist(), strict=True):
                    best[row.turn] = max(cosine, best.get(row.turn, -1.0))
        return sorted(best, key=lambda turn: (-best[turn], -turn))[:limit]


def _text_of(role: str, message_id: str, content: str) -> str:
    """Returns the text that a vector is made of; "" for an unreadable row."""
    try:
        return searchable_text(decode_message(role, message_id, content)).strip()
    except (ValueError, TypeError, LookupError, AttributeError):
        return ""
