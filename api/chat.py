"""`POST /chat`, the events of a session's newest turn, and the session's context."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Final, TypeVar
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.body import BODY_BYTES, SMALL_BODY_BYTES, read_json
from api.chat_request import ChatMessage, Followed, project_root_of, read_context, read_message
from api.chat_stream import ChatStream, has_all
from api.event_id import EventId, parse_event_id
from api.event_stream import EventStream
from api.header import SESSION, TURN
from api.refusal import BY_CODE
from api.route_table import EVENTS, Operation, with_slash
from api.token_guard import ApiClient
from graph.service import ChatService
from graph.service.turn_stream import TurnStream
from graph.value.error import ClosingError, NotFoundError, PathError

_Result = TypeVar("_Result")
_UNKNOWN: Final = EventId(0, 0, 0)
# What the metadata say of a project's rules that aren't used as they stand.
_RULES: Final[Mapping[str, str]] = {"new": "not_agreed", "changed": "changed"}
OPERATIONS: Final = (
    Operation("sendMessage", "POST", "/chat", str, body=ChatMessage, media_types=(EVENTS,), refusals=(404, 409)),
    Operation(
        "followEvents",
        "GET",
        "/chat/{session_id}/events",
        str,
        query=Followed,
        media_types=(EVENTS,),
        refusals=(429,),
        may_be_empty=True,
    ),
    Operation("updateContext", "PUT", "/sessions/{session_id}/context", dict[str, str], body=dict[str, str]),
)


class Chat:
    """The handlers of `/chat`. A client that leaves ends its stream alone: the turn goes on.

    Args:
        service_of: Returns the service of an owner.
        threads: How many of the door's requests may be in the service at once.
    """

    def __init__(self, service_of: Callable[[str], ChatService], threads: anyio.CapacityLimiter) -> None:
        self._service_of = service_of
        self._threads = threads
        self._streams: set[ChatStream] = set()
        self._is_closed = False

    def routes(self) -> list[Route]:
        """Returns the routes; what stands before them sets `request.state.client` and answers our errors."""
        handlers = {"sendMessage": self.send, "followEvents": self.follow, "updateContext": self.update_context}
        return [
            route
            for operation in OPERATIONS
            for route in with_slash(operation.path, handlers[operation.name], [operation.method])
        ]

    def close(self) -> None:
        """Ends all streams with an error, as the server ends, and refuses further ones; from any thread."""
        self._is_closed = True
        for stream in list(self._streams):
            stream.close(BY_CODE["closing"])

    async def send(self, request: Request) -> Response:
        """Sends a message, and streams its turn."""
        service, client = await self._service(request), request.state.client
        body = await read_json(request, read_message, most_bytes=BODY_BYTES)
        session_id, turn = await self._in_thread(partial(_send, service, body, client))
        return await self._streamed(service, session_id, turn, None, body.context)

    async def follow(self, request: Request) -> Response:
        """Streams the newest turn from where the client was; 204 if it has all of it."""
        service, session_id = await self._service(request), request.path_params["session_id"]
        said = request.headers.get("last-event-id") or request.query_params.get("after")
        after = (parse_event_id(said) or _UNKNOWN) if said else None
        turn = await self._in_thread(partial(service.turns.stream, session_id))
        if turn is None or await self._in_thread(partial(has_all, turn, after)):
            return Response(status_code=204)
        return await self._streamed(service, session_id, turn, after, {})

    async def update_context(self, request: Request) -> Response:
        """Takes over what the user is at, for the turns that begin from now on."""
        service, session_id = await self._service(request), request.path_params["session_id"]
        context = await read_json(request, read_context, most_bytes=SMALL_BODY_BYTES)
        told = await self._in_thread(partial(_update_context, service, session_id, context))
        return JSONResponse(dict(told))

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

    async def _in_thread(self, action: Callable[[], _Result]) -> _Result:
        return await anyio.to_thread.run_sync(action, limiter=self._threads)


def _send(service: ChatService, body: ChatMessage, client: ApiClient) -> tuple[str, TurnStream]:
    """Begins the turn, and returns it with its session."""
    session_id = body.session_id or service.sessions.new_id(body.options.message_id)
    if body.session_id:
        service.turns.stream(session_id)  # a name that is nobody's makes no session
    options = body.turn_options(client)
    number = service.turns.send(session_id, body.message, message_id=body.options.message_id, options=options)
    if (turn := service.turns.stream(session_id, number)) is None:
        raise NotFoundError(session_id)
    return session_id, turn


def _update_context(service: ChatService, session_id: str, context: dict[str, str]) -> Mapping[str, str]:
    if (root := project_root_of(context)) is not None:
        service.sessions.configure(session_id, project_root=root)
    return service.sessions.update_context(session_id, context)


def _rules_of(service: ChatService, turn: TurnStream, context: Mapping[str, str]) -> dict[str, str]:
    """Returns what is said of the project's rules: nothing if all that stand there are agreed to."""
    try:
        rules = service.projects.rules(turn.project_root, current_file=context.get("currentFile", ""))
    except PathError:
        return {}
    return {"rules": _RULES[rules.state]} if rules.state in _RULES else {}
