"""Asks servers of local models what their list of models doesn't tell: the context window in force, the slots."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from graph.model.catalog import CatalogEntry, is_size

ServerKind = Literal["", "llama.cpp", "lm studio", "ollama"]
Ask = Callable[[str, Mapping[str, Any] | None], Mapping[str, Any]]

_MOST_SHOWN: Final = 50
_FRESH_SECONDS: Final = 300.0
_NUM_CTX: Final = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


class LocalServer:
    """What is known of a server. Windows that were once in force are remembered while a model isn't loaded.

    Args:
        ask: Returns the JSON object at a path beside `/v1`, or posts a body there; {} if there is none.

    Attributes:
        kind: The kind of server, "" for any other or as long as it isn't known.
        slots: How many requests it answers at once; None if it doesn't tell.
    """

    def __init__(self, ask: Ask) -> None:
        self.kind: ServerKind = ""
        self.slots: int | None = None
        self._ask = ask
        self._windows: dict[str, int] = {}
        self._shown: dict[str, Mapping[str, Any]] = {}

    def complete(self, entries: Sequence[CatalogEntry]) -> tuple[CatalogEntry, ...]:
        """Returns the models with the windows and features that the server tells; asks again what kind it is."""
        ways: dict[ServerKind, Callable[[Sequence[CatalogEntry]], tuple[CatalogEntry, ...] | None]] = {
            "llama.cpp": self._of_llama,
            "lm studio": self._of_lm_studio,
            "ollama": self._of_ollama,
        }
        for kind, complete in ways.items():
            if (completed := complete(entries)) is not None:
                self.kind = kind
                return completed
        self.kind = ""
        return tuple(entries)

    def _of_llama(self, entries: Sequence[CatalogEntry]) -> tuple[CatalogEntry, ...] | None:
        props = self._ask("/props", None)
        settings, slots = props.get("default_generation_settings"), props.get("total_slots")
        self.slots = slots if is_size(slots) else None
        if not isinstance(settings, Mapping):
            return None
        size = settings.get("n_ctx")
        if len(entries) != 1 or not is_size(size):  # a router of several models tells none
            return tuple(entries)
        return (replace(entries[0], window_tokens=size, takes_images=_sees(props)),)

    def _of_lm_studio(self, entries: Sequence[CatalogEntry]) -> tuple[CatalogEntry, ...] | None:
        listed = self._ask("/api/v0/models", None).get("data")
        if not isinstance(listed, list):
            return None
        sizes = {item.get("id"): item.get("loaded_context_length") for item in listed if isinstance(item, Mapping)}
        return tuple(self._measured(entry, sizes.get(entry.name)) for entry in entries)

    def _of_ollama(self, entries: Sequence[CatalogEntry]) -> tuple[CatalogEntry, ...] | None:
        loaded = self._ask("/api/ps", None).get("models")
        if not isinstance(loaded, list):
            return None
        sizes = {item.get("name"): item.get("context_length") for item in loaded if isinstance(item, Mapping)}
        shown = [self._with_features(entry) for entry in entries[:_MOST_SHOWN]]
        return tuple(self._measured(entry, sizes.get(entry.name)) for entry in (*shown, *entries[_MOST_SHOWN:]))

    def _with_features(self, entry: CatalogEntry) -> CatalogEntry:
        """Adds what a model can do, and the window that its file sets; the one of its training isn't in force."""
        if not self._shown.get(entry.name):
            self._shown[entry.name] = self._ask("/api/show", {"model": entry.name})
        shown = self._shown[entry.name]
        features, parameters = shown.get("capabilities"), shown.get("parameters")
        if isinstance(features, list):
            entry = replace(entry, features=frozenset(map(str, features)))
        size = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
        return replace(entry, window_tokens=int(size[1])) if size and int(size[1]) > 0 else entry

    def _measured(self, entry: CatalogEntry, loaded: object) -> CatalogEntry:
        if is_size(loaded):
            self._windows[entry.name] = loaded
        size = self._windows.get(entry.name, entry.window_tokens)
        return replace(entry, window_tokens=size, is_provisional=not is_size(loaded))


class ImageSupport:
    """Which models take images; known for five minutes, as a model of the same name may be another one then.

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
            listed = self._ask_server(name)
        takes = listed is not False
        self._known[name] = takes, self._clock() + _FRESH_SECONDS
        return takes

    def is_refused(self, name: str) -> bool:
        """Returns True for a model that is known to take none, without asking its server."""
        takes, until = self._known.get(name, (True, float("-inf")))
        return not takes and self._clock() < until

    def note_refusal(self, name: str) -> None:
        self._known[name] = False, self._clock() + _FRESH_SECONDS

    def _ask_server(self, name: str) -> bool | None:
        """Asks llama.cpp, then Ollama."""
        vision = _sees(self._ask("/props", None))
        if vision is not None:
            return vision
        features = self._ask("/api/show", {"model": name}).get("capabilities")
        return "vision" in features if isinstance(features, list) else None


def _sees(props: Mapping[str, Any]) -> bool | None:
    """Returns whether llama.cpp's properties say that the model takes images."""
    kinds = props.get("modalities")
    vision = kinds.get("vision") if isinstance(kinds, Mapping) else None
    return vision if isinstance(vision, bool) else None
