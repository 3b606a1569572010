"""Remembers what each session's chat model was last sent, and decides which folds are asked for behind it."""

from __future__ import annotations

from typing import Final, Literal

from graph.core.fold_spec import FoldSpec
from graph.core.in_place import LastInput, input_tokens_in_place, price_in_place, price_quoted, request_in_place
from graph.core.summary_request import SummaryRequest
from graph.model.summariser import ModelSummariser
from graph.store.call import CallStore
from graph.worker.newest import Newest

InPlaceMode = Literal["auto", "always", "never"]
_KEPT_SESSIONS: Final = 64


class LastInputs:
    """The last inputs of the newest sessions, in memory only: after a restart and on other servers folds are quoted.

    Args:
        calls: The calls of the sessions, with what the endpoint reported of them.
        mode: "auto" asks in place where the endpoint's cache makes that cheaper, "always" wherever it's possible.
    """

    def __init__(self, calls: CallStore, mode: InPlaceMode) -> None:
        self._calls = calls
        self._mode = mode
        self._inputs: Newest[str, LastInput] = Newest(_KEPT_SESSIONS)

    def __len__(self) -> int:
        """How many sessions are remembered."""
        return len(self._inputs)

    def __contains__(self, session_id: str) -> bool:
        """Whether this session is remembered."""
        return session_id in self._inputs

    def keep(self, session_id: str, last: LastInput) -> None:
        """Remembers a session's last input, in place of the one before."""
        if self._mode != "never":
            self._inputs.put(session_id, last)

    def forget(self, session_id: str) -> None:
        """Forgets a session."""
        self._inputs.drop(session_id)

    def request_for(self, session_id: str, spec: FoldSpec, summariser: ModelSummariser) -> SummaryRequest | None:
        """Returns the request for a fold in place; None if it must or should be quoted.

        Raises:
            StoreError: The session's calls can't be read.
        """
        last = self._inputs.get(session_id)
        if last is None or last.model != summariser.name:
            return None
        request = request_in_place(last, spec)
        if request is None or not self._fits(session_id, last, request, spec, summariser):
            return None
        if self._mode == "auto":
            is_cached = self._calls.reads_cache(session_id)
            if not is_cached or price_in_place(last, request) >= price_quoted(spec, summariser.source_tokens):
                return None
        return request

    def _fits(
        self, session_id: str, last: LastInput, request: SummaryRequest, spec: FoldSpec, summariser: ModelSummariser
    ) -> bool:
        answer_tokens = summariser.answer_limit_tokens(spec.asked) or request.most_chars
        input_tokens = input_tokens_in_place(last, request) * self._calls.correction(session_id)
        return input_tokens + answer_tokens <= summariser.window_tokens
