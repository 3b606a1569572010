"""Postgres stands still under two servers whose answers go on: what their clients have read must be kept."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import psycopg
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from graph.service import ChatService
from graph.value.error import LeaseLostError, NotFoundError
from graph.value.event import Event, TokenDelta, TurnFailed, TurnFinished, TurnStopped
from tests.fake.postgres import PostgresServer
from tests.fake.scripted_model import ScriptedAnswer
from tests.fault.check import Ledger, check_folder
from tests.fault.child import question
from tests.fault.location import put_elsewhere
from tests.fault.mark import Marker, Silent
from tests.fault.model import TOOL_SIGN, WorkingChat
from tests.fault.process import in_own_process, run_all
from tests.fault.scenario import serve

HEAD: Final = (
    "| Postgres stands still for | answers ended | told at the other server | characters read | of these missing |\n"
    "| --- | --- | --- | ---: | ---: |"
)
_SERVERS: Final = 2
_PIECES: Final = 40  # of an answer, before and behind a tool call together
_PATIENCE_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 0.1
_FINISHED: Final = "finished"
_LAST_EVENTS: Final = (TurnFinished, TurnFailed, TurnStopped)
_LIMITS: Final = {"statement_timeout": "30s", "idle_in_transaction_session_timeout": "30s"}  # as in docs/scale.md
_STARTED: Final = "SELECT count(*) FROM turn WHERE status = 'running' AND partial_text <> ''"


@dataclass(frozen=True)
class Stall:
    """One stall.

    Attributes:
        seconds: How long Postgres stands still.
        streams: How many answers are streamed meanwhile, over both servers.
        stream_seconds: How long the model speaks; half of the answers call a tool in between.
        ends: Whether one of the servers is told to end meanwhile.
    """

    seconds: float
    streams: int
    stream_seconds: float
    lease_seconds: float
    ends: bool = False

    def __str__(self) -> str:
        return f"{self.seconds:g} s" + (", one server told to end" if self.ends else "")


@dataclass
class Found:
    """What became of the answers of a stall.

    Attributes:
        endings: What those who read at the server of the turn were told.
        elsewhere: What those who read at the other server were told.
    """

    stall: Stall
    endings: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    read_chars: int = 0
    missing_chars: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def row(self) -> str:
        """Its row in the table of `HEAD`."""
        endings = f"{_counted(self.endings)} | {_counted(self.elsewhere)}"
        return f"| {self.stall} | {endings} | {self.read_chars:,} | {self.missing_chars:,} |"


class StreamingChat(WorkingChat):
    """Says numbered sentences for as long as it is told, all but the first once the file is there."""

    _file: Path = PrivateAttr()

    def __init__(self, seconds: float, file: Path) -> None:
        super().__init__(Silent(), pause_seconds=seconds / _PIECES)
        self._file = file

    def hurry(self) -> None:
        """Speaks without pauses from now on."""
        self._pause_seconds = 0.0

    def reply_to(self, messages: Sequence[BaseMessage], /) -> ScriptedAnswer:
        last, pieces = messages[-1], [f"{number}번째 문장까지 말했습니다. " for number in range(_PIECES)]
        if not isinstance(last, HumanMessage):
            return ScriptedAnswer(pieces[_PIECES // 2 :])  # behind the tool
        if TOOL_SIGN in last.text:
            return ScriptedAnswer(
                pieces[: _PIECES // 2], tool="look_up", arguments='{"name": "x"}', call_id=f"call-{last.id}"
            )
        return ScriptedAnswer(pieces)

    async def _astream(self, *sent: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:  # noqa: ANN401  # handed on as it came
        async for chunk in super()._astream(*sent, **kwargs):
            yield chunk
            await anyio.to_thread.run_sync(_wait_until, self._file.exists)


def stand_still(folder: Path, server: PostgresServer, stall: Stall) -> Found:
    """Has Postgres stand still while two servers stream, and looks at what is stored of it afterwards."""
    database_folder = put_elsewhere(folder, url := server.make_database())
    for name, limit in _LIMITS.items():
        server.execute(f"ALTER DATABASE {{}} SET {name} = '{limit}'", url.rpartition("/")[2])
    all_started, stopped = folder / "all-begun", folder / "stopped"

    def stop(_: Marker) -> None:
        _wait_until(lambda: _started(url) == stall.streams)
        all_started.touch()
        with server.standing_still():
            stopped.touch()
            time.sleep(stall.seconds)

    found, ledger = Found(stall), Ledger()
    works = [partial(_serve, database_folder, stall, number, all_started, stopped) for number in range(_SERVERS)]
    for line in chain.from_iterable(run_all([*works, stop])):
        if line.startswith("{"):
            _judge(found, ledger, json.loads(line))
        else:
            found.wrong.append(line)
    if found.endings.total() != stall.streams:
        found.wrong.append(f"{found.endings.total()} of {stall.streams} answers ended")
    found.wrong += in_own_process(lambda: check_folder(database_folder, ledger))
    found.wrong = [f"{stall}: {fault}" for fault in found.wrong]
    return found


def _judge(found: Found, ledger: Ledger, received: dict[str, str]) -> None:
    """Compares what was read of an answer with what is stored of it."""
    session_id, kind, ending = received["session"], received["kind"], received["ending"]
    if kind == "elsewhere":
        found.elsewhere[ending] += 1
        if ending not in (_FINISHED, "stopped"):
            found.wrong.append(f"{session_id} ended as {ending} at the other server")
        return
    ledger.acknowledge(session_id, received["message"], 1 if kind == "first" else 2)
    if kind == "next":
        if ending != _FINISHED:
            found.wrong.append(f"the next turn of {session_id} ended as {ending}")
        return
    found.endings[ending] += 1
    found.read_chars += len(received["read"])
    same = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(received["read"], received["stored"], strict=False))
    )
    if lost := len(received["read"]) - same:
        found.missing_chars += lost
        found.wrong.append(f"{lost} characters of {session_id} are missing ({ending})")
    if ending == LeaseLostError.code:
        found.wrong.append(f"{session_id} is told as taken over")


def _serve(folder: Path, stall: Stall, server: int, all_started: Path, stopped: Path, marker: Marker) -> None:
    """Streams a server's share of the answers, and tells what was read of them here and is stored."""
    opened = partial(serve, folder, lease_seconds=stall.lease_seconds, heartbeat_seconds=stall.lease_seconds / 4)
    chat = StreamingChat(stall.stream_seconds, all_started)
    here = [f"s{number}" for number in range(server, stall.streams, _SERVERS)]
    elsewhere = [f"s{number}" for number in range(stall.streams) if f"s{number}" not in here]
    ends = stall.ends and server == 0
    with ThreadPoolExecutor(2 * stall.streams) as pool, opened(chat=chat) as service:
        received = [pool.submit(_read, service, "first", session_id) for session_id in here]
        if ends:
            _wait_until(stopped.exists)
            time.sleep(stall.seconds / 4)
        else:
            received += [pool.submit(_follow, service, session_id) for session_id in elsewhere]
            wait(received)
            chat.hurry()
            received += [pool.submit(_read, service, "next", session_id) for session_id in here]
            wait(received)
    with opened() as service:
        for each in received:
            marker.say(json.dumps({**each.result(), "stored": _stored(service, each.result()["session"])}))


def _read(service: ChatService, kind: str, session_id: str) -> dict[str, str]:
    """Sends a message and reads its answer to the end, as a client does."""
    message_id = f"{kind}-{session_id}-{int(session_id[1:]) // _SERVERS}"  # every other one has a tool called
    service.turns.send(session_id, question(message_id), message_id=message_id)
    received = _read_events(service.turns.follow(session_id, timeout_seconds=_PATIENCE_SECONDS))
    return {"kind": kind, "session": session_id, "message": message_id, **received}


def _follow(service: ChatService, session_id: str) -> dict[str, str]:
    """Reads the answer that the other server makes."""
    events: list[Event] = []

    def has_started() -> bool:
        try:
            stream = service.turns.stream(session_id)
        except NotFoundError:
            return False
        if stream is not None and stream.has_events:
            stream.watch(events.append)
        return bool(events)

    _wait_until(has_started)
    _wait_until(lambda: isinstance(events[-1], _LAST_EVENTS))
    return {"kind": "elsewhere", "session": session_id, **_read_events(events)}


def _read_events(events: Iterable[Event]) -> dict[str, str]:
    """Returns the text of a turn's events and how they end."""
    read, ending = "", "cut"
    for event in events:
        match event:
            case TokenDelta(text):
                read += text
            case TurnFailed(_, code):
                ending = code
            case TurnFinished():
                ending = _FINISHED
            case TurnStopped():
                ending = "stopped"
    return {"read": _joined(read), "ending": ending}


def _stored(service: ChatService, session_id: str) -> str:
    """Returns what is stored of the first answer of a session."""
    return _joined(service.turns.transcript(session_id).turns[0].answer_text)


def _joined(text: str) -> str:
    """Returns the words alone: between two answers of a turn there is more or less room."""
    return "".join(text.split())


def _counted(endings: Counter[str]) -> str:
    return ", ".join(f"{count} {ending}" for ending, count in endings.most_common()) or "none"


def _started(url: str) -> int:
    """How many answers have been stored in part."""
    try:
        with psycopg.connect(url) as connection:
            found = connection.execute(_STARTED).fetchone()
    except psycopg.Error:  # the servers have made no tables yet
        return 0
    return 0 if found is None else int(found[0])


def _wait_until(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while not is_true():
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(_POLL_SECONDS)
