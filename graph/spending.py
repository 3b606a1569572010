"""What model calls cost: counted among the server's figures, and against the caps of the owners they were made for."""

from __future__ import annotations

from graph.metrics import CallKind, Metrics
from graph.store.owner_use import OwnerUseStore


class Spending:
    """Hears of every model call once it has ended, from whichever part makes it.

    Attributes:
        metrics: The server's figures.
    """

    def __init__(self, use: OwnerUseStore, metrics: Metrics) -> None:
        self._use = use
        self.metrics = metrics

    def add(
        self,
        owner: str,
        kind: CallKind,
        *,
        input_tokens: int,
        output_tokens: int,
        seconds: float,
        error_code: str = "",
    ) -> None:
        """Counts a call, or all of one fold; never fails.

        Args:
            owner: For whom it was made.
            kind: What it was made for.
            input_tokens: As reported by the provider, or else our estimate; 0 if nothing came of it.
            output_tokens: Likewise.
            seconds: How long it took.
            error_code: Why it failed, "" if it didn't.
        """
        self.metrics.called(kind, input_tokens=input_tokens, output_tokens=output_tokens, seconds=seconds)
        if error_code:
            self.metrics.failed("call", error_code)
        self._use.spend(owner, input_tokens + output_tokens)
