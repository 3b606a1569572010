"""The LAYER scope: one line for each tool that a model may call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from graph.layer.context_key import LAYER_SUMMARY
from graph.layer.context_store import MemoryContextStore
from graph.layer.scope import ContextScope, PersistenceKind

_LINE_CHARS: Final = 160
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s")


def layer_of_tools(descriptions: Mapping[str, str]) -> MemoryContextStore:
    """Returns LAYER x PERSISTENT with `layerSummary`: each tool's name and its description's first sentence.

    It is in memory alone, as it follows from the tools; the same tools give the same bytes.

    Args:
        descriptions: What the model reads of each tool, by its name, in the order in which they are offered.
    """
    store = MemoryContextStore(ContextScope.LAYER, PersistenceKind.PERSISTENT)
    store.put(LAYER_SUMMARY, "\n".join(f"{name}: {_first_sentence(text)}" for name, text in descriptions.items()))
    return store


def _first_sentence(description: str) -> str:
    sentence = _SENTENCE_END.split(" ".join(description.split()), maxsplit=1)[0]
    return sentence if len(sentence) <= _LINE_CHARS else sentence[: _LINE_CHARS - 1].rstrip() + "…"
