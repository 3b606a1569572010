"""Pins messages of a session and unpins them, also while a turn runs."""

from __future__ import annotations

from graph.core.language import session_language
from graph.core.pin import budget_tokens, fitting, pin_of
from graph.core.text import has_visible
from graph.error import InputError, NotFoundError
from graph.pin_view import PinnedMessage, PinView
from graph.record import ArchivedMessage
from graph.service.access import SessionAccess
from graph.store.session import SessionRow
from prompt.system.framing import Language


class Pins:
    """The pinned messages of one owner's sessions; a running turn goes on with those that it began with."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores

    def view(self, session_id: str) -> PinView:
        """Returns what is pinned and how much room there is; see `Folds.pins`."""
        session = self._access.own(session_id)
        with self._stores.database.reading():
            return self._view(session)

    def pin(self, session_id: str, message_id: str) -> PinView:
        """Pins a message; see `Folds.pin`."""
        session = self._access.own(session_id)
        database = self._stores.database
        # Nobody else pins meanwhile, so what is left of the budget stays true.
        with database.writing(), database.write(session_id=session_id):
            view, entry = self._view(session), self._live(session_id, message_id)
            if any(pinned.message_id == message_id for pinned in view.messages):
                return view
            pin = pin_of(entry)
            if pin.role not in ("human", "ai") or not has_visible(pin.text):
                raise InputError("empty")
            if pin.position <= self._stores.sessions.context_begin(session_id):
                raise InputError("before_reset")
            left_tokens = max(0, view.budget_tokens - view.used_tokens)
            if pin.tokens(self._language(session_id)) > left_tokens:
                raise InputError("pin_budget", str(left_tokens))
            self._stores.pins.add(session_id, message_id, owner=self._access.owner)
            return self._view(session)

    def unpin(self, session_id: str, message_id: str) -> PinView:
        """Unpins a message; see `Folds.unpin`."""
        self._access.own(session_id)
        self._stores.pins.remove(session_id, message_id)
        return self.view(session_id)

    def _live(self, session_id: str, message_id: str) -> ArchivedMessage:
        turn = self._stores.archive.get(session_id, message_id).turn
        said = self._stores.archive.live_turns(session_id, turn, turn)
        found = next((entry for entry in said if entry.message.id == message_id), None)
        if found is None:  # of an earlier attempt
            raise NotFoundError(message_id)
        return found

    def _view(self, session: SessionRow) -> PinView:
        session_id, models = session.session_id, self._access.models
        language = self._language(session_id)
        pins = self._stores.pinned(session_id)
        # Not `input_tokens`: that may wait for the endpoint's list of models.
        window = models.window_tokens(session.model or models.default_name)
        budget = budget_tokens(int(window * self._access.settings.guard_share))
        sent = fitting(pins, budget, language)
        messages = tuple(
            PinnedMessage(pin.message_id, pin.turn, pin.tokens(language), is_sent=pin in sent) for pin in pins
        )
        return PinView(messages, budget, sum(message.tokens for message in messages))

    def _language(self, session_id: str) -> Language:
        return session_language(self._stores.archive.opening(session_id))
