"""Makes the log of a turn that another process runs, of what that process writes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from graph.core.client_call import waiting_calls
from graph.core.close_turn import INTERRUPTED, closed_mark, ending_of, is_archived
from graph.core.turn import text_of
from graph.event import AnswerRestarted, TokenDelta, ToolFinished, ToolStarted, TurnFailed, TurnStarted
from graph.store.turn import TurnRow
from graph.view import ToolStep
from graph.worker.archived_turn import answers_in, last_event, steps_in
from graph.worker.turn_log import TurnLog


class DistantTurn:
    """One attempt of a turn of another process, told by its rows.

    Usage:
        >>> distant = DistantTurn(row, said)
        >>> distant.take(row_of_later, said_by_then)
        >>> distant.log.view().text
        'The budget is'

    Text comes by the half second, tool calls once their answer is archived, and folds aren't told.

    Attributes:
        log: Its events; over once the turn has ended, or another attempt has begun.

    Args:
        row: The turn as it is now.
        said: The messages of its last attempt so far, in order.
        begin: How many of these the log begins behind: those before its program answered.
    """

    def __init__(self, row: TurnRow, said: Sequence[AnyMessage], *, begin: int = 0) -> None:
        before = said[:begin]
        answers, steps = "\n\n".join(answers_in(before)), tuple(steps_in(before))
        self.log = TurnLog(row.number, row.attempt, said=answers, steps=steps, is_copy=True)
        self._taken = begin
        self._saying = ""
        self.log.append(TurnStarted(row.session_id, row.number, row.attempt))
        self.take(row, said)

    def take(self, row: TurnRow, said: Sequence[AnyMessage]) -> None:
        """Adds what is new since the last reading."""
        if row.attempt != self.log.place[1]:
            self.fail(INTERRUPTED)
        if self.log.is_over:
            return
        if row.stop_requested:
            self.log.stop.set()
        waiting = {call.id for call in waiting_calls(said)} if row.status == "requires_action" else set()
        steps = {step.call_id: step for step in steps_in(said) if step.call_id not in waiting}
        for message in said[self._taken :]:
            self._add(message, steps)
        self._taken = max(self._taken, len(said))
        if row.status != "running":
            self.log.append(last_event(row, said))
        elif not is_archived(row.partial_text, said):
            self._say(row.partial_text)

    def abandon(self, row: TurnRow, said: Sequence[AnyMessage]) -> None:
        """Ends the log of a turn whose process died, as it is shown until the next message closes it."""
        status, code = ending_of(said, stop_requested=row.stop_requested)
        self.take(replace(row, status=status, error_code=code), said)

    def fail(self, code: str) -> None:
        """Ends the log of an attempt of which nothing is told any more."""
        if not self.log.is_over:
            self.log.append(TurnFailed(self.log.place[0], code, ""))

    def _add(self, message: AnyMessage, steps: dict[str, ToolStep]) -> None:
        if isinstance(message, ToolMessage):
            step = steps[message.tool_call_id]
            is_error, seconds = step.status == "error", step.seconds or 0.0
            self.log.append(ToolFinished(step.call_id, step.name, step.result, is_error, seconds, step.turns))
        elif isinstance(message, AIMessage):
            mark = closed_mark(message)
            if mark is None or mark.get("is_partial"):
                self._say(text_of(message))
            for begun in filter(None, (steps.get(str(call["id"])) for call in message.tool_calls)):
                self.log.append(ToolStarted(begun.call_id, begun.name, begun.arguments))
            if message.tool_calls:
                self._saying = ""

    def _say(self, text: str) -> None:
        """Adds what is new of the newest answer; one that doesn't go on as it began was begun anew."""
        if not text.startswith(self._saying):
            if text.strip() == self._saying.strip():
                return
            self.log.append(AnswerRestarted())
            self._saying = ""
        if text != self._saying:
            self.log.append(TokenDelta(text[len(self._saying) :]))
            self._saying = text
