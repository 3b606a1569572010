"""A program that talks to an OpenAI-compatible endpoint by the real client, and times its first words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

Message = ChatCompletionMessageParam


class Timed(NamedTuple):
    """An answer, and the milliseconds from the request to its first words."""

    text: str
    first_words: float


class Program:
    """One program over one endpoint.

    Args:
        url: The endpoint's base URL.
        key: Its token there.
    """

    def __init__(self, url: str, key: str) -> None:
        self._client = OpenAI(base_url=url, api_key=key, max_retries=0)

    def ask(self, messages: Sequence[Message]) -> Timed:
        """Has a chat answered and reads the answer to its end."""
        pieces, first_words = [], 0.0
        began = time.perf_counter()
        with self._client.chat.completions.create(model="bench-model", messages=messages, stream=True) as stream:
            for chunk in stream:
                if chunk.choices and (piece := chunk.choices[0].delta.content):
                    first_words = first_words or (time.perf_counter() - began) * 1_000
                    pieces.append(piece)
        return Timed("".join(pieces), first_words)


def question(text: str) -> Message:
    """Returns a user's message."""
    return {"role": "user", "content": text}


def answer(text: str) -> Message:
    """Returns an assistant's message."""
    return {"role": "assistant", "content": text}
