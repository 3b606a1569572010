"""The process that chats until it is killed; reports its attempts, what was acknowledged and what it was shown."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.error import NotFoundError, StoreError, TurnfoldError
from graph.value.event import Event, TurnFailed, TurnFinished
from graph.value.view import TurnOptions, Word
from tests.fake.mcp_servers import WRITE
from tests.fault.location import url_of
from tests.fault.mark import Marker
from tests.fault.model import ASK_SIGN, TOOL_SIGN, WritingServers, working_models, working_tools
from tests.fault.store import marked_stores

_PATIENCE_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.05
_WORDS: Final[Sequence[Word]] = ("once", "once", "always", "no")
CALLS: Final = "calls.txt"


@dataclass(frozen=True)
class Pending:
    """A message that was tried before a kill; whether it was acknowledged, its sender may not know."""

    session_id: str
    message_id: str


def fault_settings(folder: Path, **changes: object) -> Settings:
    """Settings of a server that waits for nothing long, so that many kills fit into a minute."""
    values: dict[str, object] = {
        "turnfold_data_dir": folder,
        "chat_database_url": url_of(folder),
        "model_window_tokens": 100_000,
        "fold_wait_seconds": 0.2,
        "fold_deadline_seconds": 1,
        "turns_per_minute": 1_000_000,
        "concurrent_turns": 1_000,
    }
    return Settings(_env_file=None, **{**values, **changes})  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values


def question(message_id: str) -> str:
    """A message that names its id; every other one has a tool called, and half of these one that asks first."""
    number = int(message_id.rpartition("-")[2])
    sign = {1: f" {TOOL_SIGN}", 3: f" {ASK_SIGN}"}.get(number % 4, "")
    return (
        f"{message_id}{sign}: 서버 이전은 10월 3일에 하기로 했고 담당자는 김민수입니다. 예산은 120만 원이며 "
        "데이터베이스를 먼저 복제한 뒤에 트래픽을 옮기고, 이틀 동안은 옛 서버도 켜 두려고 합니다. "
        "빠진 점이 있는지, 순서를 바꿀 곳이 있는지, 그리고 무엇을 먼저 알려야 하는지 하나씩 설명해 주세요."
    )


def chat(
    folder: Path, name: str, sessions: Sequence[str], pending: Pending | None, marker: Marker, *, seed: int
) -> None:
    """Sends the pending message again, then chats without end, in one session at a time.

    What is refused is sent again until it is taken, under its id, as a page does.
    """
    draw = random.Random(seed)  # noqa: S311  # a test's dice
    with open_service(
        fault_settings(folder),
        models=working_models(marker),
        tools=working_tools(marker),
        stores=marked_stores(marker),
        mcp=lambda _: WritingServers(folder / CALLS, marker),
    ) as service:
        if pending is not None:
            say(service, pending, marker, draw)
        for number in count(1):
            message = Pending(draw.choice(sessions), f"{name}-{number}")
            while not say(service, message, marker, draw):
                time.sleep(_PAUSE_SECONDS)


def say(service: ChatService, message: Pending, marker: Marker, draw: random.Random) -> bool:
    """Sends one message and follows its turn to the end; False if it was refused."""
    marker.say("try", message.session_id, message.message_id)
    options = TurnOptions(compression_rate=draw.randrange(10, 51) / 100, mcp_tools=(WRITE.offered,))
    try:
        with marker.phase("accept"):
            number = service.turns.send(
                message.session_id,
                question(message.message_id),
                message_id=message.message_id,
                options=options,
                wait_seconds=_PATIENCE_SECONDS,
            )
        marker.say("ack", message.session_id, message.message_id, number)
    except TurnfoldError as error:
        marker.say("refused", message.session_id, message.message_id, error.code)
        return False
    is_over = False
    while not is_over:
        for event in _events(service, message.session_id):
            if isinstance(event, TurnFinished) and event.turn == number:
                marker.say("shown", message.session_id, number, event.message_id)
            elif isinstance(event, TurnFailed) and event.turn == number:
                marker.say("failed", message.session_id, number, event.code)
        is_over = not _has_answered(service, message.session_id, marker, draw)
    return True


def _has_answered(service: ChatService, session_id: str, marker: Marker, draw: random.Random) -> bool:
    """Gives the user's word if it is waited for, maybe since before a kill; False if nothing goes on by it."""
    try:
        with marker.phase("word"):
            pending = service.mcp.pending(session_id)
            time.sleep(_PAUSE_SECONDS * bool(pending))
            words: dict[str, Word] = {call.call_id: draw.choice(_WORDS) for call in pending}
            if pending:
                service.mcp.answer(session_id, words)
    except TurnfoldError:  # somebody else has answered, or gone on
        return False
    return bool(pending)


def _events(service: ChatService, session_id: str) -> Iterable[Event]:
    """Follows the newest turn; none of its events are known if it ran in a process that was killed."""
    while True:
        try:
            return service.turns.follow(session_id, timeout_seconds=_PATIENCE_SECONDS)
        except NotFoundError:
            return ()
        except StoreError:
            time.sleep(_PAUSE_SECONDS)
