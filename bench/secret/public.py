"""Reads public texts that nobody wrote for this bench: sentences of news and encyclopaedias, messages of chats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bench.quality.entity import read_marked
from bench.quality.memory import read_sessions
from graph.core.turn import text_of

FILE: Final = Path("functionchat-ko", "FunctionChat-Dialog.jsonl")


def read_public(folder: Path) -> Mapping[str, list[str]]:
    """Returns the different texts of each data set.

    Args:
        folder: Has `klue-ner`, `functionchat-ko` and `bfcl-memory`.

    Raises:
        FileNotFoundError: One of them isn't there.
    """
    sessions = read_sessions(folder / "bfcl-memory")
    texts = {
        "klue-ner, Korean sentences": (marked.text for marked in read_marked(folder)),
        "functionchat-ko, Korean messages": _dialogue_messages(folder / FILE),
        "bfcl-memory, English messages": (text_of(turn) for session in sessions.values() for turn in session),
    }
    return {name: [*dict.fromkeys(found)] for name, found in texts.items()}


def _dialogue_messages(path: Path) -> Iterator[str]:
    for line in path.read_text(encoding="utf-8").splitlines():
        for turn in json.loads(line)["turns"]:
            yield from (message["content"] for message in turn["query"] if message.get("content"))
            yield turn["ground_truth"].get("content") or ""
