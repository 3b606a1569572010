"""A provider with a prefix cache: reports as cached what its requests share with earlier ones, in exact tokens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from langchain_core.tools import BaseTool, StructuredTool

from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_responder import answer_body, instruction_at, kind_of
from tests.fake.openai_server import FakeOpenAI

ALWAYS: Final = {"fold_in_place": "always"}


@cache
def encoding() -> Any:  # noqa: ANN401  # the library has no types
    from bpe_openai import get_encoding  # noqa: PLC0415  # a second of its tables that few tests need

    return get_encoding("o200k_base")


@cache
def count(words: str) -> int:
    return len(encoding().encode_ordinary(words))


def parts_of(body: Body) -> list[str]:
    """What the model reads, in its order: the tools, then each message."""
    return [json.dumps(part, ensure_ascii=False) for part in [body.get("tools", []), *body["messages"]]]


def shared_tokens(before: Body, after: Body) -> int:
    """How many tokens at the beginning of a request are those of an earlier one."""
    tokens = 0
    for old, new in zip(parts_of(before), parts_of(after), strict=False):
        if old != new:
            return tokens + count(os.path.commonprefix([old, new]))  # noqa: RUF071  # it compares characters here, not paths
        tokens += count(new)
    return tokens


def all_tokens(body: Body) -> int:
    return sum(map(count, parts_of(body)))


class CachingResponder:
    """Answers with about `answer_chars` characters, summaries as the default responder; has a prompt cache."""

    def __init__(self, answer_chars: int = 1_200, reply: Callable[[Body], Reply | None] = lambda _: None) -> None:
        self._answer_chars = answer_chars
        self._reply = reply
        self._seen: list[Body] = []

    def __call__(self, body: Body) -> Reply:
        cached = max((shared_tokens(before, body) for before in self._seen), default=0)
        self._seen.append(body)
        if (reply := self._reply(body)) is not None:
            return reply
        answer = written_by(answer_body(body))
        if kind_of(body) == "chat":
            answer += " ".join(_sentences(len(self._seen)))
            answer = answer[: self._answer_chars]
        usage = {"prompt_tokens": all_tokens(body), "completion_tokens": count(answer)}
        details = {"prompt_tokens_details": {"cached_tokens": cached}}
        return text(answer, usage={**usage, "total_tokens": sum(usage.values()), **details})


def written_by(reply: Reply) -> str:
    choices = [choice for event in reply.events for choice in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def _sentences(seed: int) -> Sequence[str]:
    return [
        f"{seed}-{number}번 항목은 담당자가 {number}일까지 살펴보고 다시 알리기로 했습니다." for number in range(60)
    ]


def lookup(chars: int) -> BaseTool:
    """A tool whose result has so many characters."""

    def look(case: str) -> str:
        rows = (f"{case} 기록 {number}: 담당 팀이 {number % 28 + 1}일에 점검을 마쳤습니다." for number in range(1_000))
        return "\n".join(rows)[:chars]

    return StructuredTool.from_function(look, name="look_up", description="Looks up the records of a case.")


def is_in_place(body: Body) -> bool:
    return instruction_at(body) is not None


def before_summaries(server: FakeOpenAI) -> Iterator[tuple[Body, Body]]:
    """Each request for a summary with the chat request before it."""
    last: Body = {}
    for exchange in list(server.exchanges):
        if exchange.kind == "summary":
            yield last, exchange.body
        else:
            last = exchange.body
