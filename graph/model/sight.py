"""Which models take images, as far as their server tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

Ask = Callable[[str, Mapping[str, Any] | None], Mapping[str, Any]]

_FRESH_SECONDS: Final = 300.0


class Sight:
    """What is known of the models for five minutes: then a model of the same name may be another one.

    Args:
        ask: Returns the JSON object at a path of the server, or posts a body there; {} if there is none.
        clock: A monotonic clock in seconds.
    """

    def __init__(self, ask: Ask, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._known: dict[str, tuple[bool, float]] = {}

    def takes_images(self, name: str, *, listed: bool | None, can_ask: bool) -> bool:
        """Returns False if a model is known to take none; `listed` is what the server's list of models says."""
        takes, until = self._known.get(name, (True, float("-inf")))
        if self._clock() < until:
            return takes
        if listed is None and can_ask:
            listed = self._told(name)
        takes = listed is not False
        self._known[name] = takes, self._clock() + _FRESH_SECONDS
        return takes

    def note_refusal(self, name: str) -> None:
        self._known[name] = False, self._clock() + _FRESH_SECONDS

    def _told(self, name: str) -> bool | None:
        """Asks llama.cpp, then Ollama."""
        kinds = self._ask("/props", None).get("modalities")
        vision = kinds.get("vision") if isinstance(kinds, Mapping) else None
        if isinstance(vision, bool):
            return vision
        features = self._ask("/api/show", {"model": name}).get("capabilities")
        return "vision" in features if isinstance(features, list) else None
