"""`make bench-store`: what a long session costs besides the model: time per turn, file sizes, opening.

    python -m bench.store [--turns 1000]

The chat model and the summariser run in this process, so the figures are those of the engine and the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from bench.report import verdict
from graph.model.summariser import ExtractiveSummariser
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.event import TurnFinished
from tests.fake.scripted_model import ScriptedChat, scripted_models

MAX_RATIO = 1.2
MAX_CHECKPOINT_BYTES = 1_000_000
MAX_BYTES_PER_CHAR = 6.0  # 0.5 of them for the full-text index
LONG = "long-session"
SHORT = "short-session-{}"
PAIRS = 60
PAIRS_PER_SESSION = 10
OPENINGS = 15
REST_SECONDS = 0.02  # lets the folds that follow a turn finish before the next one is timed


class SpeakingModel(ScriptedChat):
    """Answers each question with a few sentences at once; `seconds` is the time that it took itself."""

    _seconds: float = PrivateAttr(default=0.0)
    _count: int = PrivateAttr(default=0)

    @property
    def seconds(self) -> float:
        return self._seconds

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        began = time.perf_counter()
        self._count += 1
        pieces = [ChatGenerationChunk(message=AIMessageChunk(content=word)) for word in _answer(self._count).split("|")]
        end = AIMessageChunk(content="", response_metadata={"finish_reason": "stop"})
        self._seconds += time.perf_counter() - began
        for piece in pieces:
            yield piece
            await asyncio.sleep(0)
        yield ChatGenerationChunk(message=end)


class Talk:
    """Runs turns in sessions of a service and measures their time outside the model.

    Attributes:
        text: All questions and answers.
    """

    def __init__(self, service: ChatService, model: SpeakingModel) -> None:
        self._service = service
        self._model = model
        self._counts: dict[str, int] = {}
        self.text: list[str] = []

    def turn(self, session_id: str) -> float:
        """Runs the session's next turn; returns the seconds from sending to its last event, without the model's."""
        number = self._counts[session_id] = self._counts.get(session_id, 0) + 1
        question = _question(number)
        model_seconds = self._model.seconds
        began = time.perf_counter()
        self._service.turns.send(session_id, question, message_id=f"user-{session_id}-{number}")
        ending = list(self._service.turns.follow(session_id, timeout_seconds=60))[-1]
        seconds = time.perf_counter() - began - (self._model.seconds - model_seconds)
        if not isinstance(ending, TurnFinished):
            sys.exit(f"turn {number} ended as {type(ending).__name__}")
        self.text += [question, ending.text]
        time.sleep(REST_SECONDS)
        return seconds

    def compare(self) -> tuple[float, float]:
        """Returns the median times of early turns of fresh sessions and of the last turns of the long one.

        The two alternate, so that other load on the machine slows both alike.
        """
        early, late = [], []
        for session in range(PAIRS // PAIRS_PER_SESSION):
            fresh = SHORT.format(session)
            for _ in range(4):
                self.turn(fresh)
            for _ in range(PAIRS_PER_SESSION):
                early.append(self.turn(fresh))
                late.append(self.turn(LONG))
        return median(early), median(late)

    def opening(self, session_id: str) -> float:
        """Returns the median time of the reads that opening a session on the page takes."""
        seconds = []
        for _ in range(OPENINGS):
            began = time.perf_counter()
            self._service.sessions.get(session_id)
            self._service.turns.transcript(session_id, last=30)
            self._service.folds.records(session_id, last=30)
            self._service.folds.statistics(session_id)
            self._service.folds.gauge(session_id)
            seconds.append(time.perf_counter() - began)
        return median(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.store")
    parser.add_argument("--turns", type=int, default=1_000)
    turns = parser.parse_args().turns
    with tempfile.TemporaryDirectory(prefix="turnfold-bench-") as folder:
        return _run(Path(folder), turns)


def _run(folder: Path, turns: int) -> int:
    settings = Settings(
        _env_file=None,
        openai_api_key=None,
        openai_base_url=None,
        turnfold_data_dir=folder / "data",
        model_window_tokens=128_000,
        turns_per_minute=1_000_000,
    )
    model = SpeakingModel()
    with open_service(settings, models=scripted_models(model, ExtractiveSummariser())) as service:
        talk = Talk(service, model)
        for _ in range(turns - PAIRS):
            talk.turn(LONG)
        early, late = talk.compare()
        checkpoint_bytes = _size(settings.checkpoint_path)
        opening, short_opening = talk.opening(LONG), talk.opening(SHORT.format(0))
        sums = service.folds.statistics(LONG)
    archive_bytes = _size(settings.database_path)  # the closed database has merged its write-ahead log
    text = "".join(talk.text)
    ratio, bytes_per_char = late / early, archive_bytes / len(text)
    print(f"turns                      {turns:>8}")
    print(f"active records             {sums.record_count:>8}  over {sums.folded_turn_count} turns")
    print(f"time per turn, turn ~10    {_ms(early)}  median of turns 5-14 of fresh sessions")
    print(f"time per turn, turn ~{turns:<5} {_ms(late)}  median of the last {PAIRS}, each beside one of those")
    print(f"archive file               {archive_bytes / 1e6:>8.2f}  MB for {len(text) / 1e6:.2f} million characters")
    print(f"                           {archive_bytes / len(text.encode()):>8.2f}  times the bytes of that text")
    print(f"opening it                 {_ms(opening)}  {opening / short_opening:.2f} times that of 14 turns")
    megabytes, most = checkpoint_bytes / 1e6, MAX_CHECKPOINT_BYTES / 1e6
    return verdict(
        [
            (ratio <= MAX_RATIO, f"ratio of the times per turn {ratio:.2f} (at most {MAX_RATIO})"),
            (megabytes <= most, f"checkpoint file {megabytes:.2f} MB (at most {most:.0f})"),
            (
                bytes_per_char <= MAX_BYTES_PER_CHAR,
                f"archive file / its text {bytes_per_char:.2f} bytes a character (at most {MAX_BYTES_PER_CHAR:.1f})",
            ),
        ]
    )


def _size(path: Path) -> int:
    """Returns the bytes of a database with its write-ahead log."""
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:7.1f} ms"


def _question(number: int) -> str:
    return (
        f"{number}번째 안건입니다. {number % 12 + 1}월 {number % 28 + 1}일 회의에서 서버 이전 예산을 "
        f"{number}20만 원으로 정했고, 담당자는 김민수입니다. Ticket OPS-{number} tracks the rollout; "
        "데이터베이스를 먼저 복제한 뒤 트래픽을 옮깁니다."
    )


def _answer(number: int) -> str:
    return (
        f"{number}번째 안건을 정리하겠습니다. |예산은 {number}20만 원이며 티켓은 OPS-{number}입니다. |"
        "먼저 데이터베이스를 복제하고, 복제가 따라잡은 것을 확인한 다음 읽기 트래픽부터 옮기는 순서를 권합니다. |"
        "쓰기 트래픽은 점검 시간에 옮기고, 되돌릴 길을 한 주 동안 남겨 두는 편이 안전합니다. |"
        "The rollout should be watched for an hour after each step, and the old server stays on standby."
    )


if __name__ == "__main__":
    sys.exit(main())
