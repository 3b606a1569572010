"""Another user, who asks one question after another while the server is attacked by somebody else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import httpx2

from bench.attack.target import OTHER, TIMED, answer_to, bearer

_PATIENCE_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.3
_OK: Final = 200


@dataclass
class Said:
    """A question, and what was read of its answer."""

    question: str
    read: str = ""
    problem: str = ""


class Bystander:
    """One chat of a program; use it in a `with` block, which begins with the first words of an answer.

    Args:
        address: Of the server.
        name: Of the chat; no other one's.
    """

    def __init__(self, address: str, name: str) -> None:
        self._client = httpx2.Client(
            base_url=address, headers=bearer(OTHER), timeout=_PATIENCE_SECONDS, trust_env=False
        )
        self._name = name
        self._session_id = ""
        self._has_words = threading.Event()
        self._may_end = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self.said: list[Said] = []

    def __enter__(self) -> Self:
        """Waits for the first words."""
        self._thread.start()
        self._has_words.wait(_PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        """Waits for the last answer."""
        self.end(_PATIENCE_SECONDS)
        self._client.close()

    @property
    def failed(self) -> list[str]:
        """What became of the turns that didn't go on to their end."""
        return [said.problem for said in list(self.said) if said.problem]

    @property
    def ended(self) -> int:
        """How many turns have ended, well or not."""
        return len(self.said) - self._thread.is_alive()

    @property
    def finished(self) -> int:
        """How many turns went on to their end."""
        return self.ended - len(self.failed)

    def end(self, patience_seconds: float) -> bool:
        """Asks nothing more, and waits for the answer that is being read; returns whether it came."""
        self._may_end.set()
        self._thread.join(patience_seconds)
        return not self._thread.is_alive()

    def count_lost(self) -> int:
        """Reads the chat back; returns how many turns aren't stored as they were read."""
        answer = self._client.get(f"/sessions/{self._session_id}/turns?last=1000").raise_for_status()
        return lost_of(self.said, answer.json()["turns"])

    def _talk(self) -> None:
        while not self._may_end.is_set():
            said = Said(f"{TIMED}{self._name}-{len(self.said)} What did we decide?")
            self.said.append(said)
            try:
                said.problem = self._ask(said)
            except (httpx2.HTTPError, OSError) as error:
                said.problem = type(error).__name__
            self._has_words.set()
            if said.problem:
                self._may_end.wait(_PAUSE_SECONDS)

    def _ask(self, said: Said) -> str:
        body = {"model": "turnfold", "stream": True, "messages": [{"role": "user", "content": said.question}]}
        known = {"X-Turnfold-Session": self._session_id} if self._session_id else {}
        with self._client.stream("POST", "/v1/chat/completions", json=body, headers=known) as answer:
            if answer.status_code != _OK:
                answer.read()
                return code_of(answer.text) or str(answer.status_code)
            self._session_id = answer.headers["x-turnfold-session"]
            for piece, problem in pieces_of(answer.iter_lines()):
                if problem:
                    return problem
                said.read += piece
                self._has_words.set()
        return "" if said.read == answer_to(said.question) else "answer isn't whole"


def pieces_of(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields each piece of a stream's text, or the code of its error."""
    for line in lines:
        if not line.startswith("data: {"):
            continue
        chunk: dict[str, Any] = json.loads(line.removeprefix("data: "))
        if "error" in chunk:
            yield "", chunk["error"].get("code") or "error"
        for choice in chunk.get("choices", ()):
            if piece := choice.get("delta", {}).get("content"):
                yield piece, ""


def code_of(body: str) -> str:
    """Returns the code of an answer that is an error, "" for none."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(body)["error"]["code"])
    return ""


def lost_of(said: Iterable[Said], turns: Iterable[dict[str, Any]]) -> int:
    """Returns how many questions have no stored turn that begins with what was read, or is it if it was whole.

    A question that wasn't taken may be missing.
    """
    stored = [(turn["user_text"], turn["answer_text"] or "") for turn in turns]
    lost = 0
    for each in said:
        kept = [answer for question, answer in stored if question == each.question]
        if not kept:
            lost += bool(each.read)
        elif each.problem:
            lost += not any(answer.startswith(each.read) for answer in kept)
        else:
            lost += each.read not in kept
    return lost
