"""Builds the body of the request that a call sent again, as the client makes it."""

from __future__ import annotations

import json

from graph.core.image import references_in, shortened_url, with_images
from graph.core.prefix import TOOLS
from graph.core.turn import EMBEDDED_MODEL
from graph.error import NotFoundError
from graph.input_view import SentRequest
from graph.model.request_body import request_body
from graph.model.tool_choice import NO_TOOL
from graph.service.access import SessionAccess
from graph.service.inputs import rebuild


def read_request(access: SessionAccess, session_id: str, turn: int, *, attempt: int, ordinal: int) -> SentRequest:
    """Returns what a call sent; see `ModelCall` for its attempt and ordinal.

    Its messages are those of the tables, checked by their hash. All else is made of how the server is set up now.

    Raises:
        NotFoundError: There is no such session, turn or call.
        DatabaseError: The list of what was sent can't be read.
        ModelError: The model depends on the endpoint's list, and the endpoint failed.
    """
    session, stores = access.own(session_id), access.stores
    row = stores.turns.get(session_id, turn)
    calls = [
        call for call in stores.calls.of_turn(session_id, turn) if (call.attempt, call.ordinal) == (attempt, ordinal)
    ]
    if not calls:
        raise NotFoundError
    call = calls[0]
    rebuilt, name = rebuild(access, session, call), access.models.known_name(call.model)
    offered = [block[1] for block in call.manifest if block[0] == TOOLS]
    tools = access.known_tools.find(offered[0], rebuilt.language, off=session.tools_off) if offered else ()
    body = None
    if rebuilt.messages is not None:
        images = stores.images.get(session_id, references_in(rebuilt.messages))
        shown = {reference: shortened_url(url) for reference, url in images.items()}
        is_forbidden = (rebuilt.is_last_round or row.is_casual) and not access.models.tool_choice.is_refused_by(name)
        made = request_body(
            access.models.chat(name),
            name,
            with_images(rebuilt.messages, shown),
            tools,
            tool_choice=NO_TOOL if is_forbidden else None,
        )
        body = json.dumps(made, ensure_ascii=False, indent=2)
    return SentRequest(
        body,
        rebuilt.is_verified,
        lacks_tools=bool(offered) and not tools,
        is_of_program=bool(row.client),
        is_embedded=name == EMBEDDED_MODEL,
    )
