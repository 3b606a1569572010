"""`POST /chat`, and the event stream of a session's newest turn."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from api.body import BODY_BYTES, read_json
from api.completion_stream import DONE, ChunkWriter, CompletionHead, data_line, failure_line
from api.event_stream import EventQueue, EventStream
from api.middleware import ApiClient
from api.problem import BY_CODE, Problem, ProblemError, problem_of, problem_of_failure
from api.request import SESSION, TURN, parse_model_id, validated
from api.route_table import EVENTS, Operation
from graph.service import ChatService
from graph.service.turn_stream import TurnStream
from graph.value.client import CompletionEnd
from graph.value.error import ClosingError, NotFoundError, PathError, TurnfoldError
from graph.value.event import (
    LAST_EVENTS,
    AnswerRestarted,
    Event,
    ThoughtDelta,
    TokenDelta,
    TurnFailed,
)
from graph.value.view import FoldWhen, LiveTurn, TurnOptions, TurnView

_PROJECT_ROOT: Final = "projectRoot"
_Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class _Exact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ChatOptions(_Exact):
    """Settings of the session, from this message on; absent or null keeps them.

    Attributes:
        message_id: The sender's id of the message: sending it again makes no second turn.
        time_zone: IANA name of the user's time zone.
    """

    compression_rate: Annotated[float, Field(ge=0.1, le=0.5)] | None = None
    strategy: str | None = None
    fold_when: FoldWhen | None = None
    model: Annotated[str, StringConstraints(max_length=256)] | None = None
    project_root: Annotated[str, StringConstraints(max_length=4_096)] | None = None
    has_memory: bool | None = None
    time_zone: Annotated[str, StringConstraints(max_length=64)] = ""
    message_id: _Id | None = None


class ChatMessage(_Exact):
    """The body of `POST /chat`.

    Attributes:
        message: What the user says.
        session_id: The session to go on with; a new one without it.
        context: What the user is at: `currentFile`, `selection`, `projectRoot`; other keys aren't sent to the model.
    """

    message: str
    session_id: _Id | None = None
    context: dict[str, str] = {}
    options: ChatOptions = ChatOptions()

    def turn_options(self, client: ApiClient) -> TurnOptions:
        chosen = self.options
        root = project_root_of(self.context) if chosen.project_root is None else chosen.project_root
        return TurnOptions(
            compression_rate=chosen.compression_rate,
            strategy=chosen.strategy,
            fold_when=chosen.fold_when,
            model=None if chosen.model is None else parse_model_id(chosen.model)[0] or None,
            project_root=root,
            has_memory=chosen.has_memory,
            time_zone=chosen.time_zone,
            context=self.context,
            client=client.options(),
        )


class Followed(BaseModel):
    """The query of the event stream: resumes after the event id in `after`, or in the header `Last-Event-ID`."""

    after: str = ""


def project_root_of(context: dict[str, str]) -> str | None:
    """Returns the project root of an editor context, None if it is missing or blank."""
    return root if (root := context.get(_PROJECT_ROOT, "")).strip() else None


# Stands for the last event's number if the turn's log is gone and the events can't be counted.
END: Final = "end"
_ID: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,16}|end)", re.ASCII)


class EventId(NamedTuple):
    """The id of a server-sent event.

    `seq` counts from `TurnStream.first_position`, 0 for a snapshot of a turn without a log.
    """

    turn: int
    attempt: int
    seq: int | Literal["end"]

    def __str__(self) -> str:
        return f"{self.turn}.{self.attempt}.{self.seq}"


def parse_event_id(text: str) -> EventId | None:
    """Parses an event id such as "3.1.7"; None if the text isn't one."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    turn, attempt, seq = found.groups()
    return EventId(int(turn), int(attempt), "end" if seq == END else int(seq))


KEEP_ALIVE: Final = b":\n\n"
RETRY: Final = b"retry: 2000\n"
_INNER_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


class ChatWriter:
    """Serialises the events of one attempt as server-sent events.

    Consecutive deltas of text, or of thoughts, become one chunk with the id of the last delta.
    """

    def __init__(self, head: CompletionHead, turn: int, attempt: int, first_position: int) -> None:
        self._chunks = ChunkWriter(head)
        self._turn = turn
        self._attempt = attempt
        self._before_first = first_position - 1

    def start(self, metadata: Mapping[str, str]) -> bytes:
        return RETRY + data_line({"metadata": dict(metadata)}) + self._chunks.start()

    def events(self, events: Sequence[Event], after: int, progress: Callable[[int], LiveTurn]) -> Iterator[bytes]:
        """Yields the lines of events, none of which ends the turn; `after` events of the attempt come before them."""
        for kind, run in groupby(enumerate(events, after + 1), key=lambda item: type(item[1])):
            items = list(run)
            if kind is TokenDelta or kind is ThoughtDelta:
                text = "".join(event.text for _, event in items if isinstance(event, TokenDelta | ThoughtDelta))
                yield self._id(items[-1][0]) + self._chunks.delta(kind(text))
                continue
            for seq, event in items:
                # After a snapshot the client can't compute from the deltas alone which text is void.
                payload = _said(progress(seq)) if isinstance(event, AnswerRestarted) else asdict(event)
                yield self._named(_name(event), payload, seq)

    def snapshot(self, seen: LiveTurn | TurnView, seq: int) -> bytes:
        """Returns the whole turn, which replaces everything sent before."""
        steps = [asdict(step) for step in seen.steps]
        payload: dict[str, Any] = {"turn": seen.number, "attempt": seen.attempt, "steps": steps}
        if isinstance(seen, LiveTurn):
            payload |= {"status": "running", "phase": seen.phase, "phase_turns": seen.phase_turns, **_said(seen)}
        else:
            payload |= {"status": seen.status, "text": seen.answer_text}
        return self._named("snapshot", payload, seq)

    def end(self, event: Event, end: CompletionEnd, seq: int | None) -> tuple[bytes, bytes]:
        """Returns the last event with usage and figures, and the closing lines: last chunk or error, `[DONE]`."""
        payload: dict[str, Any] = asdict(event)
        if isinstance(event, TurnFailed):
            problem = problem_of_failure(event.code, event.detail)
            payload = {"turn": event.turn, "code": event.code, **problem.body()}
            behind = failure_line(problem) + DONE
        else:
            payload["finish_reason"] = end.finish_reason
            behind = self._chunks.end(end, with_usage=False)
        payload["usage"] = None if end.usage is None else end.usage._asdict()
        payload["figures"] = {key: value for key, value in end.figures.items() if key != "matched"}
        last = _id_line(EventId(self._turn, self._attempt, END)) if seq is None else self._id(seq + 1)
        return self._named(_name(event), payload, seq), last + behind

    def _named(self, name: str, payload: Mapping[str, Any], seq: int | None) -> bytes:
        event_id = b"" if seq is None else self._id(seq)
        return event_id + f"event: {name}\n".encode() + data_line(payload)

    def _id(self, seq: int) -> bytes:
        return _id_line(EventId(self._turn, self._attempt, self._before_first + seq))


def _id_line(event_id: EventId) -> bytes:
    return f"id: {event_id}\n".encode()


def _name(event: Event) -> str:
    return _INNER_CAPITAL.sub("_", type(event).__name__).lower()


def _said(now: LiveTurn) -> dict[str, Any]:
    return {"text": now.text, **({"thoughts": now.thoughts} if now.thoughts else {})}


KEEP_ALIVE_SECONDS: Final = 10.0
_UNTOLD: Final = CompletionEnd("stop", None, {})


class InThread(Protocol):
    def __call__(self, action: Callable[[], _Result], /) -> Awaitable[_Result]: ...


class ChatStream:
    """The lines of one client's stream, from after the last event it received; `in_thread` runs blocking calls."""

    def __init__(self, turn: TurnStream, after: EventId | None, in_thread: InThread) -> None:
        self._turn = turn
        self._after = after
        self._in_thread = in_thread
        self._queue = EventQueue()

    def close(self, problem: Problem) -> None:
        """Ends the stream with an error, from any thread; the client may reconnect."""
        self._queue.close(problem)

    async def lines(self, metadata: Mapping[str, str]) -> AsyncGenerator[bytes]:
        """Yields the whole turn, or everything after the last known event, or a snapshot and the rest.

        `metadata` comes first.
        """
        head = CompletionHead(self._turn.id, self._turn.created, self._turn.model)
        writer = ChatWriter(head, self._turn.turn, self._turn.attempt, self._turn.first_position)
        if self._after is None:  # who comes back knows, and an event of `retry` alone is none to some clients
            yield writer.start(metadata)
        lines = self._from_log(writer) if self._turn.has_events else self._from_tables(writer)
        try:
            async with aclosing(lines):
                async for line in lines:
                    yield line
        except (ProblemError, TurnfoldError) as error:
            yield failure_line(problem_of(error))

    async def _from_log(self, writer: ChatWriter) -> AsyncGenerator[bytes]:
        turn = self._turn
        known_count, is_known = known_events(turn, self._after)
        if not is_known:
            yield writer.snapshot(turn.progress(known_count), known_count)
        detach = turn.watch(self._queue.put)
        count = 0  # events received so far, the known ones included
        try:
            while True:
                events = await self._queue.get(seconds=KEEP_ALIVE_SECONDS)
                if not events:
                    yield KEEP_ALIVE
                    continue
                fresh = events[max(known_count - count, 0) :]
                count += len(events)
                is_over = isinstance(events[-1], LAST_EVENTS)
                for line in writer.events(fresh[: len(fresh) - is_over], count - len(fresh), turn.progress):
                    yield line
                if is_over:
                    last, behind = writer.end(events[-1], await self._end(), count)
                    yield last + behind if fresh else behind
                    return
        finally:
            detach()

    async def _from_tables(self, writer: ChatWriter) -> AsyncGenerator[bytes]:
        """Yields a finished turn as a snapshot, and its end, from the database."""
        ended = await self._in_thread(self._turn.ended)
        yield writer.snapshot(ended.view, 0)
        for line in writer.end(ended.event, ended.end, None):
            yield line

    async def _end(self) -> CompletionEnd:
        try:
            return await self._in_thread(self._turn.end)
        except TurnfoldError:
            return _UNTOLD  # the answer is complete; only its figures are missing


def has_all(turn: TurnStream, after: EventId | None) -> bool:
    if after is None or after[:2] != (turn.turn, turn.attempt) or not turn.is_over:
        return False
    return after.seq == (turn.first_position + len(turn.events()) if turn.has_events else END)


def known_events(turn: TurnStream, after: EventId | None) -> tuple[int, bool]:
    """Returns how many events of the turn to skip, and False if a snapshot has to replace them."""
    if after is None:
        return 0, True
    events = turn.events()
    if after[:2] == (turn.turn, turn.attempt) and after.seq != END:
        count = after.seq - turn.first_position + 1
        if 1 <= count <= len(events):
            return count, True
    return len(events) - isinstance(events[-1], LAST_EVENTS), False


_Result = TypeVar("_Result")
_UNKNOWN: Final = EventId(0, 0, 0)
# Metadata for the states of project rules that aren't used in their present version.
_RULES: Final[Mapping[str, str]] = {"new": "not_agreed", "changed": "changed"}
SEND: Final = Operation(
    "sendMessage",
    "POST",
    "/chat",
    str,
    summary="Sends a message and streams the turn as events, which goes on if the client leaves.",
    body=ChatMessage,
    media_types=(EVENTS,),
    refusals=(404, 409),
)
FOLLOW: Final = Operation(
    "followEvents",
    "GET",
    "/chat/{session_id}/events",
    str,
    summary="Streams the newest turn from where the client was; 204 if it has all of it.",
    query=Followed,
    media_types=(EVENTS,),
    refusals=(429,),
    may_be_empty=True,
)
_THREADS: Final = 16


class Chat:
    """The handlers of `/chat`. A client that disconnects ends only the stream: the turn goes on."""

    def __init__(self, service_of: Callable[[str], ChatService]) -> None:
        self._service_of = service_of
        self._in_thread: InThread = partial(anyio.to_thread.run_sync, limiter=anyio.CapacityLimiter(_THREADS))
        self._streams: set[ChatStream] = set()
        self._is_closed = False

    def close(self) -> None:
        """Ends all streams with an error at shutdown; from any thread."""
        self._is_closed = True
        for stream in list(self._streams):
            stream.close(BY_CODE["closing"])

    async def send(self, request: Request) -> Response:
        service, client = await self._service(request), request.state.client
        body = await read_json(request, partial(validated, ChatMessage), most_bytes=BODY_BYTES)
        session_id, turn = await self._in_thread(partial(_send, service, body, client))
        return await self._streamed(service, session_id, turn, None, body.context)

    async def follow(self, request: Request) -> Response:
        service, session_id = await self._service(request), request.path_params["session_id"]
        given = request.headers.get("last-event-id") or request.query_params.get("after")
        after = (parse_event_id(given) or _UNKNOWN) if given else None
        turn = await self._in_thread(partial(service.turns.stream, session_id))
        if turn is None or await self._in_thread(partial(has_all, turn, after)):
            return Response(status_code=204)
        return await self._streamed(service, session_id, turn, after, {})

    async def _streamed(
        self,
        service: ChatService,
        session_id: str,
        turn: TurnStream,
        after: EventId | None,
        context: Mapping[str, str],
    ) -> Response:
        if self._is_closed:
            raise ClosingError
        metadata = {"conversationId": session_id}
        if after is None and turn.project_root:
            metadata |= await self._in_thread(partial(_rules_of, service, turn, context))
        headers = {
            "Location": f"/chat/{quote(session_id, safe='')}/events",
            SESSION: quote(session_id, safe=""),
            TURN: str(turn.turn),
        }
        stream = ChatStream(turn, after, self._in_thread)
        return EventStream(self._lines(stream, metadata), headers)

    async def _lines(self, stream: ChatStream, metadata: Mapping[str, str]) -> AsyncGenerator[bytes]:
        self._streams.add(stream)
        try:
            async with aclosing(stream.lines(metadata)) as lines:
                async for line in lines:
                    yield line
        finally:
            self._streams.discard(stream)

    async def _service(self, request: Request) -> ChatService:
        client: ApiClient = request.state.client
        return await self._in_thread(partial(self._service_of, client.owner))


def _send(service: ChatService, body: ChatMessage, client: ApiClient) -> tuple[str, TurnStream]:
    session_id = body.session_id or service.sessions.new_id(body.options.message_id)
    if body.session_id:
        service.turns.stream(session_id)  # an unknown session id is an error, not a new session
    options = body.turn_options(client)
    number = service.turns.send(session_id, body.message, message_id=body.options.message_id, options=options)
    if (turn := service.turns.stream(session_id, number)) is None:
        raise NotFoundError(session_id)
    return session_id, turn


def _rules_of(service: ChatService, turn: TurnStream, context: Mapping[str, str]) -> dict[str, str]:
    """Returns metadata on the project's rules; empty if all of them are agreed to."""
    try:
        rules = service.projects.rules(turn.project_root, current_file=context.get("currentFile", ""))
    except PathError:
        return {}
    return {"rules": _RULES[rules.state]} if rules.state in _RULES else {}
