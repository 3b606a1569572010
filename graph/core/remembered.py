"""Remembers what was read of a text: each fold and each of its drafts reads the same messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

_Read = TypeVar("_Read")
_Rest = ParamSpec("_Rest")
# At most eight million characters of short texts.
_SHORT_CHARS: Final = 2_000
_SHORT_TEXTS: Final = 4_096
_LONG_TEXTS: Final = 64


def remembered(read: Callable[Concatenate[str, _Rest], _Read]) -> Callable[Concatenate[str, _Rest], _Read]:
    """Remembers what a function read of the last texts: of 4,096 of up to 2,000 characters, and of 64 longer ones."""
    short, long = lru_cache(maxsize=_SHORT_TEXTS)(read), lru_cache(maxsize=_LONG_TEXTS)(read)

    @wraps(read)
    def read_once(text: str, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Read:
        known = short if len(text) <= _SHORT_CHARS else long
        return known(text, *rest, **named)  # type: ignore[arg-type]  # lru_cache has no parameters' types

    return read_once
