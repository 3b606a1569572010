"""An OpenAI-compatible endpoint in a process of its own, whose answers say how long it took for them itself.

    python -m bench.endpoint 0.0     # seconds of a summary; prints its port

The first word of a message tells how it's answered: see `PACES`. Anything else asks for a summary, and gets one of
nearly the most characters it names, with the names of its turns and no figure of its own: it passes the product's
checks. An answer begins with `begin-<word>-<milliseconds>` and ends with `end-<word>-<milliseconds>`.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL = "bench-model"
SLOW_SECONDS = 2.0
_SENTENCE = "회의는 10월 14일이며 예산은 1,200만 원입니다. The plan stays as it is, and the tests come first. "
ANSWER = "\n\n".join([_SENTENCE * 4] * 4)
_MOST_CHARS = re.compile(r"많아도 ([0-9]+)자")
_NAME = re.compile(r"\b(?:begin-|end-)?(?:now|word|ask|endless|load)-[\w-]+")
_SUMMARY_SHARE = 0.9
_WHO = ("일정", "예산", "개발", "디자인", "시험", "문서", "운영", "고객", "보안", "품질", "교육", "번역")
_WHAT = (
    "담당은 10월 14일 회의까지 지금 계획을 확인합니다.",
    "담당은 예산 1,200만 원 안에서 비용을 맞춥니다.",
    "담당은 시험을 먼저 마치고 다음 단계를 정리합니다.",
    "담당은 계획이 그대로인 것을 팀에 알립니다.",
)
_SUMMARY = [f"- {who} {what}" for what in _WHAT for who in _WHO]


class Pace(NamedTuple):
    """Seconds before the first piece and between two, and the pieces."""

    first: float
    between: float
    pieces: list[str]


def _pieces(text: str, count: int) -> list[str]:
    size = -(-len(text) // count)
    return [text[start : start + size] for start in range(0, len(text), size)]


PACES = {
    "now-": Pace(0.0, 0.0, _pieces(ANSWER, 100)),
    "word-": Pace(0.0, 0.005, _pieces(ANSWER, 100)),  # each comes alone, as from a model
    "ask-": Pace(0.3, 0.03, _pieces(ANSWER, 100)),
    "endless-": Pace(0.3, 0.03, _pieces(ANSWER, 100) * 10),
    "load-": Pace(0.5, 0.05, ["회의는 10월 14일이며 the tests come first. "] * 60),
    "slow-": Pace(0.0, SLOW_SECONDS, []),  # a word each time, until `Endpoint.end_slow`
}
_HEAD: dict[str, Any] = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 0, "model": MODEL}
_USAGE = {"prompt_tokens": 100, "completion_tokens": 500, "total_tokens": 600}


def ends_of(text: str) -> tuple[str, str]:
    """Returns what the first and the last word of the answer to a message begin with."""
    name = text.split(maxsplit=1)[0]
    return f"begin-{name}-", f"end-{name}-"


class Endpoint(NamedTuple):
    """The endpoint as it serves, by its base URL."""

    url: str

    def end_slow(self) -> None:
        """Ends all slow answers."""
        httpx2.post(f"{self.url}/end", trust_env=False).raise_for_status()


@contextmanager
def serving(*, summary_seconds: float = 0.0) -> Iterator[Endpoint]:
    """Serves while the block runs."""
    command = [sys.executable, "-m", "bench.endpoint", str(summary_seconds)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Endpoint(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
        finally:
            process.kill()


def main(summary_seconds: float) -> None:
    """Serves until the process is ended."""
    may_end = asyncio.Event()

    async def list_models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def end_slow(_: Request) -> Response:
        may_end.set()
        return Response()

    async def complete(request: Request) -> Response:
        came_at = time.perf_counter()
        body = await request.json()
        word = str(body["messages"][-1]["content"]).split(maxsplit=1)[0]
        pace = next((pace for prefix, pace in PACES.items() if word.startswith(prefix)), None)
        if pace is not None:
            return StreamingResponse(events(word, pace, came_at), media_type="text/event-stream")
        request = " ".join(str(message["content"]) for message in body["messages"])
        summary = summary_for(request, int((_MOST_CHARS.findall(request) or ["300"])[-1]))
        await asyncio.sleep(summary_seconds)
        if body.get("stream"):
            return Response(_event(summary) + _END, media_type="text/event-stream")
        choice = {"index": 0, "message": {"role": "assistant", "content": summary}, "finish_reason": "stop"}
        return JSONResponse({**_HEAD, "choices": [choice], "usage": _USAGE})

    async def events(word: str, pace: Pace, came_at: float) -> AsyncIterator[bytes]:
        begin, end = ends_of(word)
        await asyncio.sleep(came_at + pace.first - time.perf_counter())
        yield _event(f"{begin}{_milliseconds_since(came_at)} ")
        for number, piece in enumerate(pace.pieces):
            yield _event(piece)
            await asyncio.sleep(came_at + pace.first + (number + 1) * pace.between - time.perf_counter())
        while not pace.pieces and not may_end.is_set():
            try:
                await asyncio.wait_for(may_end.wait(), pace.between)
            except TimeoutError:
                yield _event(" word")
        yield _event(f" {end}{_milliseconds_since(came_at)}")
        yield _END

    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    print(listener.getsockname()[1], flush=True)
    routes = [
        Route("/v1/models", list_models),
        Route("/v1/end", end_slow, methods=["POST"]),
        Route("/v1/chat/completions", complete, methods=["POST"]),
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off")
    uvicorn.Server(config).run([listener])


def summary_for(source: str, most_chars: int) -> str:
    """Returns a summary of nearly the most characters."""
    longest = most_chars * _SUMMARY_SHARE
    lines = ["- 요청과 답: " + ", ".join(dict.fromkeys(_NAME.findall(source))), *_SUMMARY]
    lengths = accumulate(len(line) + 1 for line in lines)
    return "\n".join(line for line, chars in zip(lines, lengths, strict=True) if chars <= longest)


def _milliseconds_since(came_at: float) -> int:
    return round((time.perf_counter() - came_at) * 1_000)


def _event(text: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": reason}
    event = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice], "usage": _USAGE}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


_END = _event("", "stop") + b"data: [DONE]\n\n"

if __name__ == "__main__":
    main(float(sys.argv[1]))
