"""Has a model title the sessions that their users don't, in threads of its own: nobody waits for a title."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from langchain_core.messages import AnyMessage

from graph.core.language import user_scripts
from graph.core.text import sum_tokens, title_of
from graph.core.title_text import opening_title
from graph.core.turn import text_of
from graph.model.caller import ChatRunnable
from graph.model.chunk import Answer, Usage
from graph.model.early_end import EarlyEnd, EarlyEndSignal
from graph.model.factory import ChatModels
from graph.model.spending import Spending
from graph.node.fold_worker import LastInputs
from graph.node.job_queue import JobQueue
from graph.server.settings import Settings
from graph.store.call import SideCall, TitleStore
from graph.store.owner import OwnerUseStore
from graph.store.session import SessionRow
from graph.store.stores import ChatStores
from graph.value.error import TurnfoldError, TurnStoppedSignal
from graph.value.event import LAST_EVENTS, Event, TurnFinished, TurnStarted
from graph.worker.title import TITLED_TURNS, clean_title, title_in_place, title_request

_LOG = logging.getLogger(__name__)
_MAX_TRIES: Final = 2
_MAX_THREADS: Final = 4
# A title has some ten; the thoughts of a reasoning model count, too.
_ANSWER_TOKENS: Final = 1_000
# On one slot: what is longer than that is no title.
_MOST_CHARS: Final = 250


class _Asked(NamedTuple):
    """What is sent for the title of a session.

    Attributes:
        model: The model's name at the endpoint.
        tools: Schemas sent beside the messages, none of which may be called.
    """

    session: SessionRow
    model: str
    messages: list[AnyMessage]
    request: list[AnyMessage]
    tools: Sequence[Mapping[str, Any]] = ()


class TitleMaker:
    """Titles sessions of the page after their second turn, by one call each; a second one after a later turn.

    On an endpoint with one slot the call gives way to turns as folds do, and is made behind the chat itself; where that
    isn't possible it is made after the third turn, when a fold evicts the chat's prefix anyway.

    Usage:
        >>> log.watch(partial(titles.hear, session))

    Nothing that goes wrong reaches a turn: the session keeps the title that it began with. What was asked is counted in
    the tables, so it is the same number over several servers and after a restart.

    Args:
        titles: Keeps what the calls cost.
        use: Tells whether an owner has tokens left.
        last_inputs: What the chat models were last sent.
        spending: Hears of what the calls cost.
        clock: The time in UTC.
    """

    def __init__(
        self,
        *,
        stores: ChatStores,
        titles: TitleStore,
        use: OwnerUseStore,
        models: ChatModels,
        last_inputs: LastInputs,
        spending: Spending,
        settings: Settings,
        clock: Callable[[], datetime],
    ) -> None:
        self._stores = stores
        self._titles = titles
        self._use = use
        self._models = models
        self._spending = spending
        self._clock = clock
        self._model_name = settings.chat_summary_model
        self._deadline_seconds = settings.fold_deadline_seconds
        self._last_inputs = last_inputs
        self._queue = JobQueue(
            "title",
            max_threads=_MAX_THREADS,
            quiet_seconds=lambda: settings.fold_wait_seconds if models.has_one_slot else 0.0,
        )

    def hear(self, session: SessionRow, event: Event) -> None:
        """Takes the next event of a turn of a session, which is as it was when the turn began."""
        if isinstance(event, TurnStarted) and self._models.has_one_slot:
            self._queue.hold(session.session_id)
        if isinstance(event, TurnFinished) and event.turn >= TITLED_TURNS and _is_untitled(session):
            make = partial(self._make, session.session_id, session.owner)
            self._queue.put((session.session_id, True), "title", make)
        if isinstance(event, LAST_EVENTS):
            self._queue.release(session.session_id)

    def is_idle(self, session_id: str) -> bool:
        """Whether no title of this session is queued or being made here."""
        return self._queue.is_idle(session_id)

    def close(self) -> None:
        """Ends the calls that are being made, which don't count, and waits for the threads."""
        self._queue.close()

    def _make(self, session_id: str, owner: str, stop: threading.Event) -> bool:
        try:
            asked = self._asked(session_id, owner)
            if asked is not None:
                self._ask(asked, stop)
        except TurnStoppedSignal:
            _LOG.info("the title of session=%s gives way, or ends with the server", session_id)
        except TurnfoldError as error:
            _LOG.warning("no title for session=%s: %s", session_id, error.code)
        return True

    def _asked(self, session_id: str, owner: str) -> _Asked | None:
        """Reads what is to be sent; None if the session is to have no title of a model, not yet, or has had both tries.

        Raises:
            NotFoundError: The session was deleted.
            UserTokensError: The owner's tokens of this day are used up.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        stores = self._stores
        with stores.database.reading():
            session = stores.sessions.get(session_id, owner)
            if not _is_untitled(session) or self._titles.tries(session_id) >= _MAX_TRIES:
                return None
            self._use.check_tokens(owner)
            messages = [entry.message for entry in stores.archive.live_turns(session_id, 1, TITLED_TURNS)]
            has_more = bool(stores.archive.live_turns(session_id, TITLED_TURNS + 1, TITLED_TURNS + 1))
            language = stores.state(session_id).language
        # Another title isn't that of its first words: an example's, or one that was given before this was noted.
        first = text_of(messages[0]) if messages else ""
        if not messages or session.title not in (opening_title([first]), title_of(first)):
            return None
        name = self._models.resolve(self._model_name or session.model)
        if self._models.has_one_slot:
            last = self._last_inputs.get(session_id)
            if last is not None and last.model == name:
                return _Asked(session, name, messages, title_in_place(last, language), last.tools)
            if not has_more:
                return None
        return _Asked(session, name, messages, title_request(messages, language))

    def _ask(self, asked: _Asked, stop: threading.Event) -> None:
        """Makes the call, keeps its row, and titles the session.

        Raises:
            TurnStoppedSignal: The server is closing.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
            StoreError: It couldn't be kept.
        """
        messages: list[str] = []
        end = EarlyEnd(_MOST_CHARS if self._models.has_one_slot else None)

        def hear(text: str) -> None:
            messages.append(text)
            end.hear(text)

        def call(model: ChatRunnable) -> Answer:
            return self._models.caller.call(
                model.bind(max_tokens=_ANSWER_TOKENS),
                asked.request,
                stop=stop,
                deadline_seconds=self._deadline_seconds,
                attempts=1,
                on_text=hear,
            )

        usage, error_code, began = None, "", time.monotonic()
        try:
            answer = self._models.tool_choice.ask(asked.model, self._models.chat(asked.model), asked.tools, call)
            messages, usage = [text_of(answer.message)], answer.usage
        except TurnStoppedSignal:
            raise
        except EarlyEndSignal:
            pass
        except TurnfoldError as error:
            error_code = error.code
        self._keep(asked, "".join(messages), usage, error_code, seconds=time.monotonic() - began)

    def _keep(self, asked: _Asked, answer_text: str, usage: Usage | None, error_code: str, *, seconds: float) -> None:
        call = SideCall(
            owner=asked.session.owner,
            model=asked.model,
            sent_tokens=sum_tokens(asked.request),
            usage_input_tokens=usage.input_tokens if usage else None,
            usage_output_tokens=usage.output_tokens if usage else None,
            usage_cached_tokens=usage.cached_tokens if usage else None,
            seconds=seconds,
            error_code=error_code,
            created_at=self._clock(),
        )
        self._spending.add_call(
            call.owner,
            "title",
            usage,
            sent_tokens=call.sent_tokens,
            answer_text=answer_text,
            seconds=seconds,
            error_code=error_code,
        )
        session_id = asked.session.session_id
        title = "" if error_code else clean_title(answer_text, user_scripts(asked.messages))
        is_titled = self._titles.keep(session_id, call, title)
        _LOG.info("title of session=%s: %s", session_id, error_code or ("made" if is_titled else "left"))


def _is_untitled(session: SessionRow) -> bool:
    """Whether a session of the page has neither its user's title nor a model's."""
    return not (session.title_source or session.client or session.deleted_at)
