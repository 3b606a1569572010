"""Another user, who asks one question after another while the server is attacked by somebody else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from bench.attack.server import OTHER, TIMED, answer_to

_PATIENCE_SECONDS = 60.0


@dataclass
class SentQuestion:
    """A question, and what was read of its answer."""

    question: str
    read: str = ""
    problem: str = ""


def program(address: str, token: str, *, timeout: float = 120) -> httpx2.Client:
    """Returns a client of the HTTP API."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.Client(base_url=address, headers=headers, timeout=timeout, trust_env=False)


def read_answer(client: httpx2.Client, question: SentQuestion, session_id: str = "") -> Iterator[str]:
    """Reads the answer to a question into it, and yields its session with each piece, "" if it is refused."""
    body = {"model": "turnfold", "stream": True, "messages": [{"role": "user", "content": question.question}]}
    known = {"X-Turnfold-Session": session_id} if session_id else {}
    try:
        with client.stream("POST", "/v1/chat/completions", json=body, headers=known) as answer:
            if answer.is_error:
                answer.read()
                question.problem = code_of(answer)
                return
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    chunk: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    if "error" in chunk:
                        question.problem = question.problem or chunk["error"].get("code") or "error"
                    question.read += "".join(each["delta"].get("content") or "" for each in chunk.get("choices", ()))
                    yield answer.headers["x-turnfold-session"]
    except (httpx2.HTTPError, OSError) as error:
        question.problem = type(error).__name__


def code_of(answer: httpx2.Response) -> str:
    """Returns the code of an answer that is an error, or its status."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(answer.text)["error"]["code"])
    return str(answer.status_code)


class Bystander:
    """One chat of a program, named as no other one; use it in a `with` block, which begins with the first words."""

    def __init__(self, address: str, name: str) -> None:
        self._client = program(address, OTHER, timeout=_PATIENCE_SECONDS)
        self._name = name
        self._session_id = ""
        self._has_words = threading.Event()
        self._may_end = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self.sent: list[SentQuestion] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._has_words.wait(_PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.end(_PATIENCE_SECONDS)
        self._client.close()

    @property
    def failed(self) -> list[str]:
        """What became of the turns that didn't go on to their end."""
        return [sent.problem for sent in list(self.sent) if sent.problem]

    @property
    def finished(self) -> int:
        """How many turns went on to their end."""
        return len(self.sent) - self._thread.is_alive() - len(self.failed)

    def end(self, patience_seconds: float) -> bool:
        """Asks nothing more, and waits for the answer that is being read; returns whether it came."""
        self._may_end.set()
        self._thread.join(patience_seconds)
        return not self._thread.is_alive()

    def count_lost(self) -> int:
        """Reads the chat back; returns how many turns aren't stored as they were read."""
        answer = self._client.get(f"/sessions/{self._session_id}/turns?last=1000").raise_for_status()
        return lost_of(self.sent, answer.json()["turns"])

    def _talk(self) -> None:
        while not self._may_end.is_set():
            sent = SentQuestion(f"{TIMED}{self._name}-{len(self.sent)} What did we decide?")
            self.sent.append(sent)
            for session_id in read_answer(self._client, sent, self._session_id):
                self._session_id = session_id
                if sent.read:
                    self._has_words.set()
            if not sent.problem and sent.read != answer_to(sent.question):
                sent.problem = "answer isn't whole"
            self._has_words.set()
            if sent.problem:
                self._may_end.wait(0.3)


def lost_of(sent: Iterable[SentQuestion], turns: Iterable[dict[str, Any]]) -> int:
    """Returns how many questions have no stored turn that begins with what was read, or is it if it was whole.

    A question that wasn't taken may be missing.
    """
    stored = [(turn["user_text"], turn["answer_text"] or "") for turn in turns]
    lost = 0
    for each in sent:
        retained = [answer for question, answer in stored if question == each.question]
        if not retained:
            lost += bool(each.read)
        elif each.problem:
            lost += not any(answer.startswith(each.read) for answer in retained)
        else:
            lost += each.read not in retained
    return lost
