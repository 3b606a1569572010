"""Compares what a model call was sent with the call before: what a provider that caches prefixes can have kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from graph.core.manifest import Block, Manifest
from graph.core.model_input import CONTEXT

TOOLS: Final = "tools"
NOTE: Final = "note"


def same_blocks(before: Manifest, after: Manifest) -> tuple[bool, ...]:
    """Returns for each block of `after` whether it stands in the beginning that it shares with `before`.

    The tools stand last in a list, but providers read them before everything else: with other tools nothing is shared.
    """
    if _tools(before) != _tools(after):
        return (False,) * len(after)
    shared = _shared(_said(before), _said(after))
    # The tools are shared with the system prompt or not at all.
    return tuple(shared > 0 if block[0] == TOOLS else place < shared for place, block in enumerate(after))


def lost_tokens(before: Manifest, after: Manifest) -> int:
    """Returns our estimate for what a call sent again because something before it was folded, unfolded or left out.

    That is what both inputs have behind the first block that differs. Not counted is what a provider would have had to
    read anew with the whole history as well: behind a changed context or a changed prompt, or with other tools.
    """
    if _tools(before) != _tools(after):
        return 0
    old, new = _said(before), _said(after)
    place = _shared(old, new)
    if place >= min(len(old), len(new)) or {old[place][0], new[place][0]} & {"system", CONTEXT}:
        return 0
    if (old[place][0], new[place][0]) == (NOTE, "message"):
        return 0  # where all stands in one message, the newest part of the history goes before the note
    cached = {block[:3] for block in takewhile(lambda block: block[0] != CONTEXT, old[place:])}
    return sum(block[3] for block in new[place:] if block[:3] in cached)


def _shared(before: Sequence[Block], after: Sequence[Block]) -> int:
    """Returns how many blocks both begin with; a block is the same under any estimate of its tokens."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0][:3] == pair[1][:3], pairs))


def _said(manifest: Manifest) -> list[Block]:
    return [block for block in manifest if block[0] != TOOLS]


def _tools(manifest: Manifest) -> list[Block]:
    return [block for block in manifest if block[0] == TOOLS]
