"""Encodes the blocks of a model call as a difference to the previous call, and decodes them.

An encoded list is JSON: `[depth, step, step, …]`. `depth` is the number of earlier lists needed for decoding, 0 for a
whole list. The steps walk through the blocks of the previous list: a positive number keeps that many of them, a
negative one drops that many, and a block `[kind, id, version, tokens]` is inserted. A block's version is omitted if it
is 1, and then its kind too if it is "message".

Lists in older databases are whole lists of whole blocks without a depth.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final

from graph.value.matcher import BoundedMatcher, TooManyStepsError

Block = tuple[str, str, int, int]
Manifest = tuple[Block, ...]

LONGEST_CHAIN: Final = 64
_USUAL_KIND: Final = "message"
_USUAL_VERSION: Final = 1
_BLOCK_TYPES: Final = ([str, int], [str, str, int], [str, str, int, int])


def encode_manifest(manifest: Manifest, before: Sequence[str] = ()) -> str:
    """Encodes a list whole or as a difference to the last one of `before` (oldest first), whichever is shorter.

    The last one isn't used if it is unreadable, from an older database, or ends a chain of `LONGEST_CHAIN` lists.
    """
    whole = _write(0, manifest)
    if not before:
        return whole
    try:
        depth, _ = _read(before[-1])
        base = decode_manifest(before)
    except ValueError:
        return whole
    if depth is None or depth + 1 >= LONGEST_CHAIN:
        return whole
    try:
        steps = _steps(base, manifest)
    except TooManyStepsError:
        return whole
    difference = _write(depth + 1, steps)
    return difference if len(difference) < len(whole) else whole


def decode_manifest(texts: Sequence[str]) -> Manifest:
    """Decodes the last of the lists of consecutive calls, oldest first; `LONGEST_CHAIN` lists are always enough.

    Raises:
        ValueError: A list is malformed, or the base of a difference is missing.
    """
    depth, _ = _read(texts[-1])
    return decode_all(texts[-1 - (depth or 0) :])[-1]


def decode_all(texts: Sequence[str]) -> list[Manifest]:
    """Decodes all lists of a session's calls, oldest first, from the first call on.

    Raises:
        ValueError: A list is malformed, or the base of a difference is missing.
    """
    manifests: list[Manifest] = []
    before = -1
    for text in texts:
        depth, steps = _read(text)
        if depth and depth != before + 1:
            msg = f"a list of depth {depth} behind one of depth {before}"
            raise ValueError(msg)
        manifests.append(_apply(steps, manifests[-1] if depth else ()))
        before = depth or 0
    return manifests


def without_gaps(texts: Sequence[str]) -> list[str]:
    """Replaces each undecodable list of a session's calls, oldest first, with an empty one."""
    found: list[str] = []
    base: Manifest = ()
    before = -1
    for text in texts:
        read: Manifest | None = None
        depth: int | None = 0
        with suppress(ValueError):
            depth, steps = _read(text)
            if not depth or depth == before + 1 < LONGEST_CHAIN:
                read = _apply(steps, base if depth else ())
        found.append(_write(0, ()) if read is None else text)
        base, before = (read, depth or 0) if read is not None else ((), 0)
    return found


def _read(text: str) -> tuple[int | None, list[Any]]:
    """Returns the depth, None for a list of an older database, and the steps."""
    entries = json.loads(text)
    if not isinstance(entries, list) or not all(isinstance(entry, int) or _is_block(entry) for entry in entries):
        msg = "no list of steps and blocks"
        raise ValueError(msg)
    if entries and isinstance(entries[0], int):
        return entries[0], entries[1:]
    return None, entries


def _is_block(entry: object) -> bool:
    return isinstance(entry, list) and [type(value) for value in entry] in _BLOCK_TYPES


def _steps(base: Manifest, manifest: Manifest) -> list[int | Block]:
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(base, manifest, strict=False))))
    steps: list[int | Block] = [same] if same else []
    matcher = BoundedMatcher(base[same:], manifest[same:])
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag == "equal":
            steps.append(last - first)
            continue
        if last > first:
            steps.append(first - last)
        steps.extend(manifest[same + new_first : same + new_last])
    return steps


def _apply(steps: Sequence[Any], base: Manifest) -> Manifest:
    blocks: list[Block] = []
    position = 0
    for step in steps:
        if not isinstance(step, int):
            blocks.append(_filled(step))
            continue
        if step > 0:
            blocks += base[position : position + step]
        position += abs(step)
    if position != len(base):
        msg = f"a difference to {position} blocks, not to {len(base)}"
        raise ValueError(msg)
    return tuple(blocks)


def _write(depth: int, steps: Sequence[int | Block]) -> str:
    entries = [depth, *(step if isinstance(step, int) else _shortened(*step) for step in steps)]
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def _shortened(kind: str, name: str, version: int, tokens: int) -> list[str | int]:
    if version != _USUAL_VERSION:
        return [kind, name, version, tokens]
    return [name, tokens] if kind == _USUAL_KIND else [kind, name, tokens]


def _filled(block: list[Any]) -> Block:
    match block:
        case [name, tokens]:
            return _USUAL_KIND, name, _USUAL_VERSION, tokens
        case [kind, name, tokens]:
            return kind, name, _USUAL_VERSION, tokens
    kind, name, version, tokens = block
    return kind, name, version, tokens
