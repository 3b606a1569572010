"""What a test asks of the door by the openai client, and the text that comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import openai

ASKED: Final[list[Any]] = [{"role": "user", "content": "안녕"}]


def ask(client: openai.OpenAI, **fields: Any) -> Any:  # noqa: ANN401  # the answer's type depends on the fields
    return client.chat.completions.create(model="turnfold/small", messages=ASKED, **fields)


def text_of(stream: Iterable[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
