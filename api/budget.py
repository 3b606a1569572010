"""One budget of unfinished bytes for the whole server: of websocket messages, programs' bodies and uploads."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final, Self

from api.problem import Problem, ProblemError

BUDGET_BYTES: Final = 256 * 2**20
# In the place of an owner: all whom nobody has let in yet.
STRANGERS: Final = ""
OVER_BUDGET: Final = Problem(
    503,
    "server_full",
    "The server has as many unfinished messages, bodies and files as it can hold. Try again in a few seconds.",
    retry_after_seconds=5,
)


class Budget:
    """How many bytes the server holds of what hasn't come to its end.

    One owner has at most half of them, and all strangers together a sixteenth: neither can use up what others need.

    Usage:
        >>> with budget.share(owner) as share:
        ...     share.hold(len(body))

    Args:
        most: In bytes.
    """

    def __init__(self, most: int = BUDGET_BYTES) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """How many bytes are held at the moment."""
        with self._lock:
            return self._held.total()

    def share(self, owner: str = STRANGERS) -> Share:
        """Returns what a message, body or file is held with; it holds nothing yet."""
        return Share(self, owner)

    def change(self, owner: str, count: int) -> None:
        """Holds so many bytes more, or fewer, for an owner.

        Raises:
            ProblemError: 503: they would be too many; nothing has changed.
        """
        with self._lock:
            if count > max(0, self._room(owner)):
                raise ProblemError(OVER_BUDGET)
            self._held[owner] += count
            if not self._held[owner]:
                del self._held[owner]

    def room(self, owner: str) -> int:
        """Returns how many bytes more an owner may hold at the moment."""
        with self._lock:
            return self._room(owner)

    def _room(self, owner: str) -> int:
        most = self._most // (16 if owner == STRANGERS else 2)
        return min(self._most - self._held.total(), most - self._held[owner])


class Share:
    """What one message, body or file holds of a budget; a context manager that gives it back.

    Attributes:
        held: How many bytes.
    """

    def __init__(self, budget: Budget, owner: str) -> None:
        self._budget = budget
        self._owner = owner
        self.held = 0

    @property
    def is_of_strangers(self) -> bool:
        """Whether it is of somebody who isn't let in."""
        return self._owner == STRANGERS

    @property
    def most(self) -> int:
        """How many bytes it could hold at the moment."""
        return self.held + self._budget.room(self._owner)

    def hold(self, count: int) -> None:
        """Says how many bytes there are by now.

        Raises:
            ProblemError: 503: they would be too many; as many as before are held.
        """
        self._budget.change(self._owner, count - self.held)
        self.held = count

    def give_to(self, owner: str) -> None:
        """Says whose they are, now that it is known.

        Raises:
            ProblemError: 503: they would be too many for this owner; nothing has changed.
        """
        self._budget.change(owner, self.held)
        self._budget.change(self._owner, -self.held)
        self._owner = owner

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Gives back what it holds."""
        self.hold(0)


# That of this process.
BUDGET: Final = Budget()
