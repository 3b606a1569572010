"""Summarises what a program sends, as a session's turns would be summarised; nothing of it is stored."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from langchain_core.messages import HumanMessage

from graph.core.language import session_language
from graph.core.text import check_text, estimate_tokens
from graph.core.turn import text_of
from graph.fold.record import begin_record, end_record, end_verbatim
from graph.fold.review import SummaryDraft, flaw_of
from graph.fold.spec import FoldSpec, fold_of_messages, round_rate, target_chars
from graph.model.factory import ChatModels
from graph.model.spending import Spending
from graph.model.summariser import ExtractiveSummariser, ModelSummariser, Summariser, generate_summary
from graph.recognise.client_turns import to_messages
from graph.server.settings import Settings
from graph.store.call import SideCall, SideRequestStore
from graph.value.client import ClientMessage
from graph.value.error import ClosingError, StoreError, TurnfoldError, TurnStoppedSignal
from graph.value.record import Record
from graph.worker.limiter import TurnLimiter
from prompt.system.framing import Language

_LOG = logging.getLogger(__name__)
_MOST_CHARS: Final = 2_000_000


class Summaries:
    """Summaries without a session: requested, reviewed and repaired like a fold, under the limits of turns.

    Args:
        owner: The owner of the programs that ask.
        limiter: The limiter of turns.
        spending: Counts their cost.
        side_requests: Stores their cost.
        clock: The time in UTC.
    """

    def __init__(
        self,
        owner: str,
        *,
        settings: Settings,
        models: ChatModels,
        limiter: TurnLimiter,
        spending: Spending,
        side_requests: SideRequestStore,
        clock: Callable[[], datetime],
    ) -> None:
        self._owner = owner
        self._settings = settings
        self._models = models
        self._limiter = limiter
        self._spending = spending
        self._side_requests = side_requests
        self._clock = clock

    def make(
        self,
        messages: Sequence[ClientMessage],
        *,
        client: str,
        rate: float | None = None,
        target_chars: int | None = None,
        language: Language | None = None,
    ) -> Record:
        """Returns the record of a summary, which isn't stored; waits until it is made.

        If the model's drafts are refused, sentences are picked (see `outcome`); a source that even those don't shorten
        stands word for word.

        Args:
            client: Name of the program, for the costs.
            rate: Target share of the characters; None for the server's.
            target_chars: Target length instead of a rate.
            language: Language of the instructions, and of the summary unless the user wrote in a third one; None for
                that of the user's first message.

        Raises:
            InputError: No text, too much text, or a rate out of bounds.
            BusyError: A limit of the server is reached.
            ModelError: The summary model failed before it wrote anything.
            ClosingError: The server is closing.
        """
        spec = self._spec(messages, self._settings.compression_rate if rate is None else rate, language)
        if target_chars is not None:
            spec = replace(spec, target_chars=target_chars)
        self._limiter.begin(self._owner)
        try:
            return self._made(spec, client)
        finally:
            self._limiter.end(self._owner)

    def _spec(self, messages: Sequence[ClientMessage], rate: float, language: Language | None) -> FoldSpec:
        check_text("\n".join(message.text for message in messages), max_chars=_MOST_CHARS)
        converted = to_messages(messages)
        asked = (message for message in converted if isinstance(message, HumanMessage))
        chosen = language or session_language(asked, "ko" if self._settings.turnfold_language == "ko" else "en")
        rate, chars = round_rate(rate), sum(len(text_of(message)) for message in converted)
        return fold_of_messages(converted, target_chars(chars, rate), rate=rate, language=chosen)

    def _made(self, spec: FoldSpec, client: str) -> Record:
        began = time.monotonic()
        summariser = self._models.summariser("")
        record = begin_record("", spec, model=summariser.name, source_key="", created_at=self._clock())
        drafts: list[SummaryDraft] = []
        error: TurnfoldError | None = None
        try:
            self._draft(spec, summariser, drafts)
        except TurnfoldError as caught:
            error = caught
        seconds = time.monotonic() - began
        if isinstance(summariser, ModelSummariser):
            self._keep(spec, summariser.name, drafts, client, seconds, "" if error is None else error.code)
        if error is not None and not drafts:
            # Nobody can stop a summary but the server that ends.
            raise ClosingError if isinstance(error, TurnStoppedSignal) else error
        done = end_record(record, spec, drafts, "", seconds=seconds)
        done = done if done.status == "COMPLETED" else _picked(done, spec)
        if done.kind == "verbatim" and len(spec.messages) == 1:  # a text alone has no speaker to name
            text = text_of(spec.messages[0])
            done = done.with_changes(summary=text, summary_chars=len(text), summary_tokens=estimate_tokens(text))
        return done

    def _draft(self, spec: FoldSpec, summariser: Summariser, drafts: list[SummaryDraft]) -> None:
        """Writes a draft, and has it mended once if it needs it."""
        ask = partial(
            summariser.summarise,
            spec=spec,
            may_retry=True,
            stop=threading.Event(),
            deadline_seconds=self._settings.fold_deadline_seconds,
        )
        generate_summary(spec.messages, spec.target_chars, ask, drafts=drafts)
        if (flaw := flaw_of(drafts[-1], spec)) is not None:
            mend = partial(ask, flawed=(drafts[-1], flaw))
            generate_summary(spec.messages, spec.target_chars, mend, drafts=drafts)

    def _keep(
        self, spec: FoldSpec, model: str, drafts: Sequence[SummaryDraft], client: str, seconds: float, error_code: str
    ) -> None:
        """Stores what it cost; nothing of its text."""
        self._spending.add_summary(self._owner, drafts, seconds=seconds, error_code=error_code)
        is_usage = bool(drafts) and all(draft.is_usage for draft in drafts)
        row = SideCall(
            owner=self._owner,
            model=model,
            sent_tokens=spec.source_tokens * max(1, len(drafts)),
            usage_input_tokens=sum(draft.input_tokens for draft in drafts) if is_usage else None,
            usage_output_tokens=sum(draft.output_tokens for draft in drafts) if is_usage else None,
            usage_cached_tokens=None,
            seconds=seconds,
            error_code=error_code,
            created_at=self._clock(),
        )
        try:
            self._side_requests.add(row, client=client)
        except StoreError as error:  # the summary is worth more than its row
            _LOG.warning("what a summary cost was not kept: %s", error.code)


def _picked(failed: Record, spec: FoldSpec) -> Record:
    """Returns the record with sentences of the source in place of the drafts; with all of it if none are shorter."""
    picked = ExtractiveSummariser().summarise(spec.messages, spec.target_chars)
    done = end_record(failed, spec, [picked], "", seconds=failed.seconds, is_fallback=True)
    if done.status != "COMPLETED":
        done = end_verbatim(failed, spec)
    # Picking costs nothing; the drafts did.
    cost = {"input_tokens": failed.input_tokens, "output_tokens": failed.output_tokens, "is_usage": failed.is_usage}
    return done.with_changes(error_code=failed.error_code, **cost)
