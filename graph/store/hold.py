"""The proof of a lease, which every write of a turn shows; knows nothing of how leases are given or checked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hold:
    """The proof of a lease; `Database.write` checks it with every write.

    Attributes:
        owner: The lease store that took it, by a name used once.
        fence: Counts the leases of this session; a later one has a higher fence.
    """

    session_id: str
    owner: str
    fence: int
