"""An owner who is let in no more for a while, and the sign-ins of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from graph.server.identity import SignIn
from graph.service import ChatService


@contextmanager
def withdrawn(service: ChatService, owner: str) -> Iterator[None]:
    """Has an owner be let in no more within the block."""
    owners = service._engine.stores.owner.owners  # noqa: SLF001  # what the operator's command uses
    owners.withdraw(owner)
    try:
        yield
    finally:
        assert owners.readmit(owner)


def sign_in_of(
    name: str = "laptop", *, began: datetime | None = None, until: datetime | None = None, hours: float = 1
) -> SignIn:
    """Returns a sign-in that lasts for an hour from now on, unless something else is said."""
    began = began or datetime.now(UTC)
    return SignIn(name, began, until or began + timedelta(hours=hours))
