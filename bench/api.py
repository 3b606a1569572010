"""`make bench-api`: what the HTTP API adds to an answer, and what 500 of its open streams leave of the page.

python -m bench.api [--samples 50] [--streams 500] [--looks 5]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from anyio.from_thread import start_blocking_portal
from openai import AsyncOpenAI, OpenAI
from playwright.sync_api import Browser

from bench.browser import ENDING, WINDOW, Chat, Wire, opened_browser
from bench.endpoint import MODEL, SLOW_SECONDS, Endpoint, ends_of, serving
from bench.report import Requirement, verdict
from bench.server import model_settings, started

MOST_MORE = 40.0  # milliseconds
MOST_MORE_BESIDE = 1_000.0  # a user who waits for longer notices that the page hangs
HISTORY = 100
_TOKENS = [f"bench-token-number-{number}" for number in range(8)]  # one may have 64 answers under way
# A user reads before the next message; until then the server has ended the turn, and has made its folds.
_PAUSE_SECONDS = 0.3
_PATIENCE_SECONDS = 300.0

Message = dict[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.api")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--looks", type=int, default=5)
    options = parser.parse_args()
    with ExitStack() as stack:
        return verdict(_measure(stack, options.samples, options.streams, options.looks))


def _measure(stack: ExitStack, samples: int, streams: int, looks: int) -> Iterator[Requirement]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnfold-bench-")))
    upstream = stack.enter_context(serving())
    settings = {
        **model_settings(upstream.url),
        "MODEL_SILENCE_SECONDS": "3600",
        "CHAT_API_TOKENS": ",".join(f"bench{number}:local:{token}" for number, token in enumerate(_TOKENS)),
        "CONCURRENT_TURNS": "1000",
    }
    port = stack.enter_context(started(folder, settings)).port
    url = f"http://127.0.0.1:{port}/v1"
    yield from _compare_first_words(upstream.url, url, samples)
    wire = Wire(port)
    stack.callback(wire.close)
    yield from _compare_pages(stack.enter_context(opened_browser()), wire, url, upstream, streams, looks)


class Program:
    """A program over an endpoint, which times the first words of its answers."""

    def __init__(self, url: str, key: str) -> None:
        self._client = OpenAI(base_url=url, api_key=key, max_retries=0)

    def ask(self, messages: Sequence[Message]) -> tuple[str, float]:
        """Returns the answer, and the milliseconds until its first words."""
        pieces, first_words = [], 0.0
        began = time.perf_counter()
        with self._client.chat.completions.create(model=MODEL, messages=messages, stream=True) as stream:
            for chunk in stream:
                if chunk.choices and (piece := chunk.choices[0].delta.content):
                    first_words = first_words or (time.perf_counter() - began) * 1_000
                    pieces.append(piece)
        return "".join(pieces), first_words

    def chat(self, name: str, turns: int) -> list[Message]:
        """Holds a chat; returns all that was said."""
        said: list[Message] = []
        for turn in range(turns):
            said.append(_question(f"now-{name}-{turn} 다음 단계와 남은 예산을 정리해 주세요."))
            said.append({"role": "assistant", "content": self.ask(said)[0]})
        return said


def _compare_first_words(upstream_url: str, api_url: str, samples: int) -> Iterator[Requirement]:
    """Compares the first words through the API with those of the same request sent straight to the endpoint."""
    straight, api = Program(upstream_url, "sk-bench"), Program(api_url, _TOKENS[0])
    chats = (api.chat(f"s{number}", 1) for number in range(samples + 1))
    yield _first_words(f"turn 2 of {samples} chats", straight, api, chats)
    said = api.chat("long", HISTORY // 2)
    title = f"a chat of {HISTORY} to {HISTORY + 2 * samples} messages"
    yield _first_words(title, straight, api, (said for _ in range(samples + 1)))


def _first_words(title: str, straight: Program, api: Program, chats: Iterable[list[Message]]) -> Requirement:
    """Asks the next question of each chat on both ways, each first every other time, and adds it to what was said."""
    taken: dict[Program, list[float]] = {straight: [], api: []}
    for number, said in enumerate(chats):
        answers = {}
        said.append(_question(f"now-t{number} 지금까지의 일을 알려 주세요."))
        for program in (straight, api) if number % 2 else (api, straight):
            time.sleep(_PAUSE_SECONDS)
            answers[program], first_words = program.ask(said)
            taken[program].append(first_words)
        said.append({"role": "assistant", "content": answers[api]})
    # The first one makes connections and reads modules.
    without, through = (median(taken[program][1:]) for program in (straight, api))
    words = f"{title:30} straight {without:6.1f} ms   API {through:6.1f} ms   more by {through - without:5.1f} ms"
    return through - without <= MOST_MORE, f"{words} (at most {MOST_MORE:.0f})"


def _question(text: str) -> Message:
    return {"role": "user", "content": text}


def _compare_pages(
    browser: Browser, wire: Wire, url: str, upstream: Endpoint, count: int, looks: int
) -> Iterator[Requirement]:
    """Compares what a user sees without the streams and beside them, then has them end."""
    pace = f"each with a word every {SLOW_SECONDS:g} s"
    print(f"the page beside {count} open streams, {pace}, median of {looks}", flush=True)
    _look(browser, wire, "first", 1)
    alone = _look(browser, wire, "alone", looks)
    clients = [AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=600) for key in _TOKENS]
    started: set[str] = set()
    began = time.perf_counter()
    with start_blocking_portal() as portal:
        names = [f"slow-{number}" for number in range(count)]
        streams = [
            portal.start_task_soon(_read, clients[number % len(clients)], name, started)
            for number, name in enumerate(names)
        ]
        _wait_for_words(streams, started)
        print(f"  all have their first words after {time.perf_counter() - began:.1f} s", flush=True)
        beside = _look(browser, wire, "beside", looks)
        upstream.end_slow()
        began = time.perf_counter()
        whole = sum(stream.result(_PATIENCE_SECONDS) for stream in streams)
    yield (
        whole == count,
        f"{whole} of {count} had all of their answer {time.perf_counter() - began:.1f} s after its end",
    )
    for name, without, with_streams in zip(("opened", "bubble", "words", "settled"), alone, beside, strict=True):
        more = with_streams - without
        words = f"{name:8} alone {without:6.0f} ms   beside {with_streams:6.0f} ms   more by {more:6.0f} ms"
        yield more <= MOST_MORE_BESIDE, f"{words} (at most {MOST_MORE_BESIDE:.0f})"


async def _read(client: AsyncOpenAI, name: str, started: set[str]) -> bool:
    """Reads a stream to its end; returns whether all of its answer came."""
    pieces: list[str] = []
    reason = None
    stream = await client.chat.completions.create(
        model=MODEL, messages=[_question(f"{name} Tell me all of it.")], stream=True
    )
    async for chunk in stream:
        for choice in chunk.choices:
            if piece := choice.delta.content:
                started.add(name)
                pieces.append(piece)
            reason = choice.finish_reason
    begin, end = ends_of(name)
    text = "".join(pieces)
    return reason == "stop" and text.startswith(begin) and end in text


def _wait_for_words(streams: Sequence[Future[bool]], started: set[str]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while len(started) < len(streams):
        for stream in streams:
            if stream.done():
                stream.result()  # raises what it broke off by
        if time.monotonic() > deadline:
            sys.exit(f"{len(streams) - len(started)} of {len(streams)} streams have no words yet")
        time.sleep(0.1)


def _look(browser: Browser, wire: Wire, name: str, samples: int) -> list[float]:
    """Opens the page anew for each sample and sends a message; returns the medians in milliseconds."""
    seen = []
    for number in range(samples):
        context = browser.new_context(**WINDOW)
        began = time.perf_counter()
        chat = Chat(context, wire, ending=ENDING)
        opened = (time.perf_counter() - began) * 1_000
        sample = chat.ask(f"ask-{name}{number} 지금까지의 일을 알려 주세요.", 1)
        seen.append((opened, sample.bubble, sample.words, sample.settled))
        context.close()
    return [median(column) for column in zip(*seen, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
