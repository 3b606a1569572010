"""The seed's `vector_cache`: vectors of the recent window's messages, to find those that a new session's message means.

An entry has the seed's form, `{"id": "msg_034", "embedding": [0.21, …]}`. `vector_model` beside it names the model, as
vectors of different models can't be compared; without it the entries are another program's, and stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Final

from graph.project.context_file import Conversation, Message

# Some 2 MB of the file: 260 messages of a small model's vectors, 32 of the largest.
MOST_NUMBERS: Final = 100_000
_DIGITS: Final = 4
_FIRST_ENTRIES: Final = 32

Vector = Sequence[float]


def vectors_of(talk: Conversation, model: str) -> dict[str, Vector]:
    """Returns the vectors of messages in the window by their ids, oldest first; none of another model or size."""
    if talk.vector_model != model:
        return {}
    entries = [entry for entry in talk.vector_cache if isinstance(entry, Mapping)]
    known = {str(entry.get("id")): entry.get("embedding") for entry in entries}
    found = {each.id: known.get(each.id) for each in talk.recent_window if each.id}
    whole = {each: vector for each, vector in found.items() if vector and _is_vector(vector)}
    size = len(next(reversed(whole.values()), ()))
    return {each: vector for each, vector in whole.items() if len(vector) == size}


def without_vectors(talk: Conversation, model: str) -> list[Message]:
    """Returns the messages of the window that lack a vector and may have one, the newest first."""
    known = vectors_of(talk, model)
    most = _most(len(next(iter(known.values()), ()))) or _FIRST_ENTRIES
    newest = [each for each in talk.recent_window if each.id and each.content.strip()][-most:]
    return [each for each in reversed(newest) if each.id not in known]


def with_vectors(talk: Conversation, model: str, vectors: Mapping[str, Vector]) -> Conversation:
    """Returns the dialog with these vectors beside those of the same model and size; the oldest beyond the limit go."""
    sizes = {len(vector) for vector in vectors.values()}
    known = {each: vector for each, vector in vectors_of(talk, model).items() if len(vector) in sizes}
    rounded = {each: [round(value, _DIGITS) for value in vector] for each, vector in vectors.items()}
    merged = {**known, **rounded}
    in_window = [each.id for each in talk.recent_window if each.id in merged]
    kept = in_window[-_most(max(sizes, default=0)) :] if in_window else []
    entries = [{"id": each, "embedding": list(merged[each])} for each in kept]
    return talk.changed(vector_cache=entries, vector_model=model)


def without_gone(talk: Conversation) -> Conversation:
    """Returns the dialog without our vectors of messages that are no longer in the window."""
    if not talk.vector_model:
        return talk
    there = {each.id for each in talk.recent_window}
    kept = [entry for entry in talk.vector_cache if isinstance(entry, Mapping) and entry.get("id") in there]
    return talk if len(kept) == len(talk.vector_cache) else talk.changed(vector_cache=kept)


def nearest(talk: Conversation, model: str, vector: Vector) -> list[str]:
    """Returns the ids of the messages with vectors, by how near they are to this one; newer ones first if equal."""
    known = {each: other for each, other in vectors_of(talk, model).items() if len(other) == len(vector)}
    cosines = {each: _cosine(vector, other) for each, other in reversed(known.items())}
    return sorted(cosines, key=lambda each: -cosines[each])


def _most(size: int) -> int:
    return max(1, MOST_NUMBERS // size) if size else 0


def _is_vector(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(number, (int, float)) and math.isfinite(number) for number in value
    )


def _cosine(one: Vector, other: Vector) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
