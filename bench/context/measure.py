"""Counts the tokens that a contender sends, exactly (o200k), and how many of them a provider's cache would hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os.path import commonprefix
from typing import Any, Final

from bpe_openai import get_encoding
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

CACHED_PRICE: Final = 0.1
OUTPUT_PRICE: Final = 4.0
SMALL_MODEL_PRICE: Final = 0.1

Costs = tuple[float, float, float]


@lru_cache(maxsize=1)
def _encoding() -> Any:  # noqa: ANN401  # the library has no types
    return get_encoding("o200k_base")


@lru_cache(maxsize=65_536)
def count_tokens(text: str) -> int:
    """Counts the tokens of a text."""
    return len(_encoding().encode_ordinary(text))


def render(message: BaseMessage) -> str:
    """Renders a message as the text whose tokens are counted: role, text, tool calls."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = [json.dumps({"name": c["name"], "args": c["args"]}, ensure_ascii=False) for c in calls]
    role = "tool" if isinstance(message, ToolMessage) else message.type
    return "\n".join([f"<{role}>", message.text, *called])


def count_messages(messages: Iterable[BaseMessage]) -> int:
    """Counts the tokens of messages; passed to the peers as their token counter."""
    return sum(count_tokens(render(message)) for message in messages)


@dataclass
class Meter:
    """Totals of one contender's run.

    Attributes:
        sent_by_turn: Tokens of each turn's largest call.
        costs_by_turn: Cumulative `costs` at the end of each turn.
        seconds: The contender's own time, without the model.
    """

    sent_by_turn: list[int] = field(default_factory=list)
    costs_by_turn: list[Costs] = field(default_factory=list)
    sent_tokens: int = 0
    unchanged_tokens: int = 0
    answer_tokens: int = 0
    summary_in_tokens: int = 0
    summary_out_tokens: int = 0
    seconds: float = 0.0
    _before: list[str] = field(default_factory=list)

    def call(self, turn: int, messages: Sequence[BaseMessage], answer: BaseMessage) -> str:
        """Counts one model call and returns its input as one text."""
        now = [render(message) for message in messages]
        sent = sum(map(count_tokens, now))
        self.sent_tokens += sent
        self.unchanged_tokens += _unchanged(self._before, now)
        self.answer_tokens += count_tokens(render(answer))
        self._before = now
        if len(self.sent_by_turn) < turn:
            self.sent_by_turn.append(0)
        self.sent_by_turn[turn - 1] = max(self.sent_by_turn[turn - 1], sent)
        return "\n".join(now)

    def end_turn(self) -> None:
        """Marks the end of a turn."""
        self.costs_by_turn.append(self.costs)

    def summary(self, prompt: str, draft: str) -> None:
        """Counts one call of the summary model."""
        self.summary_in_tokens += count_tokens(prompt)
        self.summary_out_tokens += count_tokens(draft)

    @property
    def unchanged_share(self) -> float:
        """The share of the sent tokens that are an unchanged prefix of the previous call."""
        return self.unchanged_tokens / max(1, self.sent_tokens)

    @property
    def costs(self) -> Costs:
        """Costs in input tokens: with a cache, with a cache and a small summary model, without a cache."""
        fresh = self.sent_tokens - self.unchanged_tokens
        cached = fresh + CACHED_PRICE * self.unchanged_tokens + OUTPUT_PRICE * self.answer_tokens
        summaries = self.summary_in_tokens + OUTPUT_PRICE * self.summary_out_tokens
        plain = self.sent_tokens + OUTPUT_PRICE * self.answer_tokens
        return cached + summaries, cached + SMALL_MODEL_PRICE * summaries, plain + summaries


def _unchanged(before: Sequence[str], now: Sequence[str]) -> int:
    tokens = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return tokens + count_tokens(commonprefix([old, new]))  # noqa: RUF071  # it compares characters here, not paths
        tokens += count_tokens(new)
    return tokens
