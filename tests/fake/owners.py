"""An owner who is let in no more for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graph.service import ChatService


@contextmanager
def withdrawn(service: ChatService, owner: str) -> Iterator[None]:
    """Has an owner be let in no more within the block."""
    owners = service._access.stores.owners  # noqa: SLF001  # what the operator's command uses
    owners.withdraw(owner)
    try:
        yield
    finally:
        assert owners.readmit(owner)
