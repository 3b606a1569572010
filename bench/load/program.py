"""Users whose programs send their whole chat to `/v1/chat/completions`, of one server and the other by turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from openai import AsyncOpenAI, OpenAIError
from openai.types.chat import ChatCompletionMessageParam

from bench.load.chat import BrokenAnswerError, HeldChat, Pauses

_TIMEOUT_SECONDS: Final = 120


class Program:
    """The program of one user.

    Args:
        servers: Clients of all servers; the user's own token is sent with each request.
        number: Which server is asked first.
        chat: Takes what happens.
    """

    def __init__(self, servers: Sequence[AsyncOpenAI], number: int, chat: HeldChat) -> None:
        self._servers = servers
        self._number = number
        self._chat = chat
        self._messages: list[ChatCompletionMessageParam] = []

    async def hold(self, turns: int, pauses: Pauses) -> None:
        """Has so many questions answered; one that fails isn't asked again."""
        await pauses.begin()
        for turn in range(1, turns + 1):
            try:
                await self._ask(turn)
            except (OpenAIError, BrokenAnswerError) as error:
                self._chat.errors.append(f"{type(error).__name__}: {error}")
            await pauses.think()

    async def _ask(self, turn: int) -> None:
        question = self._chat.question(turn)
        server = self._servers[(self._number + turn) % len(self._servers)]
        pieces, first_words = [], 0.0
        began = time.perf_counter()
        answered = await server.chat.completions.with_raw_response.create(
            model="turnfold",
            messages=[*self._messages, {"role": "user", "content": question}],
            stream=True,
            extra_headers={"Authorization": f"Bearer {self._chat.token}"},
        )
        async for chunk in answered.parse():
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                first_words = first_words or time.perf_counter()
                pieces.append(piece)
        ended, text = time.perf_counter(), "".join(pieces)
        self._chat.session_ids.add(answered.headers["X-Turnfold-Session"])
        self._chat.note(turn, text, first_words=(first_words - began) * 1_000, whole=(ended - began) * 1_000)
        self._chat.said.append((question, text))
        self._messages += [{"role": "user", "content": question}, {"role": "assistant", "content": text}]


def clients_of(ports: Sequence[int]) -> list[AsyncOpenAI]:
    """Returns a client of each server, for all programs together."""
    return [
        AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="-", max_retries=0, timeout=_TIMEOUT_SECONDS)
        for port in ports
    ]
