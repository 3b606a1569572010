"""Runs turns in workers, so that neither a reload nor a closed tab loses or repeats one."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, cast, get_args

from langchain_core.messages import HumanMessage

from graph.builder import ChatGraph
from graph.core.close_turn import ClosedStatus
from graph.core.turn import text_of
from graph.error import InternalError, LeaseLostError, TurnfoldError, TurnStoppedSignal
from graph.event import Event, TurnFailed, TurnFinished, TurnStarted, TurnStopped
from graph.log import in_turn
from graph.node.context import TurnContext
from graph.recovery import StateRecovery, config_of
from graph.state import ChatState
from graph.store.stores import Stores
from graph.store.turn import TurnRow
from graph.worker.fold_worker import FoldWorker
from graph.worker.limiter import TurnLimiter
from graph.worker.turn_log import TurnLog

_LOG = logging.getLogger(__name__)
_WATCH_SECONDS: Final = 0.5
_KEPT_LOGS: Final = 64
_EVENTS: Final = get_args(Event)


@dataclass(frozen=True)
class Job:
    """One attempt of a turn, acknowledged and ready to run.

    Attributes:
        message: The user's message; None for a new attempt of the last turn, whose message is in state.
    """

    context: TurnContext
    turn: TurnRow
    message: HumanMessage | None
    compression_rate: float


@dataclass(frozen=True)
class _Ending:
    """How a turn ends that can't go on; `code` and `detail` are of the error."""

    status: ClosedStatus
    code: str = ""
    detail: str = ""


class TurnRunner:
    """The workers of this server and the logs of what they do.

    Attributes:
        limiter: Gives a turn its place before it's acknowledged; the worker gives it back.
    """

    def __init__(
        self,
        *,
        graph: ChatGraph,
        stores: Stores,
        recovery: StateRecovery,
        fold_worker: FoldWorker,
        limiter: TurnLimiter,
        max_workers: int,
    ) -> None:
        self._graph = graph
        self._stores = stores
        self._recovery = recovery
        self._fold_worker = fold_worker
        self.limiter = limiter
        self._logs: dict[str, tuple[TurnLog, Job]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=max_workers, thread_name_prefix="turn")
        self._watcher = threading.Thread(target=self._watch, name="turn-watch", daemon=True)
        self._watcher.start()

    def submit(self, log: TurnLog, job: Job) -> None:
        """Hands an acknowledged turn to a worker. From here on the worker owns lease and place.

        Raises:
            InternalError: The server is closing; the next message settles the turn.
        """
        log.append(TurnStarted(log.session_id, job.turn.number, job.turn.attempt))
        with self._lock:
            if self._closing.is_set():
                raise InternalError("closing")
            self._forget_old_logs()
            self._logs[log.session_id] = (log, job)
            self._pool.submit(self._run, log, job)

    def log(self, session_id: str) -> TurnLog | None:
        """Returns the log of the session's newest turn in this process; it may be over."""
        entry = self._logs.get(session_id)
        return entry[0] if entry else None

    def running(self, session_id: str) -> TurnLog | None:
        """Returns the log of the session's turn if it runs in this process."""
        log = self.log(session_id)
        return log if log is not None and not log.is_over else None

    def forget(self, session_id: str) -> None:
        """Drops what is kept of a session that is deleted."""
        self._logs.pop(session_id, None)

    def close(self) -> None:
        """Ends running turns as stopped, keeping what they have said, and waits for the workers."""
        with self._lock:
            self._closing.set()
            for log, _ in self._logs.values():
                log.stop.set()
        self._pool.shutdown(wait=True)
        self._watcher.join()

    def _run(self, log: TurnLog, job: Job) -> None:
        """Runs one attempt in a worker: streams it, ends it in the tables, frees session and place, says the last word.

        The folds that are due now are looked for elsewhere: that may take its time, and the answer is out.
        """
        session_id, number = log.session_id, job.turn.number
        with in_turn(session_id, number):
            last = self._outcome(log, job)
            self._after("prune", session_id, lambda: self._stores.checkpointer.prune_thread(session_id))
            self._after("release", session_id, lambda: self._stores.leases.release(job.context.lease))
            self.limiter.end()
            self._after("prepare", session_id, lambda: self._prepare(job))
            _LOG.info("turn %d session=%s attempt=%d: %s", number, session_id, job.turn.attempt, type(last).__name__)
            log.append(last)

    def _prepare(self, job: Job) -> None:
        context = job.context
        self._fold_worker.prepare_soon(
            context.lease.session_id,
            owner=context.owner,
            strategy=context.strategy,
            turn=context.turn,
            attempt=context.attempt,
        )

    def _after(self, what: str, session_id: str, action: Callable[[], None]) -> None:
        """Does a chore beside or after a turn; its failure must not hide the answer, which is committed."""
        try:
            action()
        except BaseException:  # noqa: BLE001 - the edge of a worker; each of these is made up for by the next turn
            _LOG.exception("%s after a turn of session=%s failed", what, session_id)

    def _outcome(self, log: TurnLog, job: Job) -> Event:
        """Streams the graph and returns the turn's last event; whatever goes wrong closes the turn."""
        try:
            self._stream(log, job)
            return self._finish(job)
        except TurnStoppedSignal:
            ending = _Ending("stopped")
        except LeaseLostError as error:
            return TurnFailed(job.turn.number, error.code, error.detail)  # the turn is another worker's now
        except TurnfoldError as error:
            _LOG.warning("turn %d session=%s failed: %s", job.turn.number, log.session_id, error.code)
            ending = _Ending("failed", error.code, error.detail)
        except BaseException:  # noqa: BLE001 - the edge of a worker: logged here, and shown as a failed turn
            # A SystemExit or a cancelled task of some library ends this turn alone: nobody else would free its session.
            _LOG.exception("turn %d session=%s ended by a defect", job.turn.number, log.session_id)
            ending = _Ending("failed", InternalError.code)
        return self._close(job, ending, log.partial_text)

    def _stream(self, log: TurnLog, job: Job) -> None:
        config = config_of(log.session_id)
        parts = self._graph.stream(
            self._input(job),
            config,
            context=job.context,
            stream_mode=["custom"],
            version="v2",
            durability="sync",
        )
        for part in parts:
            if isinstance(part["data"], _EVENTS):
                log.append(part["data"])

    def _input(self, job: Job) -> ChatState:
        """Returns the ONE input of a turn: its message (that of a new attempt is in state), number and rate."""
        update = {
            "messages": [job.message] if job.message else [],
            "session_id": job.context.lease.session_id,
            "turn_count": job.turn.number,
            "compression_rate": job.compression_rate,
            "is_casual": job.turn.is_casual,
            "tool_rounds": 0,
        }
        return cast("ChatState", update)  # an update of some keys; the history stays as it is

    def _finish(self, job: Job) -> Event:
        self._stores.turns.finish(job.context.lease, job.turn.number, "finished")
        return self._finished(job)

    def _finished(self, job: Job) -> Event:
        number = job.turn.number
        answer = self._stores.archive.live_turns(job.context.lease.session_id, number, number)[-1].message
        return TurnFinished(number, str(answer.id), text_of(answer))

    def _close(self, job: Job, ending: _Ending, text: str) -> Event:
        """Closes the turn; if even that can't be written, the next turn will settle it."""
        number = job.turn.number
        try:
            self._recovery.close(
                job.context.lease,
                job.turn,
                owner=job.context.owner,
                status=ending.status,
                code=ending.code,
                detail=ending.detail,
                partial_text=text,
            )
            if self._stores.turns.get(job.context.lease.session_id, number).status == "finished":
                return self._finished(job)
        except TurnfoldError as error:
            _LOG.warning("turn %d could not be closed: %s", number, error.code)
            return TurnFailed(number, error.code, error.detail)
        except BaseException:  # noqa: BLE001 - the edge of a worker: the session must be freed and the watchers told
            _LOG.exception("turn %d could not be closed", number)
            return TurnFailed(number, InternalError.code, "")
        if ending.status == "stopped":
            return TurnStopped(number, text)
        return TurnFailed(number, ending.code, ending.detail)

    def _watch(self) -> None:
        """Twice a second writes each running turn's partial text and reads whether another server asked it to stop.

        A server that is killed loses what came since.
        """
        saved: dict[TurnLog, str] = {}
        began = time.monotonic()
        while not self._closing.wait(max(0.0, began + _WATCH_SECONDS - time.monotonic())):
            began = time.monotonic()
            running = {log: job for log, job in list(self._logs.values()) if not log.is_over}
            saved = {log: saved.get(log, "") for log in running}
            for log, job in running.items():
                self._after("watch", log.session_id, partial(self._exchange, log, job, saved))

    def _exchange(self, log: TurnLog, job: Job, saved: dict[TurnLog, str]) -> None:
        number, text = job.turn.number, log.partial_text
        if saved[log] != text:
            with contextlib.suppress(LeaseLostError):  # the turn has just ended
                self._stores.turns.save_partial(job.context.lease, number, text)
            saved[log] = text
        if not log.stop.is_set() and self._stores.turns.is_stop_requested(log.session_id, number):
            log.stop.set()

    def _forget_old_logs(self) -> None:
        """Drops the oldest logs that are over, so that a server's memory doesn't grow with its sessions."""
        over = [session_id for session_id, (log, _) in self._logs.items() if log.is_over]
        for session_id in over[: max(0, len(over) - _KEPT_LOGS)]:
            del self._logs[session_id]
