from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph.model.local_server import ImageSupport


def test_what_a_server_tells_counts_for_five_minutes() -> None:
    now, vision, asked = 0.0, False, []

    def ask(path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        asked.append((path, body))
        return {"capabilities": ["vision"] * vision} if body else {}

    support = ImageSupport(ask, clock=lambda: now)
    assert not support.takes_images("m", listed=None, can_ask=True)
    vision, now = True, 299.0
    assert not support.takes_images("m", listed=None, can_ask=True)
    now = 300.0
    assert support.takes_images("m", listed=None, can_ask=True)
    assert asked == [("/props", None), ("/api/show", {"model": "m"})] * 2


def test_a_refusal_counts_more_than_what_was_told_and_is_forgotten() -> None:
    now = 0.0
    support = ImageSupport(lambda _path, _body: {}, clock=lambda: now)
    assert support.takes_images("m", listed=True, can_ask=False)
    support.note_refusal("m")
    assert not support.takes_images("m", listed=True, can_ask=False)
    assert support.takes_images("other", listed=None, can_ask=False)
    now = 300.0
    assert support.takes_images("m", listed=True, can_ask=False)
    assert not support.takes_images("listed as text", listed=False, can_ask=True)
