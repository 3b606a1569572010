"""What model calls cost: counted among the server's figures, and against the caps of the owners they were made for."""

from __future__ import annotations

from collections.abc import Sequence

from graph.core.text import estimate_tokens
from graph.fold.review import SummaryDraft
from graph.model.chunk import Usage
from graph.server.metrics import CallKind, Metrics
from graph.store.owner import OwnerUseStore


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
        """Counts what is known to be spent, such as all calls of one fold; never fails.

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

    def add_call(
        self,
        owner: str,
        kind: CallKind,
        usage: Usage | None,
        *,
        sent_tokens: int,
        said: str = "",
        seconds: float,
        error_code: str = "",
    ) -> None:
        """Counts a call as its provider reported it, or else by our estimates; never fails.

        Args:
            owner: For whom it was made.
            kind: What it was made for.
            usage: What the provider reported, None for nothing.
            sent_tokens: Our estimate of what was sent.
            said: What the model has said, as far as anybody counts it.
            seconds: How long it took.
            error_code: Why it failed, "" if it didn't.
        """
        # One that failed before its first word costs nothing, as far as anybody knows.
        is_paid = bool(said) or not error_code
        self.add(
            owner,
            kind,
            input_tokens=usage.input_tokens if usage else sent_tokens * is_paid,
            output_tokens=usage.output_tokens if usage else estimate_tokens(said),
            seconds=seconds,
            error_code=error_code,
        )

    def add_summary(self, owner: str, drafts: Sequence[SummaryDraft], *, seconds: float, error_code: str = "") -> None:
        """Counts a summary with all of its drafts; never fails."""
        self.add(
            owner,
            "summary",
            input_tokens=sum(draft.input_tokens for draft in drafts),
            output_tokens=sum(draft.output_tokens for draft in drafts),
            seconds=seconds,
            error_code=error_code,
        )
