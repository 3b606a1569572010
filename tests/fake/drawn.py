"""How many examples a costly property draws."""

from __future__ import annotations

from hypothesis import settings

_THOROUGH = 200


def at_most(examples: int, *, share: int = 10) -> int:
    """Returns `examples` in the thorough profile, one in `share` of them but at least three in the quick one."""
    return examples if settings().max_examples >= _THOROUGH else max(3, examples // share)
