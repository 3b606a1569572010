"""Opens chats over one scripted server, each with settings of its own; all integration tests open theirs here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

from langchain_core.tools import BaseTool
from pydantic import SecretStr

from graph.core.pin import ContextSource
from graph.mcp.servers import McpServers
from graph.model.factory import ChatModels, open_models
from graph.server.settings import Settings
from graph.service import open_service
from graph.service.chat_service import open_mcp
from graph.store.stores import Stores, open_stores
from graph.tool.registry import build_tools
from tests.fake.chat import Chat
from tests.fake.store import lay_empty_database

MakeSettings = Callable[..., Settings]
OpenChat = Callable[..., Chat]


def settings_maker(data_dir: Path, base_url: str, database_url: SecretStr | None = None) -> MakeSettings:
    """Returns what makes settings of a server over this folder or database, with the changes that a test names."""

    def make_settings(**changes: object) -> Settings:
        values: dict[str, object] = {
            "openai_base_url": base_url,
            "openai_api_key": "sk-scripted-key-of-the-tests",
            "chat_model": "scripted-model",
            "turnfold_data_dir": data_dir,
            "chat_database_url": database_url,
            "model_window_tokens": 100_000,
            "model_slots": 16,  # the server is on loopback, but answers like a hosted one
            "model_attempts": 1,
            "model_deadline_seconds": 20,
            "fold_wait_seconds": 5,
            "auto_titles": False,  # tests script their replies in the order of the calls
        }
        if database_url is None and "turnfold_data_dir" not in changes:
            lay_empty_database(data_dir)
        return Settings(_env_file=None, **{**values, **changes})  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values

    return make_settings


@contextmanager
def chat_opener(make_settings: MakeSettings) -> Iterator[OpenChat]:
    """Yields `open_chat(**settings)`; at the end closes every chat that is still open.

    Each call opens a service of its own over the same files, as another server or another run of one would, and
    returns a chat of it: a new one, or that of the session named first.
    """
    with ExitStack() as all_opened:

        def open_chat(
            session_id: str = "",
            *,
            clock: Callable[[], datetime] | None = None,
            models: Callable[[Settings], AbstractContextManager[ChatModels]] = open_models,
            stores: Callable[[Settings, Callable[[], datetime]], AbstractContextManager[Stores]] = open_stores,
            tools: Sequence[BaseTool] | None = None,
            context: ContextSource | None = None,
            mcp: McpServers | None = None,
            **settings: object,
        ) -> Chat:
            opened = all_opened.enter_context(ExitStack())
            service = opened.enter_context(
                open_service(
                    make_settings(**settings),
                    clock=clock,
                    models=models,
                    stores=stores,
                    tools=build_tools if tools is None else lambda _: list(tools),
                    context=context,
                    mcp=open_mcp if mcp is None else lambda _: mcp,
                )
            )
            return Chat(service, session_id, close=opened.close)

        yield open_chat
