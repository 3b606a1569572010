"""One attempt of a turn as its followers see it, and the response to a program: usage and end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.attached import images_of, urls_of
from graph.core.turn import (
    LEFT_OUT,
    closed_mark,
    closing_messages,
    ending_of,
    is_complete,
    is_cut,
    is_edited,
    is_endless,
    is_final_answer,
    text_of,
    unanswered_calls,
)
from graph.model.factory import ChatModels
from graph.recognise.client_turns import is_imported, said_by, sent_ids, waiting_calls
from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.store.call import AttemptTokens, CallCost
from graph.store.session import SessionRow
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow
from graph.value.client import ClientUsage, CompletionEnd, FinishReason, FoundResponse, Matched
from graph.value.error import BusyError, NotFoundError, RefusedError
from graph.value.event import ActionRequired, Event, LeftOut, TokenDelta, TurnFinished
from graph.value.view import LiveTurn, TurnView
from graph.worker.turn_log import TurnLog, answers_in, last_event, pending_in, steps_in
from prompt.system.framing import CLOSED_ANSWER, Language

_ID_PREFIX: Final = "chatcmpl-"
_UNANSWERED: Final = frozenset(text for (closing, _), text in CLOSED_ANSWER.items() if closing == "unanswered")
# A session's id, and the numbers of turn, attempt and response.
_RESPONSE_ID: Final = re.compile(r"chatcmpl-(.{1,200})_(\d{1,9})_(\d{1,9})_(\d{1,9})", re.ASCII)


@dataclass(eq=False)
class Response:
    """A `graph.value.client.Completion` over a log of events.

    Attributes:
        log: All events, for a stored response.
        tell_stop: Ends the turn, in whichever process it runs.
    """

    id: str
    created: int
    session_id: str
    turn: int
    matched: Matched
    log: TurnLog
    read_completion_end: Callable[[], CompletionEnd]
    request_stop: Callable[[], None]

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one; returns what ends that."""
        return self.log.watch(on_event)

    def stop(self) -> None:
        """Ends the turn if it still runs; what was said is kept."""
        self.log.stop.set()
        if not self.log.is_over:
            self.request_stop()

    def end(self) -> CompletionEnd:
        """Returns the finish reason, usage and figures of the whole response."""
        return self.read_completion_end()


def response_id(*parts: object) -> str:
    """Returns the id of a response: the same parts, the same id."""
    return _ID_PREFIX + "_".join(map(str, parts))


def read_response_id(name: str) -> tuple[str, int, int, int] | None:
    """Returns the session, turn, attempt and ordinal that an id was made of; None if it wasn't made of them."""
    parts = _RESPONSE_ID.fullmatch(name)
    return None if parts is None else (parts[1], int(parts[2]), int(parts[3]), int(parts[4]))


def stored_log(turn: int, attempt: int, messages: Sequence[AnyMessage]) -> TurnLog:
    """Returns the log of an earlier response: its whole text at once, then its last event.

    A call without a result is left for the program to answer.
    """
    log = TurnLog(turn, attempt)
    if left_out := _left_out(messages):
        log.append(LeftOut(left_out))
    if sent := _sent_text(messages):
        log.append(TokenDelta(sent))
    last, calls = next(each for each in reversed(messages) if isinstance(each, AIMessage)), waiting_calls(messages)
    text = text_of(last)
    log.append(ActionRequired(turn, str(last.id), text, calls) if calls else TurnFinished(turn, str(last.id), text))
    return log


def _sent_text(messages: Iterable[AnyMessage]) -> str:
    """Returns the text of a response, without the fixed sentences that replace a missing answer."""
    sent = ""
    for message in messages:
        mark = closed_mark(message)
        text = text_of(message) if isinstance(message, AIMessage) and (not mark or mark.get("is_partial")) else ""
        sent += f"\n\n{text}" if text and sent.strip() else text
    return sent


NO_END: Final = 2**62  # behind every position and every call
ALL: Final = range(1, NO_END)


@dataclass(frozen=True)
class ResponseKey:
    """Identifies a response: one per turn, and one more each time its program answered calls.

    Attributes:
        ordinal: Number within the attempt, from 1.
        asked: Hash of the request.
        positions: Archive positions of its messages.
        calls: Numbers of its model calls within the attempt.
    """

    session_id: str
    turn: int
    attempt: int
    ordinal: int
    asked: bytes
    started_at: datetime
    positions: range = ALL
    calls: range = ALL


def messages_of(stores: ChatStores, response_key: ResponseKey) -> list[AnyMessage]:
    """Returns the messages of a response in order: answers, and the results of tools that were run for it."""
    return _exchange_of(stores, response_key)[1]


def _exchange_of(stores: ChatStores, response_key: ResponseKey) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Returns what a response answers, and its own messages; of any attempt."""
    entries = stores.archive.all_of_turn(response_key.session_id, response_key.turn)
    asked = [entry.message for entry in entries if entry.message.type == "human"] if response_key.ordinal == 1 else []
    made = [
        entry.message
        for entry in entries
        if entry.attempt == response_key.attempt and entry.position in response_key.positions
    ]
    ours = (index for index, message in enumerate(made) if isinstance(message, AIMessage) and not is_imported(message))
    first = next(ours, len(made))
    # What a program brought behind the calls, with its user's next words, is no part of the response.
    return asked + made[:first], [*takewhile(lambda message: not is_imported(message), made[first:])]


def read_end(access: SessionAccess, response_key: ResponseKey, matched: Matched) -> CompletionEnd:
    """Returns how a response ended, its usage and its figures; `NotFoundError` if the session was deleted."""
    access.own(response_key.session_id)
    costs = [
        cost
        for cost in access.stores.calls.costs(response_key.session_id, response_key.turn, response_key.attempt)
        if cost.ordinal in response_key.calls
    ]
    row = access.stores.turns.get(response_key.session_id, response_key.turn)
    messages = messages_of(access.stores, response_key)
    figures = {**_figures(access.stores, response_key, matched, costs), "left_out": [*_left_out(messages)]}
    return CompletionEnd(_finish_reason(row, messages), usage_of(costs), figures)


def found_response(access: SessionAccess, response_keys: Sequence[ResponseKey], ordinal: int) -> FoundResponse:
    """Returns a response as it stands now; the keys are those of all responses of its attempt."""
    stores, response_key = access.stores, response_keys[ordinal - 1]
    session_id, turn, attempt = response_key.session_id, response_key.turn, response_key.attempt
    session = access.own(session_id)
    row, is_abandoned = _refreshed(access, stores.turns.get(session_id, turn))
    rows = [each for each in (row, *stores.turns.aside(session_id, turn, turn)) if each.attempt == attempt]
    is_newest = attempt == row.attempt and response_key is response_keys[-1]
    is_running = is_newest and row.status == "running" and not is_abandoned
    asked, said = _exchange_of(stores, response_key)
    said = [] if is_running else _as_said(said)
    calls, ids = (
        waiting_calls(said),
        sent_ids([entry.message for entry in stores.archive.all_of_turn(session_id, turn)]),
    )
    ending, code = ending_of(said, stop_requested=is_newest and row.stop_requested)
    return FoundResponse(
        int(response_key.started_at.timestamp()),
        session_id,
        rows[0].model if rows else row.model,
        status="running" if is_running else "finished" if calls else ending,
        asked=tuple(said_by(message, stores.images.get(session_id, urls_of(message)), ids) for message in asked),
        text=_sent_text(said) or (row.partial_text if is_newest and is_abandoned else ""),
        thoughts=stores.turns.thoughts(session_id, turn, attempt) if said and rows and len(response_keys) == 1 else "",
        calls=calls,
        end=None if is_running else read_end(access, response_key, "retry"),
        error_code=code,
        error_detail=rows[0].error_detail if rows else "",
        is_alone=session.turn_count == attempt == len(response_keys) == 1 and row.attempt == 1,
        stop=partial(_stop, access, row) if is_running else lambda: None,
    )


def _stop(access: SessionAccess, row: TurnRow) -> None:
    log = access.log_of(row)
    if log is not None and not log.is_over:
        log.stop.set()
        access.stores.turns.request_stop(row.session_id, row.number)
        log.wait_for_end(AFTERMATH_SECONDS)


def _as_said(messages: list[AnyMessage]) -> list[AnyMessage]:
    """Drops what closed a turn whose program never answered the calls: the response had ended with them."""
    if not messages or text_of(messages[-1]) not in _UNANSWERED or closed_mark(messages[-1]) is None:
        return messages
    *said, closing = messages
    return [message for message in said if not str(message.id).startswith(f"{closing.id}-")]


def _left_out(messages: Sequence[AnyMessage]) -> tuple[str, ...]:
    """Returns what the calls behind these answers weren't sent."""
    parts = (part for message in messages for part in message.additional_kwargs.get(LEFT_OUT, ()))
    return tuple(dict.fromkeys(parts))


def _finish_reason(row: TurnRow, messages: Sequence[AnyMessage]) -> FinishReason:
    if unanswered_calls(messages):
        return "tool_calls"
    if row.error_code == RefusedError.code:
        return "content_filter"
    return "length" if messages and is_cut(messages[-1]) else "stop"


def usage_of(costs: Sequence[CallCost]) -> ClientUsage | None:
    """Returns the sum of what was reported; None if there was no call, or one of them wasn't reported."""
    inputs = [cost.usage_input_tokens for cost in costs if cost.usage_input_tokens is not None]
    outputs = [cost.usage_output_tokens for cost in costs if cost.usage_output_tokens is not None]
    if not costs or len(inputs) < len(costs) or len(outputs) < len(costs):
        return None
    cached = [cost.usage_cached_tokens for cost in costs if cost.usage_cached_tokens is not None]
    return ClientUsage(sum(inputs), sum(outputs), sum(cached) if cached else None)


def _figures(
    stores: ChatStores, response_key: ResponseKey, matched: Matched, costs: Sequence[CallCost]
) -> Mapping[str, Any]:
    """Returns what the memory did, as `docs/api.md` lists it; sent and full tokens are our estimates."""
    sums = stores.records.sums(response_key.session_id)
    client_changes, lost_tokens = stores.blocks.losses(response_key.session_id, "client")
    answers = [cost for cost in costs if cost.kind == "answer"]
    return {
        "session": response_key.session_id,
        "turn": response_key.turn,
        "matched": matched,
        "records": sums.record_count,
        "folded_turns": sums.folded_turn_count,
        "sent_tokens_estimate": sum(cost.sent_tokens for cost in answers),
        "full_tokens_estimate": sum(cost.full_tokens for cost in answers),
        "fold_tokens": sums.input_tokens + sums.output_tokens,
        "system_changes": client_changes,
        "lost_tokens_estimate": lost_tokens,
    }


def views_of(access: SessionAccess, session: SessionRow, rows: Sequence[TurnRow]) -> tuple[TurnView, ...]:
    """Returns turns of a session, which follow one another, each in its last attempt."""
    session_id = session.session_id
    last_row, is_abandoned = _refreshed(access, rows[-1])
    by_turn: dict[int, list[AnyMessage]] = {}
    said: dict[int, int] = {}
    for entry in access.stores.archive.live_turns(session_id, rows[0].number, rows[-1].number):
        by_turn.setdefault(entry.turn, []).append(entry.message)
        if isinstance(entry.message, AIMessage):
            said[entry.turn] = said.get(entry.turn, 0) + entry.tokens
    if is_abandoned:
        language = access.stores.state(session_id).language
        last_row, by_turn[last_row.number] = _as_closed(last_row, by_turn.get(last_row.number, []), language)
    attempts: dict[int, list[int]] = {}
    for aside in access.stores.turns.aside(session_id, rows[0].number, rows[-1].number):
        attempts.setdefault(aside.number, []).append(aside.attempt)
    tokens = access.stores.calls.tokens(session_id, rows[0].number, rows[-1].number)
    views = (
        replace(
            _turn_view(row, by_turn.get(row.number, []), is_last=row.number == session.turn_count),
            attempts=_with_own(attempts.get(row.number, ()), row),
        )
        for row in (*rows[:-1], last_row)
    )
    return tuple(
        _with_tokens(view, tokens.get((view.number, view.attempt)), said.get(view.number, 0)) for view in views
    )


def _with_own(attempts: Iterable[int], row: TurnRow) -> tuple[int, ...]:
    """Returns the attempts of a turn that has others than that of its row; () while it runs or waits."""
    others = set(attempts)
    return tuple(sorted({*others, row.attempt})) if others and not row.is_open else ()


def view_aside(access: SessionAccess, session: SessionRow, number: int, attempt: int) -> TurnView:
    """Returns a turn as an attempt answered it that needn't be the one that counts; `NotFoundError` without one."""
    session_id, stores = session.session_id, access.stores
    row = stores.turns.get(session_id, number)
    rows = stores.turns.aside(session_id, number, number)
    own = next((each for each in (row, *rows) if each.attempt == attempt), None)
    entries = stores.archive.all_of_turn(session_id, number)
    entries = [each for each in entries if each.attempt == attempt or each.message.type == "human"]
    messages = [each.message for each in entries]
    if own is None or not is_complete(messages):
        raise NotFoundError(str(attempt))
    view = _turn_view(own, messages, is_last=number == session.turn_count)
    said_tokens = sum(each.tokens for each in entries if isinstance(each.message, AIMessage))
    view = _with_tokens(view, stores.calls.tokens(session_id, number, number).get((number, attempt)), said_tokens)
    return replace(view, attempts=_with_own([each.attempt for each in rows], row))


def read_turn(access: SessionAccess, session_id: str, number: int) -> tuple[TurnView, TurnRow, Sequence[AnyMessage]]:
    """Returns one turn in its last attempt, with its row and messages; `NotFoundError` if there is none."""
    session = access.own(session_id)
    row, is_abandoned = _refreshed(access, access.stores.turns.get(session_id, number))
    messages = [entry.message for entry in access.stores.archive.live_turns(session_id, number, number)]
    if is_abandoned:
        row, messages = _as_closed(row, messages, access.stores.state(session_id).language)
    return _turn_view(row, messages, is_last=number == session.turn_count), row, messages


def _refreshed(access: SessionAccess, row: TurnRow) -> tuple[TurnRow, bool]:
    """Returns the newest turn's row, and whether its worker died without ending it."""
    if row.status != "running" or access.is_running(row.session_id):
        return row, False
    # The turn may have ended between reading its row and looking for its worker.
    row = access.stores.turns.get(row.session_id, row.number)
    return row, row.status == "running"


def _with_tokens(view: TurnView, tokens: AttemptTokens | None, said_tokens: int) -> TurnView:
    """Adds what a turn's calls tell; `said_tokens` is our estimate of its answers, unless all was reported."""
    if tokens is None:
        return view
    return replace(
        view,
        model=view.model or tokens.model,
        input_tokens=tokens.input_tokens,
        output_tokens=tokens.output_tokens if tokens.is_usage else said_tokens,
        is_usage=tokens.is_usage,
    )


def _turn_view(row: TurnRow, messages: Sequence[AnyMessage], *, is_last: bool) -> TurnView:
    """Builds the view of a turn from its row and the messages of its last attempt, in order."""
    asked = next((message for message in messages if isinstance(message, HumanMessage)), None)
    return TurnView(
        number=row.number,
        attempt=row.attempt,
        status=row.status,
        user_text=text_of(asked) if asked else "",
        answer_text="\n\n".join(answers_in(messages)),
        steps=tuple(step for step in steps_in(messages) if row.status != "asking" or step.status != "running"),
        error_code=row.error_code,
        error_detail=row.error_detail,
        model=row.model,
        is_last=is_last,
        is_cut=row.status == "finished" and bool(messages) and is_cut(messages[-1]),
        is_endless=row.status == "finished" and bool(messages) and is_endless(messages[-1]),
        is_edited=bool(messages) and is_edited(messages[-1]),
        client=row.client,
        user_message_id=row.user_message_id,
        answer_message_id=next((str(message.id) for message in messages[-1:] if is_final_answer(message)), ""),
        thought_seconds=row.thought_seconds,
        started_at=row.started_at,
        seconds=(row.finished_at - row.started_at).total_seconds() if row.finished_at else 0.0,
        images=images_of(asked) if asked else (),
        pending=pending_in(row, messages),
    )


def _as_closed(row: TurnRow, messages: list[AnyMessage], language: Language) -> tuple[TurnRow, list[AnyMessage]]:
    """Returns an abandoned turn as the next message will close it; nothing is written."""
    status, code = ending_of(messages, stop_requested=row.stop_requested)
    if not is_complete(messages) and status != "finished":
        closing = closing_messages(
            messages,
            status=status,
            code=code,
            partial_text=row.partial_text,
            language=language,
            message_id="",
            had_begun=not row.client,
        )
        messages = [*messages, *closing]
    return replace(row, status=status, error_code=code), messages


class EndedTurn(NamedTuple):
    """A turn that is over: its view, its last event, and its figures."""

    view: TurnView
    event: Event
    end: CompletionEnd


@dataclass(frozen=True)
class TurnStream:
    """One attempt of a turn, from `service.turns.stream`.

    if stream and stream.has_events:
        detach = stream.watch(wake)  # then `stream.events(after=3)` each time it wakes
    """

    _access: SessionAccess
    _models: ChatModels
    _session: SessionRow
    _row: TurnRow
    _log: TurnLog | None

    @property
    def turn(self) -> int:
        """The turn's number."""
        return self._row.number

    @property
    def attempt(self) -> int:
        """The attempt's number."""
        return self._row.attempt

    @property
    def id(self) -> str:
        """The id of its answer in OpenAI's shape."""
        return response_id(self._row.session_id, self.turn, self.attempt, 1)

    @property
    def created(self) -> int:
        """When it began, in seconds since 1970."""
        return int(self._row.started_at.timestamp())

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self._row.model or self._models.default_name

    @property
    def project_root(self) -> str:
        """The folder of its session's project, "" for none."""
        return self._session.project_root

    @property
    def has_events(self) -> bool:
        """Whether there are events of it: it runs in some process, or has run in this one."""
        return self._log is not None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or waits for a program, or its server was killed."""
        return self._log is None or self._log.is_over

    @property
    def first_position(self) -> int:
        """Position of its first event; see `TurnLog`."""
        return self._log.first_position if self._log else 1

    def events(self, after: int = 0) -> Sequence[Event]:
        """Returns the events so far without the first `after` of them; it is short, and waits for nothing."""
        return self._log.events(after) if self._log else ()

    def watch(self, on_event: Callable[[Event], None]) -> Callable[[], None]:
        """Passes on all events so far, then each new one; returns what ends that. See `TurnLog.watch`."""
        return self._log.watch(on_event) if self._log else lambda: None

    def progress(self, count: int) -> LiveTurn:
        """Returns the progress after the first `count` events."""
        return (self._log or TurnLog(self.turn, self.attempt)).view_behind(count)

    def end(self) -> CompletionEnd:
        """Returns finish reason, usage and figures of an ended answer; `NotFoundError` if the session was deleted."""
        return self._end_of(self.attempt)

    def ended(self) -> EndedTurn:
        """Returns the stored end of the turn's last attempt.

        Raises:
            NotFoundError: The session was deleted.
            BusyError: Another attempt has begun.
        """
        view, row, messages = read_turn(self._access, self._row.session_id, self.turn)
        if row.status == "running":
            raise BusyError
        return EndedTurn(view, last_event(row, messages), self._end_of(row.attempt))

    def _end_of(self, attempt: int) -> CompletionEnd:
        response_key = ResponseKey(self._row.session_id, self.turn, attempt, 1, b"", datetime.min.replace(tzinfo=UTC))
        return read_end(self._access, response_key, "header")
