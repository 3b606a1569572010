"""The faults and loads of several processes at once, a function each; it returns what was wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from langchain_core.messages.utils import convert_to_openai_messages

from graph.service import ChatService
from graph.value.error import NotFoundError
from graph.value.event import TurnFinished
from tests.fault.check import Ledger, check_folder, check_input
from tests.fault.child import question
from tests.fault.mark import Marker, Silent
from tests.fault.model import WorkingChat
from tests.fault.process import in_own_process, run_all
from tests.fault.scenario import SESSION, say_all, serve

_PATIENCE_SECONDS: Final = 300.0


def same_id_at_once(folder: Path) -> list[str]:
    """Eight processes send one message at once: it is one turn, and all of them are told its number."""

    def work(marker: Marker) -> None:
        with serve(folder) as service:
            marker.say("same-1", service.turns.send(SESSION, question("same-1"), message_id="same-1", wait_seconds=30))
            time.sleep(0.2)  # the process that started the turn lets it end

    return _judged(folder, run_all([work] * 8), told=["same-1 1"] * 8)


def eight_on_a_fresh_file(folder: Path) -> list[str]:
    """Eight processes start where there is no file yet, and each has a turn in the same session."""
    heard = run_all([_sender(folder, [f"p{number}-1"], threads=1) for number in range(8)])
    turns = sorted(int(line.split(" ")[1]) for lines in heard for line in lines)
    return _judged(folder, heard) + ([] if turns == list(range(1, 9)) else [f"turns {turns}"])


def crowd_in_one_session(folder: Path, *, turns: int) -> list[str]:
    """Two processes of eight threads send to one session, all waiting: every turn is kept, in a valid order."""
    halves = [[f"p{process}-{number}" for number in range(turns // 2)] for process in range(2)]
    heard = run_all([_sender(folder, names, threads=8) for names in halves])
    numbers = sorted(int(line.split(" ")[1]) for lines in heard for line in lines if not line.startswith("ended"))
    return _judged(folder, heard) + ([] if numbers == list(range(1, turns + 1)) else [f"{len(numbers)} turns kept"])


def many_sessions(folder: Path, *, sessions: int, turns: int) -> list[str]:
    """Two processes of four threads have many turns in many sessions: none fails."""
    each = turns // sessions

    def worker(process: int) -> Callable[[Marker], None]:
        def work(marker: Marker) -> None:
            def talk(session_id: str) -> None:
                for number in range(each):
                    name = f"{session_id}-{number}"
                    turn = service.turns.send(
                        session_id, question(name), message_id=name, wait_seconds=_PATIENCE_SECONDS
                    )
                    last = list(service.turns.follow(session_id, timeout_seconds=_PATIENCE_SECONDS))[-1]
                    if turn != number + 1 or not isinstance(last, TurnFinished):
                        marker.say(f"turn {number + 1} of {session_id} ended as {type(last).__name__} {turn}")

            with serve(folder) as service, ThreadPoolExecutor(4) as pool:
                list(pool.map(talk, [f"s{number}" for number in range(process, sessions, 2)]))

        return work

    wrong = [line for lines in run_all([worker(0), worker(1)]) for line in lines]
    # One more turn in each session, and everything in it is checked.
    ledger = Ledger({f"s{s}": {f"s{s}-{n}": n + 1 for n in range(each)} for s in range(sessions)})
    return wrong + in_own_process(lambda: check_folder(folder, ledger))


def clocks_apart(folder: Path, *, turns: int, seconds: float) -> list[str]:
    """Two servers whose clocks are set forward and back take turns in one session: each sends all of it."""

    def server(server_number: int) -> Callable[[Marker], None]:
        def work(marker: Marker) -> None:
            clock = set_clock((seconds, -seconds)[server_number])
            model = WorkingChat(Silent(), pause_seconds=0)
            ledger = Ledger()
            with serve(folder, clock=clock, chat=model) as service:
                for number in range(1 + server_number, turns + 1, 2):
                    _wait_for_turn(service, number - 1)
                    say_all(service, ledger, [number])
                    texts = {
                        turn.number: turn.user_text for turn in service.turns.transcript(SESSION, last=turns).turns
                    }
                    for fault in check_input(convert_to_openai_messages(model.inputs[-1]), texts, number):
                        marker.say(f"turn {number}: {fault}")
            for fault in ledger.wrong:
                marker.say(fault)

        return work

    wrong = [line for lines in run_all([server(0), server(1)]) for line in lines]
    ledger = Ledger({SESSION: {f"q-{number}": number for number in range(1, turns + 1)}})
    return wrong + in_own_process(lambda: check_folder(folder, ledger))


def set_clock(seconds: float) -> Callable[[], datetime]:
    """Sets the clock of this process, which ends with the work, and returns it."""
    told, told_ns = time.time, time.time_ns
    time.time = lambda: told() + seconds
    time.time_ns = lambda: told_ns() + int(seconds * 1e9)
    return lambda: datetime.fromtimestamp(time.time(), UTC)


def _wait_for_turn(service: ChatService, number: int) -> None:
    """Waits until a turn of another server has ended."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while number and time.monotonic() < until:
        with suppress(NotFoundError):
            view = service.sessions.get(SESSION)
            if view.turn_count == number and not view.is_running:
                return
        time.sleep(0.01)


def _sender(folder: Path, names: Sequence[str], *, threads: int) -> Callable[[Marker], None]:
    def work(marker: Marker) -> None:
        def send(name: str) -> None:
            turn = service.turns.send(SESSION, question(name), message_id=name, wait_seconds=_PATIENCE_SECONDS)
            marker.say(name, turn)

        with serve(folder) as service:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(send, names))
            list(service.turns.follow(SESSION, timeout_seconds=_PATIENCE_SECONDS))

    return work


def _judged(folder: Path, heard: Sequence[Sequence[str]], told: Sequence[str] | None = None) -> list[str]:
    """Checks the folder against what the processes were told."""
    ledger = Ledger()
    lines = [line for one in heard for line in one]
    if told is not None and lines != told:
        ledger.wrong.append(f"told {lines}")
    for name, turn in (line.split(" ") for line in lines):
        if name == "ended":
            ledger.wrong.append(f"a process ended with {turn}")
        else:
            ledger.acknowledge(SESSION, name, int(turn))
    return in_own_process(lambda: check_folder(folder, ledger))
