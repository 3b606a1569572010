"""Two owners of one folder, each with the service; one of them has a chat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import SecretStr

from graph.service import ChatService
from tests.fake.chat import Chat
from tests.fake.open_chat import chat_opener, settings_maker


class Owners(NamedTuple):
    """One folder, two owners; `chat` has four turns and is the first one's."""

    chat: Chat
    other: ChatService
    root: Path


@contextmanager
def open_owners(
    folder: Path, model_url: str, *, is_one_server: bool, database_url: SecretStr | None = None
) -> Iterator[Owners]:
    """Has the owners be `first` and `second`, of one server or of a server each."""
    root = folder / "shop"
    root.mkdir()
    (root / "AGENTS.md").write_text("Prices are in won.")
    with chat_opener(settings_maker(folder / "data", model_url, database_url)) as open_chat:
        chat = open_chat(turnfold_owner="first", project_roots=(root,))
        chat.ask(1, 4)
        if is_one_server:
            other = chat.service.for_owner("second")
        else:
            other = open_chat(turnfold_owner="second", project_roots=(root,)).service
        yield Owners(chat, other, root)


@contextmanager
def withdrawn(service: ChatService, owner: str) -> Iterator[None]:
    """Has an owner be let in no more within the block."""
    owners = service._access.stores.owners  # noqa: SLF001  # what the operator's command uses
    owners.withdraw(owner)
    try:
        yield
    finally:
        assert owners.readmit(owner)
