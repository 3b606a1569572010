"""The routes for programs behind a real server on loopback.

with ServedDoor(completions) as door:
    client = openai.OpenAI(base_url=door.url, api_key=TOKEN)

with serve(chat.service) as door: ...  # the real service, for both owners
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware

from api.completions import Door
from api.middleware import Edge
from api.token_guard import Guard
from graph.server.settings import Settings
from graph.service import ChatService
from graph.value.client import CompletionSource
from tests.fake.programs import NoPrograms
from tests.fake.served_programs import Loopback

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105 - opens nothing but this server
OWNER: Final = "kim"
# Of another owner's program, which may use all of the server's tools.
OTHER_TOKEN: Final = "token-of-a-script-0123456789"  # noqa: S105 - opens nothing but this server
OTHER_OWNER: Final = "lee"


class ServedDoor(Loopback):
    """Serves the routes below /v1.

    Args:
        completions: What answers all programs, or returns what answers those of an owner.
        patience_seconds: The door's.

    Attributes:
        owners: Whose completions were asked for, in order.
    """

    def __init__(
        self, completions: CompletionSource | Callable[[str], CompletionSource], *, patience_seconds: float = 10.0
    ) -> None:
        tokens = f"editor:{OWNER}:{TOKEN}:recall,script:{OTHER_OWNER}:{OTHER_TOKEN}"
        settings = Settings(_env_file=None, chat_api_tokens=tokens)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
        self.owners: list[str] = []

        def completions_of(owner: str) -> CompletionSource:
            self.owners.append(owner)
            return completions(owner) if callable(completions) else completions

        door = Door(completions_of, patience_seconds=patience_seconds)
        routes = door.routes(Middleware(Edge), Middleware(Guard, lambda: settings, NoPrograms))
        super().__init__(Starlette(routes=[routes]), door.close)

    @property
    def url(self) -> str:
        """What a client has as its base URL."""
        return f"{super().url}/v1"


def serve(service: ChatService, *, patience_seconds: float = 10.0) -> ServedDoor:
    """Returns the routes over a real service."""
    return ServedDoor(lambda owner: service.for_owner(owner).completions, patience_seconds=patience_seconds)
