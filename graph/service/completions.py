"""Answers programs: finds the session that a request goes on with, and begins the turn that it asks for."""

from __future__ import annotations

import uuid

from graph.client import ClientRequest
from graph.service.access import SessionAccess
from graph.service.response import Response, response_id


class Completions:
    """The responses to one owner's programs.

    Usage:
        >>> hello = ClientMessage("user", "Hello")
        >>> completion = service.completions.begin(ClientRequest((hello,), ClientOptions("editor")))
        >>> detach = completion.watch(print)  # the events, in the turn's thread
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    def models(self) -> tuple[str, ...]:
        """Returns the names of the models to choose from, as far as they are known now; the default one first."""
        return tuple(option.name for option in self._access.models.options())

    def begin(self, request: ClientRequest) -> Response:
        """Begins to answer a request, or finds its answer if it was made or begun before.

        Raises:
            BusyError: A limit of the server is reached (`ServerBusyError`, `TurnRateError`).
        """
        return self._begin_aside(request)

    def _begin_aside(self, request: ClientRequest) -> Response:
        aside = self._access.asides.begin(request, self._access.owner)
        created = int(self._access.clock().timestamp())
        return Response(response_id(uuid.uuid4()), created, "", 0, "aside", aside.log, lambda: aside.end)
