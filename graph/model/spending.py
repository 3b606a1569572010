"""Records the cost of model calls: in the server's metrics, and against the caps of their owners."""

from __future__ import annotations

from collections.abc import Sequence

from graph.core.text import estimate_tokens
from graph.fold.review import SummaryDraft
from graph.model.chunk import Usage
from graph.server.metrics import CallKind, Metrics
from graph.store.owner import OwnerUseStore


class Spending:
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
        """Counts known usage, such as all calls of a fold; never fails. `error_code` is "" on success."""
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
        answer_text: str = "",
        seconds: float,
        error_code: str = "",
    ) -> None:
        """Counts a call as reported by its provider, or by estimates without a report; never fails."""
        # A call that failed before its first word is assumed to cost nothing.
        is_paid = bool(answer_text) or not error_code
        self.add(
            owner,
            kind,
            input_tokens=usage.input_tokens if usage else sent_tokens * is_paid,
            output_tokens=usage.output_tokens if usage else estimate_tokens(answer_text),
            seconds=seconds,
            error_code=error_code,
        )

    def add_summary(self, owner: str, drafts: Sequence[SummaryDraft], *, seconds: float, error_code: str = "") -> None:
        self.add(
            owner,
            "summary",
            input_tokens=sum(draft.input_tokens for draft in drafts),
            output_tokens=sum(draft.output_tokens for draft in drafts),
            seconds=seconds,
            error_code=error_code,
        )
