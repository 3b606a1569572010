"""Finds out which session a program's request goes on with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from graph.client import ClientRequest
from graph.core.alignment import is_begun_by
from graph.core.anchor import AnchorHash, AnchorRow, SaidTurn
from graph.core.aside import is_aside
from graph.core.client_call import newest_calls
from graph.core.client_chain import ChainKey, canonical
from graph.core.close_turn import closed_mark
from graph.core.image import urls_of
from graph.core.place import Case
from graph.core.recognise import Decision, decide
from graph.core.turn import text_of, words_of
from graph.error import NotFoundError
from graph.record import ArchivedMessage
from graph.service.access import SessionAccess
from graph.store.stores import Stores
from graph.store.turn import TurnRow

_MOST_ROWS = 1_000


class Recognition:
    """Recognises the sessions of one owner by what programs send again.

    Usage:
        >>> decision = Recognition(access).decide(request)
        >>> if decision.kind == "append":
        ...     send(decision.session_id, request.messages[-1].text, anchor=decision.anchor)
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    def load_key(self) -> ChainKey:
        """Returns the key of all anchors; makes it if there is none, so not within a block of `reading`."""
        return ChainKey(self._access.stores.keys.get("anchor"))

    def decide(self, request: ClientRequest) -> Decision:
        """Returns what a request is, as the tables are now; reads only.

        Raises:
            NotFoundError: It names a session that doesn't exist or is of another scope.
            BusyError: The session's turn is in progress, and this is another question for the same model.
            InputError: `unknown_call`: it answers tool calls, and no turn waits for any of them.
        """
        stores, owner = self._access.stores, self._access.owner
        chain = self.load_key().read(request, owner=owner)
        if is_aside(request, is_hinted=bool(chain.family)):
            return Decision("aside", "aside")
        with stores.database.reading():
            if request.session:
                self._check_named(request, chain.anchor.scope)
            known = _KnownToStores(self._access, chain.anchor.scope, request.options.name)
            case = Case(request, chain, known, self._access.models.default_name)
            return decide(case, now=self._access.clock())

    def _check_named(self, request: ClientRequest, scope: bytes) -> None:
        """Checks that a named session is the owner's, and of the end user whom the request names, if any."""
        self._access.own(request.session)
        scopes = self._access.stores.anchors.scopes(request.session)
        if request.user and scopes and scope not in scopes:
            raise NotFoundError(request.session)


class _KnownToStores:
    """What the tables know of the histories of one scope."""

    def __init__(self, access: SessionAccess, scope: bytes, client: str) -> None:
        self._access = access
        self._stores: Stores = access.stores
        self._scope = scope
        self._client = client

    def find(self, kind: AnchorHash, hashes: Sequence[bytes]) -> Sequence[AnchorRow]:
        rows = self._stores.anchors.find(self._scope, kind, hashes, limit=_MOST_ROWS)
        return [replace(row, status="failed") if self._has_died(row) else row for row in rows]

    def turns(self, session_id: str, first: int, last: int) -> Sequence[SaidTurn]:
        said = self._stores.archive.live_turns(session_id, first, last)
        rows = {row.number: row for row in self._stores.turns.between(session_id, first, last)}
        own = self._stores.anchors.turns(session_id, self._scope)
        return [
            self._said(rows[number], list(messages), is_own=number in own)
            for number, messages in groupby(said, key=lambda entry: entry.turn)
        ]

    def head(self, session_id: str) -> int:
        return self._stores.anchors.head(session_id, self._scope)

    def count_seen(self, session_id: str, last: int) -> int:
        return self._stores.turns.count_of_programs(session_id, last)

    def open_calls(self, session_id: str) -> frozenset[str]:
        last = self._stores.turns.last(session_id)
        if last is None or not last.is_open or self._access.is_running(session_id):
            return frozenset()
        said = self._stores.archive.live_turns(session_id, last.number, last.number)
        return frozenset(str(call["id"]) for call in newest_calls([entry.message for entry in said]))

    def _has_died(self, row: AnchorRow) -> bool:
        return row.status == "running" and not self._access.is_running(row.session_id)

    def _said(self, row: TurnRow, said: Iterable[ArchivedMessage], *, is_own: bool) -> SaidTurn:
        messages = [entry.message for entry in said]
        closing = closed_mark(messages[-1])
        answers = [text_of(message) for message in messages if message.type == "ai"]
        if closing is not None and not closing.get("is_partial"):
            answers.pop()  # a sentence of ours for people, never sent to a program
        status = row.status
        if status == "running":
            live = self._access.live_turn(row.session_id)
            status, text = ("running", live.text) if live else ("failed", row.partial_text)
            # What this process streamed has all of it; what another one wrote down has only its newest part.
            answers = [text] if is_begun_by(text, "\n".join(answers)) else [*answers, text]
        return SaidTurn(
            row.number,
            canonical("user", words_of(messages[0])),
            canonical("assistant", "\n".join(answers)),
            status,
            row.model,
            is_elsewhere=not is_own and not row.is_imported and row.client != self._client,
            is_imported=row.is_imported,
            images=urls_of(messages[0]),
        )
