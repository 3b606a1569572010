"""The routes of `/v1/responses/{id}`: responses of this server, read by their ids as their sessions have them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from api.completion_stream import CompletionHead
from api.problem import refused
from api.request import DEFAULT_ID, PREFIX, UNSUPPORTED
from api.response_stream import ResponseWriter, completion_id
from api.responses import ECHOED
from api.route_table import Call, Operation
from graph.value.client import ClientMessage, FoundResponse
from graph.value.error import NotFoundError

_ITEMS_AT_ONCE: Final = 100


class ReadResponse(BaseModel):
    """The query of a response; what isn't named here is ignored."""

    stream: Annotated[Literal["false", "0"], UNSUPPORTED] = Field(default="false", description="Only false.")


class ListItems(BaseModel):
    """The query of the items that a response answers; what isn't named here is ignored."""

    order: Literal["asc", "desc"] = Field(default="desc", description="Whether the first or the last comes first.")
    limit: int = Field(default=20, ge=1, le=_ITEMS_AT_ONCE, description="How many at most.")
    after: str = Field(default="", max_length=512, description="`last_id` of the page before this one.")


def _found(call: Call) -> FoundResponse:
    try:
        return call.service.completions.find(completion_id(call.path["response_id"]))
    except NotFoundError:
        message = "There is no response of this id, or it was answered without memory."
        raise refused("response_not_found", message, "response_id", status=404) from None


def _told(call: Call, found: FoundResponse) -> dict[str, Any]:
    """Returns the response; what it repeats of its request isn't stored, and is told as if nothing had been named."""
    model = f"{PREFIX}{found.model}" if found.model else DEFAULT_ID
    head = CompletionHead(completion_id(call.path["response_id"]), found.created, model)
    return ResponseWriter(head, {**ECHOED, "truncation": "auto"}).found(found)


def _get(call: Call) -> dict[str, Any]:
    """Returns a response as it stands: finished, in progress, cancelled or failed."""
    return _told(call, _found(call))


def _cancel(call: Call) -> dict[str, Any]:
    """Stops a response that is in progress and returns it; one that has ended is returned as it is."""
    _found(call).stop()
    return _told(call, _found(call))


def _delete(call: Call) -> dict[str, Any]:
    """Deletes the session of a response that is all of it; from a longer one no answer can be taken."""
    found = _found(call)
    if not found.is_alone:
        message = (
            f"A session keeps all of its answers, and that of this response has others, too. "
            f"DELETE /sessions/{found.session_id} deletes it as a whole."
        )
        raise refused("invalid_request", message, "response_id")
    call.service.sessions.delete(found.session_id)
    return {"id": call.path["response_id"], "object": "response", "deleted": True}


def _items_of(message: ClientMessage) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the items that a message is, each with the prefix of its id."""
    done = {"status": "completed"}
    texts = [message.text] if message.text else []
    if message.role != "assistant":
        parts: list[dict[str, Any]] = [{"type": "input_text", "text": text} for text in texts]
        parts += [{"type": "input_image", "image_url": url, "detail": "auto"} for url in message.images]
    if message.role == "tool":
        told = parts if message.images else message.text
        yield "fco", {"type": "function_call_output", "call_id": message.call_id, "output": told, **done}
        return
    if message.role == "assistant":
        parts = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts]
    if parts:
        yield "msg", {"type": "message", "role": message.role, "content": parts, **done}
    for call in message.calls:
        called = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        yield "fc", {"type": "function_call", **called, **done}


def _list_items(call: Call) -> dict[str, Any]:
    """Lists what a response answers: the question, or the results of the program's tools."""
    sent: ListItems = call.sent
    key = call.path["response_id"].removeprefix("resp_")
    asked = chain.from_iterable(map(_items_of, _found(call).asked))
    items = [{"id": f"{prefix}_{key}_input_{number}", **item} for number, (prefix, item) in enumerate(asked)]
    if sent.order == "desc":
        items.reverse()
    ids = [item["id"] for item in items]
    if sent.after and sent.after not in ids:
        raise refused("invalid_value", "after: It takes `last_id` of the page before.", "after")
    first = ids.index(sent.after) + 1 if sent.after else 0
    shown = items[first : first + sent.limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": first + len(shown) < len(items),
    }


_ONE: Final = "/v1/responses/{response_id}"
_Json = dict[str, Any]
OPERATIONS: Final = (
    Operation("getResponse", "GET", _ONE, _Json, query=ReadResponse, call=_get),
    Operation("deleteResponse", "DELETE", _ONE, _Json, refusals=(400, 409), call=_delete),
    Operation("listInputItems", "GET", f"{_ONE}/input_items", _Json, query=ListItems, call=_list_items),
    Operation("cancelResponse", "POST", f"{_ONE}/cancel", _Json, call=_cancel, is_slow=True),
)
