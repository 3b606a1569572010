"""`/chat` of a real service behind a real server on loopback, and a client that reads its events.

with ServedChat(chat.service) as served:
    stream = served.send({"message": "안녕하세요"})
    assert stream.told[-1].data == "[DONE]"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import httpx2

from graph.service import ChatService
from tests.fake.served_programs import TOKEN, ServedPrograms

DONE: Final = "[DONE]"


class ReceivedEvent(NamedTuple):
    """One event as a client reads it; a chunk has no name."""

    id: str
    name: str
    data: str

    @property
    def value(self) -> Any:  # noqa: ANN401  # JSON of any shape
        return json.loads(self.data)


def read(lines: bytes) -> list[ReceivedEvent]:
    """The whole events of a stream that may have been cut anywhere."""
    received = []
    for block in lines.decode(errors="ignore").split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "data" in fields:
            received.append(ReceivedEvent(fields.get("id", ""), fields.get("event", ""), fields["data"]))
    return received


def text_of(received: list[ReceivedEvent]) -> str:
    """What a client shows that keeps all of these: a snapshot or a restart replaces what it had."""
    text = ""
    for each in received:
        if each.name in ("snapshot", "answer_restarted"):
            text = each.value["text"]
        elif not each.name and each.data != DONE:
            text += "".join(choice["delta"].get("content", "") for choice in each.value.get("choices", ()))
    return text


def essence_of(received: list[ReceivedEvent]) -> tuple[str, list[ReceivedEvent]]:
    """What is the same however pieces of text were joined: the text, and all else."""
    return text_of(received), [each for each in received if each.name or '"content":' not in each.data]


class Answer(NamedTuple):
    """An answer as far as it was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def received(self) -> list[ReceivedEvent]:
        return read(self.body)

    @property
    def session_id(self) -> str:
        return self.headers["x-turnfold-session"]

    @property
    def code(self) -> tuple[int, str]:
        """Status and code of a refusal."""
        return self.status, self.json["error"]["code"]

    @property
    def json(self) -> Any:  # noqa: ANN401  # JSON of any shape
        return json.loads(self.body)


class ServedChat(ServedPrograms):
    """Serves all routes for programs, and has a client for each program."""

    def __init__(self, service: ChatService) -> None:
        super().__init__(service)
        self._clients: dict[str, httpx2.Client] = {}

    def __exit__(self, *raised: object) -> None:
        for client in self._clients.values():
            client.close()
        super().__exit__(*raised)

    def send(self, body: Mapping[str, Any], **how: Any) -> Answer:  # noqa: ANN401  # see `ask`
        return self.ask("POST", "/chat", json=body, **how)

    def follow(self, session_id: str, after: str = "", **how: Any) -> Answer:  # noqa: ANN401  # see `ask`
        headers = {"Last-Event-ID": after} if after else {}
        return self.ask("GET", f"/chat/{session_id}/events", headers=headers, **how)

    def ask(
        self,
        method: str,
        path: str,
        *,
        token: str = TOKEN,
        headers: Mapping[str, str] | None = None,
        until: Callable[[bytes], bool] = lambda _: False,
        **request: Any,  # noqa: ANN401  # what httpx takes
    ) -> Answer:
        """Sends a request and reads its answer to the end, or until it looks like that; then the client is gone."""
        with self.opened(method, path, token=token, headers=headers, **request) as answer:
            body = b""
            for piece in answer.iter_raw():
                body += piece
                if until(body):
                    break
            return Answer(answer.status_code, answer.headers, body)

    @contextmanager
    def opened(
        self,
        method: str,
        path: str,
        *,
        token: str = TOKEN,
        headers: Mapping[str, str] | None = None,
        **request: Any,  # noqa: ANN401  # what httpx takes
    ) -> Iterator[httpx2.Response]:
        """Sends a request, and leaves it to the caller to read the answer."""
        if token not in self._clients:  # making one takes longer than most requests
            self._clients[token] = self.client(token)
        with self._clients[token].stream(method, path, headers=headers, **request) as answer:
            yield answer
