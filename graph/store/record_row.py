"""A record as its row has it: the facts are packed."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graph.core.text import plain_text
from graph.record import Record

_LEVEL: Final = 9
_SEPARATOR: Final = "\0"  # `plain_text` leaves none in a fact

Facts = tuple[tuple[str, ...], tuple[str, ...]]


def to_values(record: Record) -> dict[str, object]:
    """Returns the columns of a record."""
    values = dict(vars(record))
    packed = pack_facts(values.pop("kept_facts"), values.pop("missing_facts"), record.summary)
    return {"session_id": values.pop("thread_id"), **values, "facts": packed}


def to_record(row: Mapping[Any, Any]) -> Record:
    """Returns the record of a row, which has its session as `thread_id`."""
    values = dict(row)
    kept, missing = unpack_facts(values.pop("facts"), values["summary"])
    return Record(**values, kept_facts=kept, missing_facts=missing)


def pack_facts(kept: Sequence[str], missing: Sequence[str], summary: str) -> bytes | None:
    """Packs both lists in a quarter of their room: what stands in the summary too is a reference to it.

    Returns:
        A zlib stream (RFC 1950) with the summary as its dictionary; None without facts.
    """
    if not (kept or missing):
        return None
    facts = _SEPARATOR.join([str(len(kept)), *(plain_text(fact) for fact in (*kept, *missing))])
    packer = zlib.compressobj(_LEVEL, zdict=_dictionary(summary))
    return packer.compress(facts.encode()) + packer.flush()


def unpack_facts(packed: bytes | None, summary: str) -> Facts:
    """Returns the kept and the missing facts; none if the text is no longer that which they were compared with."""
    if packed is None:
        return (), ()
    try:
        unpacker = zlib.decompressobj(zdict=_dictionary(summary))
        count, *facts = (unpacker.decompress(packed) + unpacker.flush()).decode().split(_SEPARATOR)
        kept_count = int(count)
    except (zlib.error, ValueError):
        return (), ()
    return tuple(facts[:kept_count]), tuple(facts[kept_count:])


def _dictionary(summary: str) -> bytes:
    return plain_text(summary).encode()
