"""Measures what a long session costs besides the model: time per turn, file sizes, opening; checks the design's bounds.

    python -m bench.store [--turns 1000] [--data DIR]

The chat model and the summariser run in this process, so the figures are those of the engine and the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.error import InternalError
from graph.value.event import TurnFinished

MAX_RATIO: Final = 1.2
MAX_CHECKPOINT_BYTES: Final = 1_000_000
MAX_BYTES_PER_CHAR: Final = 6.0  # 0.5 of them for the full-text index
_SESSION: Final = "long-session"
_SHORT: Final = "short-session-{}"
_PAIRS: Final = 60
_PAIRS_PER_SESSION: Final = 10
_OPENINGS: Final = 15
_REST_SECONDS: Final = 0.02  # lets the folds that follow a turn finish before the next one is timed


class SpeakingModel(BaseChatModel):
    """Answers each question with a few sentences at once; `seconds` is the time that it took itself."""

    _seconds: float = PrivateAttr(default=0.0)
    _count: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "speaking"

    @property
    def seconds(self) -> float:
        """Total time spent in this model."""
        return self._seconds

    def bind_tools(self, *_: Any, **__: Any) -> SpeakingModel:  # noqa: ANN401  # it calls none
        """Returns the model unchanged."""
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401  # the caller always streams
        raise InternalError

    async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:  # noqa: ANN401  # the input doesn't matter
        began = time.perf_counter()
        self._count += 1
        pieces = [ChatGenerationChunk(message=AIMessageChunk(content=word)) for word in _answer(self._count).split("|")]
        end = AIMessageChunk(content="", response_metadata={"finish_reason": "stop"})
        self._seconds += time.perf_counter() - began
        for piece in pieces:
            yield piece
            await asyncio.sleep(0)
        yield ChatGenerationChunk(message=end)


class BenchModels(ChatModels):
    """One `SpeakingModel` for every name; summaries are extractive, as without an endpoint."""

    def __init__(self, settings: Settings, caller: ModelCaller, model: SpeakingModel) -> None:
        super().__init__(settings, caller)
        self._model = model

    def chat(self, name: str) -> BaseChatModel:  # noqa: ARG002  # there's only one
        """Returns the model, whatever the name."""
        return self._model


def main() -> int:
    """Runs the bench and returns 0 if every figure is within the design's bounds."""
    parser = argparse.ArgumentParser(description="Measures one long session.")
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--data", type=Path, default=None, help="keep the files in this (empty) folder")
    arguments = parser.parse_args()
    if arguments.data is not None:
        return _run(arguments.data, arguments.turns)
    with tempfile.TemporaryDirectory(prefix="turnfold-bench-") as folder:
        return _run(Path(folder), arguments.turns)


def _run(folder: Path, turns: int) -> int:
    settings = Settings(  # type: ignore[call-arg]  # the base class's own argument
        _env_file=None,
        openai_api_key=None,
        openai_base_url=None,
        turnfold_data_dir=folder / "data",
        model_window_tokens=128_000,
        turns_per_minute=1_000_000,
    )
    model = SpeakingModel()
    with open_service(settings, models=_models(model)) as service:
        talk = Talk(service, model)
        for _ in range(turns - _PAIRS):
            talk.turn(_SESSION)
        early, late = _compare(talk)
        checkpoint_bytes = _size(settings.checkpoint_path)
        opening, short_opening = _time_opening(service, _SESSION), _time_opening(service, _SHORT.format(0))
        sums = service.folds.statistics(_SESSION)
        text_chars, text_bytes = talk.chars, talk.text_bytes
    archive_bytes = _size(settings.database_path)  # the closed database has merged its write-ahead log
    ratio, bytes_per_char = late / early, archive_bytes / text_chars
    print(f"turns                      {turns:>8}")
    print(f"active records             {sums.record_count:>8}  over {sums.folded_turn_count} turns")
    print(f"time per turn, turn ~10    {_ms(early)}  median of turns 5-14 of fresh sessions")
    print(f"time per turn, turn ~{turns:<5} {_ms(late)}  median of the last {_PAIRS}, each beside one of those")
    print(f"ratio                      {ratio:>8.2f}  at most {MAX_RATIO}")
    print(f"checkpoint file            {checkpoint_bytes / 1e6:>8.2f}  MB, at most {MAX_CHECKPOINT_BYTES / 1e6:.0f}")
    print(f"archive file               {archive_bytes / 1e6:>8.2f}  MB for {text_chars / 1e6:.2f} million characters")
    print(f"archive file / its text    {bytes_per_char:>8.2f}  bytes a character, at most {MAX_BYTES_PER_CHAR:.1f}")
    print(f"                           {archive_bytes / text_bytes:>8.2f}  times the bytes of that text")
    print(f"opening it                 {_ms(opening)}  {opening / short_opening:.2f} times that of 14 turns")
    faults = [
        *([f"a turn takes {ratio:.2f} times as long at the end"] if ratio > MAX_RATIO else []),
        *(["the checkpoint file is too large"] if checkpoint_bytes > MAX_CHECKPOINT_BYTES else []),
        *(["the archive file is too large beside its text"] if bytes_per_char > MAX_BYTES_PER_CHAR else []),
    ]
    print("verdict: " + ("; ".join(faults) if faults else "within bounds"))
    return 1 if faults else 0


class Talk:
    """Runs turns in sessions of a service and measures their time outside the model.

    Attributes:
        chars: Characters of all questions and answers.
        text_bytes: The same text in UTF-8.
    """

    def __init__(self, service: ChatService, model: SpeakingModel) -> None:
        self._service = service
        self._model = model
        self._counts: dict[str, int] = {}
        self.chars = 0
        self.text_bytes = 0

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
            msg = f"turn {number} ended as {type(ending).__name__}"
            raise SystemExit(msg)
        self.chars += len(question + ending.text)
        self.text_bytes += len((question + ending.text).encode())
        time.sleep(_REST_SECONDS)
        return seconds


def _compare(talk: Talk) -> tuple[float, float]:
    """Returns the median times of early turns of fresh sessions and of the last turns of the long one.

    The two alternate, so that other load on the machine slows both alike.
    """
    early, late = [], []
    for session in range(_PAIRS // _PAIRS_PER_SESSION):
        fresh = _SHORT.format(session)
        for _ in range(4):
            talk.turn(fresh)
        for _ in range(_PAIRS_PER_SESSION):
            early.append(talk.turn(fresh))
            late.append(talk.turn(_SESSION))
    return statistics.median(early), statistics.median(late)


def _time_opening(service: ChatService, session_id: str) -> float:
    """Returns the median time of the reads that opening a session on the page takes."""
    seconds = []
    for _ in range(_OPENINGS):
        began = time.perf_counter()
        service.sessions.get(session_id)
        service.turns.transcript(session_id, last=30)
        service.folds.records(session_id, last=30)
        service.folds.statistics(session_id)
        service.folds.gauge(session_id)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _models(model: SpeakingModel) -> Callable[[Settings], Any]:
    @contextmanager
    def opened(settings: Settings) -> Iterator[ChatModels]:
        with ModelCaller() as caller:
            yield BenchModels(settings, caller, model)

    return opened


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
