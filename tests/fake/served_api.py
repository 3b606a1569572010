"""The routes for programs behind a real server on loopback.

with ServedApi(completions) as http_api:
    client = openai.OpenAI(base_url=http_api.url, api_key=TOKEN)

with serve(chat.service) as http_api: ...  # the real service, for both owners
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Final, cast

from starlette.applications import Starlette

from api.program_routes import ProgramRoutes
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
TOKENS: Final = f"editor:{OWNER}:{TOKEN}:recall,script:{OTHER_OWNER}:{OTHER_TOKEN}"


def service_with(completions: CompletionSource) -> ChatService:
    """Returns a service that has nothing but completions."""
    return cast("ChatService", SimpleNamespace(completions=completions))


class ServedApi(Loopback):
    """Serves the routes for programs over completions alone.

    Args:
        completions: What answers all programs, or returns what answers those of an owner.
        patience_seconds: See `ProgramRoutes`.
        personal: The setting `CHAT_API_PERSONAL`.

    Attributes:
        owners: Whose completions were asked for, in order.
    """

    def __init__(
        self,
        completions: CompletionSource | Callable[[str], CompletionSource],
        *,
        patience_seconds: float = 10.0,
        personal: str = "",
    ) -> None:
        settings = Settings(_env_file=None, chat_api_tokens=TOKENS, chat_api_personal=personal)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic reads the text
        self.owners: list[str] = []

        def service_of(owner: str) -> ChatService:
            self.owners.append(owner)
            return service_with(completions(owner) if callable(completions) else completions)

        programs = ProgramRoutes(service_of, lambda: settings, NoPrograms, patience_seconds=patience_seconds)
        super().__init__(Starlette(routes=programs.routes()), programs.close)

    @property
    def url(self) -> str:
        """What a client has as its base URL."""
        return f"{super().url}/v1"


def serve(service: ChatService, *, patience_seconds: float = 10.0, personal: str = "") -> ServedApi:
    """Returns the routes over a real service."""
    return ServedApi(
        lambda owner: service.for_owner(owner).completions, patience_seconds=patience_seconds, personal=personal
    )
