"""Writes the list of what a model call was sent as its difference to the call before, and reads it back.

A written list is JSON: `[depth, step, step, …]`. `depth` is how many of the calls before are needed to read it, 0 for
a whole list. The steps go through the list of the call before, from its first block to its last: a number above 0 keeps
so many of its blocks, one below 0 drops so many, and a block `[kind, id, version, tokens]` comes in. Of a block the
version is left out if it's 1, and of such a one the kind too if it's "message".

Older databases have lists of whole blocks alone; they are read as whole lists.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, Final

Block = tuple[str, str, int, int]
Manifest = tuple[Block, ...]

LONGEST_CHAIN: Final = 64
_USUAL_KIND: Final = "message"
_USUAL_VERSION: Final = 1
_BLOCK_TYPES: Final = ([str, int], [str, str, int], [str, str, int, int])


def encode_manifest(manifest: Manifest, before: Sequence[str] = ()) -> str:
    """Writes a list by the shorter of two ways: whole, or as a difference to the last one of `before`.

    Args:
        manifest: What was sent, block by block.
        before: The written lists of the calls before, oldest first; the newest `LONGEST_CHAIN` are enough. The last is
            no base if it can't be read, is one of an older database, or ends a chain of that length.
    """
    whole = _write(0, manifest)
    if not before:
        return whole
    try:
        depth, base = _depth(_read(before[-1])), decode_manifest(before)
    except ValueError:
        return whole
    if depth is None or depth + 1 >= LONGEST_CHAIN:
        return whole
    difference = _write(depth + 1, _steps(base, manifest))
    return difference if len(difference) < len(whole) else whole


def decode_manifest(texts: Sequence[str]) -> Manifest:
    """Reads the last one of these written lists of calls that follow each other, oldest first.

    Args:
        texts: The newest `LONGEST_CHAIN` up to the one that's wanted are always enough; more are no harm.

    Raises:
        ValueError: One isn't written as these are, or isn't preceded by what it's a difference to.
    """
    depth = _depth(_read(texts[-1])) or 0
    manifest: Manifest = ()
    for expected, entries in enumerate(_read(text) for text in texts[-1 - depth :]):
        if (_depth(entries) or 0) != expected:
            msg = f"a list of depth {_depth(entries)} in place {expected} of a chain"
            raise ValueError(msg)
        manifest = _apply(entries if _depth(entries) is None else entries[1:], manifest)
    return manifest


def _read(text: str) -> list[Any]:
    entries = json.loads(text)
    if not isinstance(entries, list) or not all(isinstance(entry, int) or _is_block(entry) for entry in entries):
        msg = "no list of steps and blocks"
        raise ValueError(msg)
    return entries


def _is_block(entry: object) -> bool:
    return isinstance(entry, list) and [type(value) for value in entry] in _BLOCK_TYPES


def _depth(entries: list[Any]) -> int | None:
    """Returns the depth, None for a list as older databases have it."""
    return entries[0] if entries and isinstance(entries[0], int) else None


def _steps(base: Manifest, manifest: Manifest) -> list[int | Block]:
    """Returns the steps from `base` to `manifest`; what both begin with needs no search, and that is nearly all."""
    same = next((place for place, (old, new) in enumerate(zip(base, manifest, strict=False)) if old != new), None)
    same = min(len(base), len(manifest)) if same is None else same
    steps: list[int | Block] = [same] if same else []
    matcher = SequenceMatcher(None, base[same:], manifest[same:], autojunk=False)
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag == "equal":
            steps.append(last - first)
            continue
        if last > first:
            steps.append(first - last)
        steps.extend(manifest[same + new_first : same + new_last])
    return steps


def _apply(steps: Sequence[Any], base: Manifest) -> Manifest:
    """Returns the list that the steps make of `base`."""
    blocks: list[Block] = []
    place = 0
    for step in steps:
        if isinstance(step, int):
            blocks += base[place : place + step] if step > 0 else ()
            place += abs(step)
        else:
            blocks.append(_filled(*step))
    if place != len(base):
        msg = f"a difference to {place} blocks, not to {len(base)}"
        raise ValueError(msg)
    return tuple(blocks)


def _write(depth: int, steps: Sequence[int | Block]) -> str:
    entries = [depth, *(step if isinstance(step, int) else _shortened(*step) for step in steps)]
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def _shortened(kind: str, name: str, version: int, tokens: int) -> list[str | int]:
    if version != _USUAL_VERSION:
        return [kind, name, version, tokens]
    return [name, tokens] if kind == _USUAL_KIND else [kind, name, tokens]


def _filled(*block: Any) -> Block:  # noqa: ANN401  # of the types that `_read` has checked
    """Returns a block with what was left out of it."""
    *names, tokens = block
    if len(names) == 1:
        return _USUAL_KIND, names[0], _USUAL_VERSION, tokens
    kind, name, version = (*names, _USUAL_VERSION)[:3]
    return kind, name, version, tokens
