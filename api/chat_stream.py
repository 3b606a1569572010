"""Follows a turn for one client: by its events, or by what the tables tell once nobody has these any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final, Protocol, TypeVar

from api.chat_writer import KEEP_ALIVE, RETRY, ChatWriter
from api.chunk_writer import CompletionHead, failure_line
from api.event_id import END, EventId
from api.problem import Problem
from api.refusal import problem_of
from graph.service.turn_stream import TurnStream
from graph.value.client import CompletionEnd
from graph.value.error import TurnfoldError
from graph.value.event import ActionRequired, TurnFailed, TurnFinished, TurnStopped

KEEP_ALIVE_SECONDS: Final = 10.0
LAST_EVENTS: Final = (TurnFinished, TurnFailed, TurnStopped, ActionRequired)
_UNTOLD: Final = CompletionEnd("stop", None, {})
_Result = TypeVar("_Result")


class InThread(Protocol):
    """Runs what blocks in one of the door's threads."""

    def __call__(self, action: Callable[[], _Result], /) -> Awaitable[_Result]:
        """Returns what the action returns."""
        ...


class Bell:
    """Wakes one coroutine of the loop that runs now, from any thread; how often it rang doesn't count."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self._is_rung = False

    def ring(self, _: object = None) -> None:
        """Wakes it; does nothing once the loop has ended."""
        if not self._is_rung and not self._loop.is_closed():
            self._is_rung = True
            self._loop.call_soon_threadsafe(self._rung.set)

    async def heard(self, *, seconds: float) -> bool:
        """Whether it rang since the last call, or does so within this time."""
        try:
            await asyncio.wait_for(self._rung.wait(), seconds)
        except TimeoutError:
            return False
        self._rung.clear()
        self._is_rung = False
        return True


class ChatStream:
    """The lines of one client's stream.

        stream = ChatStream(turn, None, in_thread)
        async for line in stream.lines({"conversationId": session_id}): ...

    Args:
        turn: The turn to follow.
        after: The last event that the client has, None for none.
        in_thread: Runs what blocks.
    """

    def __init__(self, turn: TurnStream, after: EventId | None, in_thread: InThread) -> None:
        self._turn = turn
        self._after = after
        self._in_thread = in_thread
        self._bell = Bell()
        self._problem: Problem | None = None

    def close(self, problem: Problem) -> None:
        """Ends the stream with an error, from any thread; the client may come again."""
        self._problem = problem
        self._bell.ring()

    async def lines(self, metadata: Mapping[str, str]) -> AsyncGenerator[bytes]:
        """Yields the lines: from the beginning, what follows the last event that is known, or a snapshot and the rest.

        Args:
            metadata: Told at the beginning, not if the client comes again.
        """
        head = CompletionHead(self._turn.id, self._turn.created, self._turn.model)
        writer = ChatWriter(head, self._turn.turn, self._turn.attempt, self._turn.first_place)
        yield writer.start(metadata) if self._after is None else RETRY + b"\n"
        lines = self._from_log(writer) if self._turn.has_events else self._from_tables(writer)
        try:
            async with aclosing(lines):
                async for line in lines:
                    yield line
        except TurnfoldError as error:
            self._problem = problem_of(error)
        if self._problem is not None:
            yield failure_line(self._problem)

    async def _from_log(self, writer: ChatWriter) -> AsyncGenerator[bytes]:
        """Yields the lines of a turn whose events are in this process."""
        turn = self._turn
        detach = turn.watch(self._bell.ring)
        try:
            seq, is_known = known_events(turn, self._after)
            if not is_known:
                yield writer.snapshot(turn.progress(seq), seq)
            while self._problem is None:
                was_over, events = turn.is_over, turn.events(seq)
                is_over = bool(events) and isinstance(events[-1], LAST_EVENTS)
                for line in writer.events(events[: len(events) - is_over], seq, turn.progress):
                    yield line
                seq += len(events)
                if is_over or was_over:
                    last, behind = writer.end(turn.events(seq - 1)[0], await self._end(), seq)
                    yield last + behind if is_over else behind
                    return
                if not await self._bell.heard(seconds=KEEP_ALIVE_SECONDS):
                    yield KEEP_ALIVE
        finally:
            detach()

    async def _from_tables(self, writer: ChatWriter) -> AsyncGenerator[bytes]:
        """Yields a turn that has ended as it is shown, and its end."""
        ended = await self._in_thread(self._turn.ended)
        yield writer.snapshot(ended.view, 0)
        for line in writer.end(ended.event, ended.end, None):
            yield line

    async def _end(self) -> CompletionEnd:
        try:
            return await self._in_thread(self._turn.end)
        except TurnfoldError:
            return _UNTOLD  # the answer counts, and is there


def has_all(turn: TurnStream, after: EventId | None) -> bool:
    """Whether the client has the turn's last line, so that nothing follows."""
    if after is None or after[:2] != (turn.turn, turn.attempt) or not turn.is_over:
        return False
    return after.seq == (turn.first_place + len(turn.events()) if turn.has_events else END)


def known_events(turn: TurnStream, after: EventId | None) -> tuple[int, bool]:
    """Returns how many of the turn's events need not be sent, and whether the client has had them."""
    if after is None:
        return 0, True
    events = turn.events()
    if after[:2] == (turn.turn, turn.attempt) and after.seq != END:
        count = after.seq - turn.first_place + 1
        if 1 <= count <= len(events):
            return count, True
    return len(events) - isinstance(events[-1], LAST_EVENTS), False
