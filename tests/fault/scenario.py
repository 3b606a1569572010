"""The faults other than a kill that one process can have, a function each; it returns what was wrong."""

from __future__ import annotations

import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG

from graph.service import ChatService, open_service
from graph.store.stores import open_stores
from graph.value.error import BusyError, DatabaseBusyError, DiskFullError, StoreError
from graph.value.event import Event, TurnFailed, TurnFinished
from tests.fault.check import Ledger, check_folder
from tests.fault.child import fault_settings, question
from tests.fault.mark import Silent
from tests.fault.model import WorkingChat, working_models, working_tools
from tests.fault.store import Full, Nth, OpenStores, failing_stores

TURNS: Final = 7
SESSION: Final = "chat"
_TRIES: Final = 50
_DISK: Final = "3m"
_ROOM_BYTES: Final = 60_000
_LATE: Final = 1.5


@contextmanager
def serve(
    folder: Path,
    *,
    stores: OpenStores = open_stores,
    clock: Callable[[], datetime] | None = None,
    chat: WorkingChat | None = None,
    **changes: object,
) -> Iterator[ChatService]:
    """Opens a service over the folder with a model of our own that loses no time."""
    marker = Silent()
    with open_service(
        fault_settings(folder, **changes),
        clock=clock,
        models=working_models(marker, pause_seconds=0, chat=chat),
        tools=working_tools(marker),
        stores=stores,
    ) as service:
        yield service


def say(service: ChatService, ledger: Ledger, message_id: str, session_id: str = SESSION) -> Event | None:
    """Sends a message as a patient user would, with one id until it's taken; returns how its turn ended."""
    for _ in range(_TRIES):
        try:
            turn = service.turns.send(session_id, question(message_id), message_id=message_id, wait_seconds=5)
        except (StoreError, BusyError):
            time.sleep(0.05)
            continue
        ledger.acknowledge(session_id, message_id, turn)
        return ending(service, ledger, turn, session_id)
    ledger.wrong.append(f"{message_id} was never taken")
    return None


def ending(service: ChatService, ledger: Ledger, turn: int, session_id: str = SESSION) -> Event | None:
    """Follows a turn to its end and notes the answer that was shown."""
    for event in service.turns.follow(session_id, timeout_seconds=90):
        if isinstance(event, TurnFinished) and event.turn == turn:
            ledger.show(session_id, turn, event.message_id)
            return event
        if isinstance(event, TurnFailed) and event.turn == turn:
            return event
    return None


def say_all(service: ChatService, ledger: Ledger, numbers: Sequence[int], session_id: str = SESSION) -> None:
    """Runs one turn per number; each must be answered."""
    for number in numbers:
        if not isinstance(told := say(service, ledger, f"q-{number}", session_id), TurnFinished):
            ledger.wrong.append(f"turn {number} ended as {told}")


def count_writes(folder: Path) -> int:
    """How many writes a chat of seven turns makes if none fails."""
    nth = Nth()
    with serve(folder, stores=failing_stores(nth)) as service:
        say_all(service, Ledger(), range(1, TURNS + 1))
    return nth.count


def nth_write_fails(folder: Path, failing: int) -> list[str]:
    """One write of a seven-turn chat fails: every message is one turn all the same, and the chat goes on."""
    ledger = Ledger()
    with serve(folder, stores=failing_stores(Nth(failing))) as service:
        for number in range(1, TURNS + 1):
            say(service, ledger, f"q-{number}")
    turns = sorted(ledger.acknowledged.get(SESSION, {}).values())
    if turns != list(range(1, TURNS + 1)):
        ledger.wrong.append(f"turns {turns}")
    return [f"write {failing}: {fault}" for fault in check_folder(folder, ledger)]


def locked(folder: Path, *, lock_seconds: float, busy_timeout_seconds: float) -> list[str]:
    """Something else holds the write lock: for less than the timeout it delays a turn, for longer it refuses one."""
    ledger = Ledger()
    with (
        serve(folder, busy_timeout_seconds=busy_timeout_seconds) as service,
        closing(sqlite3.connect(folder / "turnfold.db", isolation_level=None, check_same_thread=False)) as other,
    ):
        say_all(service, ledger, [1])
        other.execute("BEGIN IMMEDIATE")
        released: list[float] = []

        def unlock() -> None:
            other.execute("ROLLBACK")
            released.append(time.monotonic())

        unlocking = threading.Timer(lock_seconds, unlock)
        unlocking.start()
        began, refusal = time.monotonic(), ""
        try:
            turn = service.turns.send(SESSION, question("q-2"), message_id="q-2")
            ledger.acknowledge(SESSION, "q-2", turn)
            ending(service, ledger, turn)
        except DatabaseBusyError as error:
            refusal = error.code
        seconds = time.monotonic() - began
        unlocking.join()
        # The timer of a busy machine is late, so the planned length says nothing.
        held_seconds = released[0] - began
        if not may_be(refusal, held_seconds, busy_timeout_seconds):
            ledger.wrong.append(f"locked for {held_seconds:.1f} s: {refusal or 'taken'}")
        if seconds > min(held_seconds, busy_timeout_seconds) * 1.2 + 3:
            ledger.wrong.append(f"locked for {held_seconds:.1f} s: told after {seconds:.1f} s")
        say_all(service, ledger, [3])
    return check_folder(folder, ledger)


def may_be(refusal: str, held_seconds: float, busy_timeout_seconds: float) -> bool:
    """Whether a message may be refused so, or taken (""), if the lock was held for so long after it was sent.

    The wait begins a little later than the message is sent, so it may end well after a lock of just its length.
    """
    return held_seconds > busy_timeout_seconds if refusal else held_seconds < busy_timeout_seconds * _LATE


def disk_full(folder: Path) -> list[str]:
    """The disk fills up in the middle of a chat and has room again later: what was acknowledged is there."""
    folder.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "none", str(folder)]
    mount = subprocess.run(words, check=False, capture_output=True)
    try:
        return _disk_full(folder, is_real=mount.returncode == 0)
    finally:
        if mount.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


def _disk_full(folder: Path, *, is_real: bool) -> list[str]:
    """With a disk of its own if mounting is allowed here; else every write is refused as on a full one."""
    ledger, full, filler = Ledger(), Full(), folder / "filler"
    codes: set[str] = set()
    with serve(folder / "data", stores=open_stores if is_real else failing_stores(full)) as service:
        say_all(service, ledger, [1, 2])
        if is_real:
            _fill(filler)
        full.is_on = True
        for number in range(3, 60):
            if (code := _try_long(service, ledger, f"q-{number}")) is not None:
                codes.add(code)
                break
        full.is_on = False
        filler.unlink(missing_ok=True)
        if codes != {DiskFullError.code}:
            ledger.wrong.append(f"a full disk is told as {sorted(codes)}")
        say_all(service, ledger, [100, 101])
    return check_folder(folder / "data", ledger)


def _try_long(service: ChatService, ledger: Ledger, message_id: str) -> str | None:
    """Sends a message; returns the code of what went wrong, None if it was answered."""
    try:
        turn = service.turns.send(SESSION, question(message_id), message_id=message_id, wait_seconds=5)
    except StoreError as error:
        return error.code
    ledger.acknowledge(SESSION, message_id, turn)
    told = ending(service, ledger, turn)
    return told.code if isinstance(told, TurnFailed) else None


def _fill(filler: Path) -> None:
    """Writes until the disk is full, then leaves a little room."""
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4_096):
                pass
        except OSError:
            file.truncate(file.tell() - _ROOM_BYTES)


def clock_moves(folder: Path, *, hours: float) -> list[str]:
    """The clock is set by some hours between two starts: the chat goes on in its order, folds included."""
    ledger = Ledger()
    with serve(folder) as service:
        say_all(service, ledger, range(1, 6))
    with serve(folder, clock=lambda: datetime.now(UTC) + timedelta(hours=hours), fold_wait_seconds=5) as service:
        say_all(service, ledger, range(6, 12))
        turns = [turn.number for turn in service.turns.transcript(SESSION).turns]
        covered = [record.turns for record in service.folds.records(SESSION)]
    if turns != list(range(1, 12)):
        ledger.wrong.append(f"turns {turns}")
    if covered != [(1, 2, 3), (4, 5, 6), (7, 8, 9)]:
        ledger.wrong.append(f"records of {covered}")
    return check_folder(folder, ledger)


def forged_checkpoint(folder: Path) -> list[str]:
    """Somebody writes into the checkpoints: no code runs, nothing of it is sent, the chat goes on."""
    ledger, trap = Ledger(), folder / "trap"
    forges: dict[str, Callable[[bytes], bytes]] = {
        "code": lambda blob: _with_code(blob, trap),
        "words": lambda blob: blob.replace("김민수".encode(), "이영희".encode()),
        "garbage": lambda _: b"\xc1garbage",
        "half": lambda blob: blob[: len(blob) // 2],
    }
    with serve(folder) as service:
        say_all(service, ledger, [1])
    for number, (name, forge) in enumerate(forges.items(), start=2):
        _rewrite(folder / "checkpoint.db", forge)
        chat = WorkingChat(Silent(), pause_seconds=0)
        with serve(folder, chat=chat) as service:
            say_all(service, ledger, [number])
        if trap.exists():
            ledger.wrong.append(f"{name}: code was run")
        if "이영희" in str(chat.inputs):
            ledger.wrong.append(f"{name}: forged words were sent")
    return check_folder(folder, ledger)


def _with_code(blob: bytes, trap: Path) -> bytes:
    checkpoint = ormsgpack.unpackb(blob, ext_hook=ormsgpack.Ext)
    call = ormsgpack.packb(("os", "mkdir", str(trap)))
    checkpoint["channel_values"]["messages"] = ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, call)
    return ormsgpack.packb(checkpoint)


def _rewrite(file: Path, forge: Callable[[bytes], bytes]) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for row_id, blob in connection.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall():
            connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?", (forge(blob), row_id))
