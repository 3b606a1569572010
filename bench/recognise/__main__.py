"""Measures how long it takes to find a session by the history that a program sends; checks the bound.

    python -m bench.recognise [--messages 500] [--chats 200]

The tables are real, and hold as many other chats of the same program as it says.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage

from graph.server.settings import Settings
from graph.service import open_service
from graph.service.chat_service import Engine
from graph.service.completions import Recognition
from graph.value.client import ClientMessage, ClientOptions, ClientRequest

MAX_SECONDS: Final = 0.005
_REPEATS: Final = 50
_OPTIONS: Final = ClientOptions("bench")
_QUESTION: Final = "서버 이전은 언제 하기로 했습니까? 담당자와 예산도 알려 주세요. " * 10
_ANSWER: Final = "The move is planned for the second week of October, and the database is copied first. " * 10


class Program:
    """A program that resends its whole chat, and is answered at once."""

    def __init__(self, engine: Engine) -> None:
        self._access = engine.access
        self._recognition = Recognition(engine.access, engine.stores.program, engine.choices.models)

    def chat(self, name: str, turns: int) -> list[ClientMessage]:
        """Holds a chat; returns all that was said."""
        said: list[ClientMessage] = []
        session_id = uuid.uuid4().hex
        stores, owner = self._access.stores, self._access.owner
        stores.sessions.create(session_id, owner, compression_rate=0.3, strategy="")
        lease = stores.leases.acquire(session_id)
        for number in range(turns):
            said.append(ClientMessage("user", f"{name} {number}: {_QUESTION}"))
            anchor = self._recognition.decide(ClientRequest(tuple(said), _OPTIONS)).anchor
            question = HumanMessage(said[-1].text, id=f"user-{number}")
            stores.turns.begin(
                lease, owner=owner, message=question, model="", is_casual=False, client=_OPTIONS.name, anchor=anchor
            )
            said.append(ClientMessage("assistant", f"{name} {number}: {_ANSWER}"))
            answer = AIMessage(said[-1].text, id=f"answer-{number}")
            stores.archive.append(lease, owner=owner, turn=number + 1, attempt=1, messages=[answer])
            ended = None if anchor is None else anchor.ended(said[-1].text)
            stores.turns.finish(lease, number + 1, "finished", anchor=ended)
        stores.leases.release(lease)
        return said

    def time(self, kind: str, said: Sequence[ClientMessage]) -> float:
        """Returns the median of the seconds that it takes to recognise this, and sees that it's recognised."""
        request = ClientRequest((*said, ClientMessage("user", "and then?")), _OPTIONS)
        seconds = []
        for _ in range(_REPEATS):
            began = time.perf_counter()
            decision = self._recognition.decide(request)
            seconds.append(time.perf_counter() - began)
            if decision.kind != kind:
                sys.exit(f"decided {decision.kind} instead of {kind}")
        return statistics.median(seconds)


def main() -> int:
    """Runs the bench and returns 0 if the bound is met."""
    parser = argparse.ArgumentParser(description="Measures the recognition of a program's request.")
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--chats", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="turnfold-bench-") as folder:
        return _run(Path(folder), arguments.messages, arguments.chats)


def _run(folder: Path, messages: int, chats: int) -> int:
    settings = Settings(  # type: ignore[call-arg]  # the base class's own argument
        _env_file=None, openai_api_key=None, openai_base_url=None, turnfold_data_dir=folder / "data"
    )
    with open_service(settings) as service:
        program = Program(service._engine)  # noqa: SLF001  # the service has no method that only recognises
        for number in range(chats):
            program.chat(f"chat {number}", 2)
        said = program.chat("the long one", messages // 2)
        figures = {
            "whole history": program.time("append", said),
            "cut to its last 20 messages": program.time("append", said[-20:]),
            "edited in the middle": program.time("fork", said[: messages // 4 * 2]),
            "never seen": program.time("new", [ClientMessage(part.role, f"other {part.text}") for part in said]),
        }
    print(f"{messages} messages, {sum(len(part.text) for part in said):,} characters, {chats} other chats")
    for name, seconds in figures.items():
        print(f"{name:<30}{seconds * 1000:>8.2f} ms, median of {_REPEATS}")
    is_met = figures["whole history"] <= MAX_SECONDS
    print("OK" if is_met else "FAILED", f"whole history: at most {MAX_SECONDS * 1000:.0f} ms")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
