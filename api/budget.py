"""A budget of unfinished bytes for the whole server: websocket messages, request bodies and uploads."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final, Self

from api.problem import Problem, ProblemError

BUDGET_BYTES: Final = 256 * 2**20
# The owner of everything sent by visitors without access.
STRANGERS: Final = ""
OVER_BUDGET: Final = Problem(
    503,
    "server_full",
    "The server has as many unfinished messages, bodies and files as it can hold. Try again in a few seconds.",
    retry_after_seconds=5,
)


class Budget:
    """Limits the bytes buffered for unfinished messages, bodies and files.

    An owner gets at most half, all strangers together a sixteenth, so that neither can starve the rest.

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
        with self._lock:
            return self._held.total()

    def share(self, owner: str = STRANGERS) -> Share:
        return Share(self, owner)

    def change(self, owner: str, count: int) -> None:
        """Adds bytes to an owner's total; a negative count releases them.

        Raises:
            ProblemError: 503: over the limit; nothing has changed.
        """
        with self._lock:
            if count > max(0, self._room(owner)):
                raise ProblemError(OVER_BUDGET)
            self._held[owner] += count
            if not self._held[owner]:
                del self._held[owner]

    def room(self, owner: str) -> int:
        """Returns how many more bytes an owner may hold at the moment."""
        with self._lock:
            return self._room(owner)

    def _room(self, owner: str) -> int:
        most = self._most // (16 if owner == STRANGERS else 2)
        return min(self._most - self._held.total(), most - self._held[owner])


class Share:
    """The bytes of one message, body or file; a context manager that releases them.

    Attributes:
        held: In bytes.
    """

    def __init__(self, budget: Budget, owner: str) -> None:
        self._budget = budget
        self._owner = owner
        self.held = 0

    @property
    def is_of_strangers(self) -> bool:
        return self._owner == STRANGERS

    @property
    def most(self) -> int:
        """The limit at the moment, in bytes."""
        return self.held + self._budget.room(self._owner)

    def hold(self, count: int) -> None:
        """Sets the number of bytes held.

        Raises:
            ProblemError: 503: over the limit; the number is unchanged.
        """
        self._budget.change(self._owner, count - self.held)
        self.held = count

    def give_to(self, owner: str) -> None:
        """Moves the bytes to an owner.

        Raises:
            ProblemError: 503: over this owner's limit; nothing has changed.
        """
        self._budget.change(owner, self.held)
        self._budget.change(self._owner, -self.held)
        self._owner = owner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold(0)


BUDGET: Final = Budget()
