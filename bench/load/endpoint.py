"""An OpenAI-compatible endpoint in a process of its own, whose answers say how long it took for them itself.

    python -m bench.load.endpoint     # prints its port

What is above that is the product's own time, however busy the machine is.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bench.page.app import PRODUCT
from bench.page.endpoint import SUMMARY

MODEL: Final = "bench-model"
FIRST_SECONDS: Final = 0.5
PIECES: Final = 60
PIECE_SECONDS: Final = 0.05
_SUMMARY_SECONDS: Final = 1.0
_PIECE: Final = "회의는 10월 14일이며 the tests come first. "
_HEAD: Final[dict[str, Any]] = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 0, "model": MODEL}
_USAGE: Final = {"prompt_tokens": 100, "completion_tokens": 500, "total_tokens": 600}


@contextmanager
def serving() -> Iterator[str]:
    """Serves while the block runs; yields the base URL."""
    process = subprocess.Popen([sys.executable, "-m", __name__], cwd=PRODUCT.parent, stdout=subprocess.PIPE, text=True)  # noqa: S603  # this module
    try:
        assert process.stdout is not None  # noqa: S101  # it is a pipe
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Serves until the process is ended."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    print(listener.getsockname()[1], flush=True)
    routes = [Route("/v1/models", _list_models), Route("/v1/chat/completions", _answer, methods=["POST"])]
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off")
    uvicorn.Server(config).run([listener])


def _list_models(_request: Request) -> JSONResponse:
    return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})


async def _answer(request: Request) -> Response:
    """Streams the answer; a request that asks for no stream wants a summary."""
    came_at = time.perf_counter()
    body = await request.json()
    if body.get("stream"):
        # The first word of the question is its name.
        name = str(body["messages"][-1]["content"]).split(maxsplit=1)[0]
        return StreamingResponse(_events(name, came_at), media_type="text/event-stream")
    await asyncio.sleep(_SUMMARY_SECONDS)
    choice = {"index": 0, "message": {"role": "assistant", "content": SUMMARY}, "finish_reason": "stop"}
    return JSONResponse({**_HEAD, "choices": [choice], "usage": _USAGE})


async def _events(name: str, came_at: float) -> AsyncIterator[bytes]:
    for number in range(PIECES):
        await asyncio.sleep(came_at + FIRST_SECONDS + number * PIECE_SECONDS - time.perf_counter())
        piece = _PIECE if number else f"begin-{name}-{_milliseconds_since(came_at)} "
        yield _event({"content": piece}, None)
    yield _event({"content": f"end-{name}-{_milliseconds_since(came_at)}"}, None)
    yield _event({}, "stop") + b"data: [DONE]\n\n"


def _milliseconds_since(came_at: float) -> int:
    return round((time.perf_counter() - came_at) * 1_000)


def _event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    event = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice], "usage": _USAGE}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


if __name__ == "__main__":
    main()
