"""Runs turns in worker threads, so that a reload or a closed tab neither loses nor repeats one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

from langchain_core.messages import AnyMessage
from langgraph.types import Command

from graph.core.pin import ContextRequest
from graph.core.turn import RECALL_TOOL, Closing, split_turns
from graph.node.builder import ChatGraph
from graph.node.fold_worker import FoldWorker
from graph.node.recovery import StateRecovery, config_of
from graph.node.state import ChatState, TurnContext
from graph.recognise.client_chain import EndedFingerprint, OpenFingerprint
from graph.recognise.client_turns import waiting_calls
from graph.server.log import in_turn
from graph.store.database import outlast
from graph.store.stores import ChatStores
from graph.store.turn import PartialText, TurnKey, TurnRow
from graph.value.error import ClosingError, InternalError, LeaseLostError, StoreError, TurnfoldError, TurnStoppedSignal
from graph.value.event import (
    ActionRequired,
    ClientCall,
    Event,
    ToolAsked,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnStarted,
    TurnStopped,
)
from graph.worker.limiter import TurnLimiter
from graph.worker.project_turns import ProjectTurns
from graph.worker.turn_blocks import TurnBlocks
from graph.worker.turn_log import TurnLog, last_event

_LOG = logging.getLogger(__name__)
_WATCH_SECONDS: Final = 0.5
_CLOSING_SECONDS: Final = 20.0
_KEPT_JOBS: Final = 64


@dataclass(frozen=True)
class Job:
    """One attempt of a turn, committed and ready to run.

    `returned` is what providers want back with the copies of earlier calls, by the answer's id.
    """

    log: TurnLog
    context: TurnContext
    request: ContextRequest
    returned: Mapping[str, Mapping[str, object]]
    fingerprint: OpenFingerprint | None = None

    @property
    def session_id(self) -> str:
        return self.context.lease.session_id

    @property
    def number(self) -> int:
        return self.context.row.number

    def ended_fingerprint(self, calls: Sequence[ClientCall] = ()) -> EndedFingerprint | None:
        """Returns what the response is recognised by, given what was sent of it; None for the page."""
        sent_text = self.log.sent_text(supports_restart=self.context.supports_restart)
        return self.fingerprint.ended(sent_text, calls[0].id if calls else "") if self.fingerprint else None


@dataclass(frozen=True)
class _Ending:
    """How a turn that can't go on ends; `code` and `detail` are those of the error."""

    status: Closing
    code: str = ""
    detail: str = ""


class TurnRunner:
    """The turn workers of this server and the event logs of their turns.

    `give_up` is set when turns wait no longer for a database that is away: a while after the server began to close.
    """

    def __init__(
        self,
        *,
        graph: ChatGraph,
        stores: ChatStores,
        recovery: StateRecovery,
        fold_worker: FoldWorker,
        limiter: TurnLimiter,
        blocks: TurnBlocks,
        projects: ProjectTurns | None,
        max_workers: int,
    ) -> None:
        self._graph = graph
        self._stores = stores
        self._recovery = recovery
        self._fold_worker = fold_worker
        self._blocks = blocks
        self._projects = projects
        self.limiter = limiter
        self.give_up = threading.Event()
        self._jobs: dict[str, Job] = {}  # the newest of each session
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=max_workers, thread_name_prefix="turn")
        self._watcher = threading.Thread(target=self._watch, name="turn-watch", daemon=True)
        self._watcher.start()

    def submit(self, job: Job) -> None:
        """Hands a committed turn to a worker, which from now on owns the lease and the slot.

        Raises `ClosingError` if the server is closing; the next message of the session closes the turn.
        """
        job.log.append(TurnStarted(job.session_id, job.number, job.context.row.attempt))
        with self._lock:
            if self._closing.is_set():
                raise ClosingError
            self._forget_old_jobs()
            self._jobs[job.session_id] = job
            self._fold_worker.hold(job.session_id)
            self._pool.submit(self._run, job)

    def log(self, session_id: str) -> TurnLog | None:
        """Returns the log of the session's newest turn in this process; that turn may be over."""
        job = self._jobs.get(session_id)
        return job.log if job else None

    def running(self, session_id: str) -> TurnLog | None:
        log = self.log(session_id)
        return log if log is not None and not log.is_over else None

    def stopping(self, owner: str) -> list[TurnLog]:
        """Returns the logs of an owner's turns that were told to stop and haven't ended yet."""
        jobs = (job for job in list(self._jobs.values()) if job.context.owner == owner)
        return [job.log for job in jobs if job.log.stop.is_set() and not job.log.is_over]

    def forget(self, session_id: str) -> None:
        self._jobs.pop(session_id, None)

    def close(self) -> None:
        """Stops the running turns, keeping their partial text, and waits for the workers."""
        with self._lock:
            self._closing.set()
            for job in self._jobs.values():
                job.log.stop.set()
        giving_up = threading.Timer(_CLOSING_SECONDS, self.give_up.set)
        giving_up.start()
        self._pool.shutdown(wait=True)
        giving_up.cancel()
        self._watcher.join()

    def _run(self, job: Job) -> None:
        """Runs one attempt in a worker: streams it, writes the result, releases lease and slot, emits the final event.

        The search for due folds runs in another thread: it may take long, and the answer is committed.
        """
        session_id = job.session_id
        with in_turn(session_id, job.number):
            last = self._outcome(job)
            self._after("release", session_id, lambda: self._stores.leases.release(job.context.lease))
            self.limiter.end(job.context.owner)
            self._after("note", session_id, lambda: self._note_end(job, last))
            self._after("prepare", session_id, lambda: self._prepare_folds(job.context))
            self._fold_worker.release(session_id)
            attempt = job.context.row.attempt
            _LOG.info("turn %d session=%s attempt=%d: %s", job.number, session_id, attempt, type(last).__name__)
            job.log.append(last)

    def _prepare_folds(self, turn: TurnContext) -> None:
        attempt = f"{turn.row.number}.{turn.row.attempt}"
        self._fold_worker.prepare_soon(
            turn.lease.session_id,
            owner=turn.owner,
            strategy=turn.strategy,
            attempt=attempt,
            time_zone=turn.time_zone,
        )

    def _note_end(self, job: Job, last: Event) -> None:
        if self._projects is not None and not isinstance(last, ActionRequired | ToolAsked):
            self._projects.end(job.request, last, model=job.context.row.model)

    def _after(self, what: str, session_id: str, action: Callable[[], None]) -> None:
        """Does a chore during or after a turn; its failure must not hide the committed answer."""
        try:
            action()
        except StoreError as error:
            _LOG.warning("%s after a turn of session=%s failed: %s", what, session_id, error.code)
        except BaseException:  # noqa: BLE001 - the edge of a worker; the next turn makes up for each chore
            _LOG.exception("%s after a turn of session=%s failed", what, session_id)

    def _outcome(self, job: Job) -> Event:
        """Streams the graph and returns the turn's final event; any failure closes the turn."""
        try:
            asked, messages = self._stream(job)
            return outlast(lambda: self._ended(job, asked, messages), self.give_up)
        except TurnStoppedSignal:
            ending = _Ending("unanswered" if self._closing.is_set() else "stopped")
        except LeaseLostError as error:
            return TurnFailed(job.number, error.code, error.detail)  # another worker owns the turn now
        except TurnfoldError as error:
            _LOG.warning("turn %d session=%s failed: %s", job.number, job.session_id, error.code)
            ending = _Ending("failed", error.code, error.detail)
        except BaseException:  # noqa: BLE001 - the edge of a worker: logged here, and shown as a failed turn
            # A SystemExit or a cancelled task of a library must end only this turn, and its session must be released.
            _LOG.exception("turn %d session=%s ended by a defect", job.number, job.session_id)
            ending = _Ending("failed", InternalError.code)
        self._after("thoughts", job.session_id, lambda: self._keep_thoughts(job))
        return self._close(job, ending)

    def _stream(self, job: Job) -> tuple[Sequence[Mapping[str, str]], Sequence[AnyMessage]]:
        """Runs the graph; returns the calls on which the user must give his word before it can go on.

        And the turn's messages.
        """
        context = self._blocks.added_to(job.context, job.request)
        if context.looked_up:
            call_id = f"look-up-{job.number}"
            context.emit(ToolStarted(call_id, RECALL_TOOL, "{}"))
            context.emit(ToolFinished(call_id, RECALL_TOOL, "", is_error=False, seconds=0.0, turns=context.looked_up))
        if self._projects is not None:  # behind what the session begins with, or this message would be part of it
            self._projects.begin(job.request)
        config = config_of(job.session_id)
        with self._stores.checkpoints.saver() as saver:
            graph = self._graph.copy({"checkpointer": saver})
            context = replace(context, state=self._recovery.close_gap(context.lease, context.state))
            state = self._recovery.state(context, saver, job.returned)
            saver.delete_thread(job.session_id)
            given: ChatState | Command[Any] = state
            if context.words:  # the run goes on before `tool_node`, where it waited for them
                graph.update_state(config, state, as_node="llm_node")
                given = Command(resume=True)
            # A run that is cut off is never resumed, so one checkpoint at its end is enough.
            ended = graph.invoke(given, config, context=context, durability="exit")
        asked = [call for asking in ended.get("__interrupt__", ()) for call in asking.value["calls"]]
        return asked, split_turns(ended["messages"])[-1]

    def _ended(self, job: Job, asked: Sequence[Mapping[str, str]], messages: Sequence[AnyMessage]) -> Event:
        """Writes how a run ended that went well: with an answer, or with calls for a program or the user to decide."""
        self._keep_thoughts(job)
        calls = () if asked else waiting_calls(messages)
        status: Literal["requires_action", "asking", "finished"] = "requires_action" if calls else "finished"
        status = "asking" if asked else status
        fingerprint = job.ended_fingerprint(calls)
        self._stores.turns.finish(job.context.lease, job.number, status, fingerprint=fingerprint, asked_calls=asked)
        return last_event(replace(job.context.row, status=status, asked_calls=tuple(asked)), messages)

    def _keep_thoughts(self, job: Job) -> None:
        if job.log.thoughts:
            self._stores.turns.save_partials([_partial(job)])

    def _messages_of(self, job: Job) -> list[AnyMessage]:
        return [entry.message for entry in self._stores.archive.live_turns(job.session_id, job.number, job.number)]

    def _close(self, job: Job, ending: _Ending) -> Event:
        """Closes the turn; if that can't be written either, the next turn closes it."""
        number, text = job.number, job.log.partial_text
        close = partial(self._closed, job, ending, text)
        try:
            row = outlast(close, self.give_up) if text else close()
            if row.status == "finished":
                return last_event(row, self._messages_of(job))
        except TurnfoldError as error:
            _LOG.warning("turn %d could not be closed: %s", number, error.code)
            return TurnFailed(number, error.code, error.detail)
        except BaseException:  # noqa: BLE001 - the edge of a worker: the lease must be released and the final event emitted
            _LOG.exception("turn %d could not be closed", number)
            return TurnFailed(number, InternalError.code, "")
        if ending.status == "failed":
            return TurnFailed(number, ending.code, ending.detail)
        return TurnStopped(number, text)

    def _closed(self, job: Job, ending: _Ending, text: str) -> TurnRow:
        self._recovery.close(
            job.context.lease,
            job.context.row,
            owner=job.context.owner,
            status=ending.status,
            code=ending.code,
            detail=ending.detail,
            partial_text=text,
            fingerprint=job.ended_fingerprint(),
        )
        return self._stores.turns.get(job.session_id, job.number)

    def _watch(self) -> None:
        """Twice a second stores each running turn's partial text and reads whether another server asked it to stop."""
        saved: dict[TurnLog, tuple[str, str]] = {}
        began = time.monotonic()
        while not self._closing.wait(max(0.0, began + _WATCH_SECONDS - time.monotonic())):
            began = time.monotonic()
            if running := [job for job in list(self._jobs.values()) if not job.log.is_over]:
                self._after("watch", "(all)", partial(self._exchange, running, saved))

    def _exchange(self, running: Sequence[Job], saved: dict[TurnLog, tuple[str, str]]) -> None:
        """Does it for all of them in one transaction each: hundreds of streams would keep everybody else waiting."""
        partials = {job.log: _partial(job) for job in running}
        texts = {log: (partial.text, partial.thoughts) for log, partial in partials.items()}
        if changed := [partials[log] for log, text in texts.items() if text != saved.get(log, ("", ""))]:
            self._stores.turns.save_partials(changed)
        saved.clear()
        saved.update(texts)
        going = {TurnKey(job.session_id, job.number): job.log for job in running if not job.log.stop.is_set()}
        for turn_key in self._stores.turns.stopping(going):
            going[turn_key].stop.set()

    def _forget_old_jobs(self) -> None:
        """Drops the oldest jobs that are over, so that memory doesn't grow with the number of sessions."""
        for session_id in [key for key, job in self._jobs.items() if job.log.is_over][:-_KEPT_JOBS]:
            del self._jobs[session_id]


def _partial(job: Job) -> PartialText:
    log = job.log
    return PartialText(job.context.lease, job.number, log.partial_text, log.thoughts, log.thought_seconds)
