"""Has a model title the sessions that their users don't, in threads of its own: nobody waits for a title."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage

from graph.core.language import session_language, user_scripts
from graph.core.text import sum_tokens, title_of
from graph.core.turn import text_of
from graph.fold.title import TITLED_TURNS, clean_title, title_request
from graph.model.chunk import Answer
from graph.model.factory import ChatModels
from graph.model.spending import Spending
from graph.node.job_queue import JobQueue
from graph.server.settings import Settings
from graph.store.call import SideCall, TitleStore
from graph.store.owner import OwnerUseStore
from graph.store.session import SessionRow
from graph.store.stores import ChatStores
from graph.value.error import TurnfoldError, TurnStoppedSignal
from graph.value.event import Event, TurnFinished

_LOG = logging.getLogger(__name__)
_MAX_TRIES: Final = 2
_MAX_THREADS: Final = 4
# A title has some ten; the thoughts of a reasoning model count, too.
_ANSWER_TOKENS: Final = 1_000


class _Asked(NamedTuple):
    """What is sent for the title of a session."""

    session: SessionRow
    said: list[AnyMessage]
    request: list[AnyMessage]


class TitleMaker:
    """Titles sessions of the page after their second turn, by one call each; a second one after a later turn.

    Usage:
        >>> log.watch(partial(titles.hear, session))

    Nothing that goes wrong reaches a turn: the session keeps the title that it began with. What was asked is counted in
    the tables, so it is the same number over several servers and after a restart.

    Args:
        titles: Keeps what the calls cost.
        use: Tells whether an owner has tokens left.
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
        self._queue = JobQueue("title", max_threads=_MAX_THREADS)

    def hear(self, session: SessionRow, event: Event) -> None:
        """Takes the next event of a turn of a session, which is as it was when the turn began."""
        if isinstance(event, TurnFinished) and event.turn >= TITLED_TURNS and _is_untitled(session):
            make = partial(self._make, session.session_id, session.owner)
            self._queue.put((session.session_id, None), "title", make)

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
            _LOG.info("the title of session=%s ends with the server", session_id)
        except TurnfoldError as error:
            _LOG.warning("no title for session=%s: %s", session_id, error.code)
        return True

    def _asked(self, session_id: str, owner: str) -> _Asked | None:
        """Reads what is to be sent; None if the session is to have no title of a model, or has had both tries.

        Raises:
            NotFoundError: The session was deleted.
            UserTokensError: The owner's tokens of this day are used up.
        """
        stores = self._stores
        with stores.database.reading():
            session = stores.sessions.get(session_id, owner)
            if not _is_untitled(session) or self._titles.tries(session_id) >= _MAX_TRIES:
                return None
            self._use.check_tokens(owner)
            said = [entry.message for entry in stores.archive.live_turns(session_id, 1, TITLED_TURNS)]
        # Another title isn't that of its first words: an example's, or one that was given before this was noted.
        if not said or session.title != title_of(text_of(said[0])):
            return None
        return _Asked(session, said, title_request(said, session_language(said[0])))

    def _ask(self, asked: _Asked, stop: threading.Event) -> None:
        """Makes the call, keeps its row, and titles the session.

        Raises:
            TurnStoppedSignal: The server is closing.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
            StoreError: It couldn't be kept.
        """
        name = self._models.resolve(self._model_name or asked.session.model)
        answer, error_code, began = None, "", time.monotonic()
        try:
            answer = self._models.caller.call(
                self._models.chat(name).bind(max_tokens=_ANSWER_TOKENS),
                asked.request,
                stop=stop,
                deadline_seconds=self._deadline_seconds,
                attempts=1,
            )
        except TurnStoppedSignal:
            raise
        except TurnfoldError as error:
            error_code = error.code
        self._keep(asked, name, answer, error_code, seconds=time.monotonic() - began)

    def _keep(self, asked: _Asked, model: str, answer: Answer | None, error_code: str, *, seconds: float) -> None:
        said = text_of(answer.message) if answer else ""
        usage = answer.usage if answer else None
        call = SideCall(
            owner=asked.session.owner,
            model=model,
            sent_tokens=sum_tokens(asked.request),
            usage_input_tokens=usage.input_tokens if usage else None,
            usage_output_tokens=usage.output_tokens if usage else None,
            usage_cached_tokens=usage.cached_tokens if usage else None,
            seconds=seconds,
            error_code=error_code,
            created_at=self._clock(),
        )
        self._spending.add_call(
            call.owner, "title", usage, sent_tokens=call.sent_tokens, said=said, seconds=seconds, error_code=error_code
        )
        session_id = asked.session.session_id
        is_titled = self._titles.keep(session_id, call, clean_title(said, user_scripts(asked.said)))
        _LOG.info("title of session=%s: %s", session_id, error_code or ("made" if is_titled else "left"))


def _is_untitled(session: SessionRow) -> bool:
    """Whether a session of the page has neither its user's title nor a model's."""
    return not (session.title_source or session.client or session.deleted_at)
