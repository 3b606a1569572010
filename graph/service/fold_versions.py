"""Changes a fold by hand: its text is edited, or another version of it is chosen, also while a turn runs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from graph.core.language import session_language
from graph.core.text import check_text, estimate_tokens, plain_text
from graph.core.turn import label_of
from graph.fold.fact_check import compare_facts
from graph.fold.record import source_of
from graph.fold.review import quote
from graph.fold.spec import FoldSpec, round_rate
from graph.service.access import SessionAccess
from graph.strategy.remake import fold_anew
from graph.value.error import InputError
from graph.value.record import ArchivedMessage, Record, RecordKind

MOST_WISH_CHARS: Final = 300
_NO_COST: Final = {"input_tokens": 0, "output_tokens": 0, "is_usage": False, "seconds": 0.0, "error_code": ""}


class FoldVersions:
    """Makes and chooses versions of one owner's folds; a running turn goes on with what it began with."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._stores = access.stores

    def all_of(self, session_id: str, record_id: str) -> tuple[Record, ...]:
        """Returns every version of a record, oldest first.

        Raises:
            NotFoundError: There is no such session or record.
        """
        self._access.own(session_id)
        self._stores.records.get(session_id, record_id)
        return tuple(self._stores.versions.of(session_id, record_id))

    def use(self, session_id: str, record_id: str) -> Record:
        """Makes a version the active one.

        Raises:
            InputError: `not_active`.
            NotFoundError: There is no such session or record.
        """
        self._access.own(session_id)
        record = self._stores.records.get(session_id, record_id)
        with self._pacing(record):
            if not self._stores.versions.use(session_id, record_id):
                raise InputError("not_active")
        return record

    def edit(self, session_id: str, record_id: str, text: str) -> Record:
        """Makes a version of these words, compared with the facts of the source.

        Raises:
            InputError: `empty`, `too_long`, `not_shorter` or `not_active`.
            NotFoundError: There is no such session or record.
        """
        self._access.own(session_id)
        text = plain_text(text).strip()
        check_text(text, max_chars=self._access.settings.message_chars)
        record = self._stores.records.get(session_id, record_id)
        if len(text) > record.original_chars:
            raise InputError("not_shorter", f"{len(text)} > {record.original_chars}")
        spec = self._spec(record, rate=record.compression_rate)
        source = source_of(spec, is_quoted=True)
        checked = compare_facts(text, source)
        edited = record.with_changes(
            **_NO_COST,
            id=f"rec-{secrets.token_urlsafe(9)}",
            source_key=f"edit-{secrets.token_urlsafe(12)}",
            kind=spec.kind,
            outcome="compressed",
            created_at=self._access.clock(),
            summary=text,
            summary_chars=len(text),
            summary_tokens=estimate_tokens(source.label + text),
            kept_facts=checked.kept,
            missing_facts=checked.missing,
            wish="",
            edited=True,
        )
        return self._added(edited, of=record_id)

    def remake(self, session_id: str, record_id: str, *, rate: float, wish: str = "") -> Record:
        """Has the summary model make a version, and waits for it.

        Raises:
            InputError: `bad_rate`, `too_long` (the wish), `stands_verbatim`, `remake_failed` or `not_active`.
            NotFoundError: There is no such session or record.
            BusyError: A limit of the server is reached.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        session = self._access.own(session_id)
        rate, wish = round_rate(rate), plain_text(wish).strip()
        if len(wish) > MOST_WISH_CHARS:
            raise InputError("too_long", f"{len(wish)} > {MOST_WISH_CHARS}")
        record = self._stores.records.get(session_id, record_id)
        spec = replace(self._spec(record, rate=rate), wish=wish, before=self._text_before(record))
        if spec.stands_verbatim:
            raise InputError("stands_verbatim")
        if self._active_version(record) is None:
            raise InputError("not_active")
        limiter = self._access.runner.limiter
        limiter.begin(self._access.owner)  # it costs what a turn does
        try:
            made, code = self._access.fold_worker.make_anew(
                session_id, spec, owner=self._access.owner, model=session.model
            )
        finally:
            limiter.end(self._access.owner)
        if made is None or made.kind == "verbatim":
            raise InputError("remake_failed", code or "summary_inflated")
        with self._pacing(record):
            adopted = self._stores.versions.adopt(made, of=record_id)
        if adopted is None:
            raise InputError("not_active")
        return adopted

    def fold_again(self, session_id: str, record_id: str) -> Record:
        """Folds what was undone, at the session's rate; raises what `remake` does."""
        return self.remake(session_id, record_id, rate=self._access.own(session_id).compression_rate)

    def undo(self, session_id: str, record_id: str) -> Record | None:
        """Has a record give way to its own messages word for word, a merge to the records that it was made from.

        Returns:
            The version with the messages; None for a merge.

        Raises:
            InputError: `stands_verbatim` or `not_active`.
            NotFoundError: There is no such session or record.
        """
        self._access.own(session_id)
        record = self._stores.records.get(session_id, record_id)
        if record.kind == "verbatim":
            raise InputError("stands_verbatim")
        if record.kind == "merge":
            if not self._stores.versions.undo_merge(session_id, record_id):
                raise InputError("not_active")
            return None
        return self._added(self._quoted(record), of=record_id)

    def _quoted(self, record: Record) -> Record:
        """Returns the messages that a record covers, word for word, as another record."""
        language = session_language(self._stores.archive.opening(record.thread_id))
        text = quote([entry.message for entry in self._said(record)], language)
        return record.with_changes(
            **_NO_COST,
            id=f"rec-{secrets.token_urlsafe(9)}",
            source_key=f"undo-{secrets.token_urlsafe(12)}",
            kind="verbatim",
            outcome="inflated",
            created_at=self._access.clock(),
            summary=text,
            summary_chars=len(text),
            summary_tokens=estimate_tokens(label_of(record.turns, language) + text),
            kept_facts=(),
            missing_facts=(),
            wish="",
            edited=False,
        )

    def _active_version(self, record: Record) -> Record | None:
        ids = {version.id for version in self._stores.versions.of(record.thread_id, record.id)}
        return next((each for each in self._stores.records.active(record.thread_id) if each.id in ids), None)

    def _text_before(self, record: Record) -> str:
        """Returns the summary that stands right before a record, "" if none does."""
        active = self._stores.records.active(record.thread_id)
        return next((each.summary for each in reversed(active) if each.to_position < record.from_position), "")

    def _added(self, record: Record, *, of: str) -> Record:
        before = self._stores.records.get(record.thread_id, of)
        with self._pacing(before):
            added = self._stores.versions.add(record, owner=self._access.owner, of=of)
            if added is None:
                raise InputError("not_active")
        return added

    @contextmanager
    def _pacing(self, record: Record) -> Iterator[None]:
        """Changes a record; the next compaction waits once one is undone, and no longer once that is taken back."""
        session_id, database = record.thread_id, self._stores.database
        with database.writing(), database.write(session_id=session_id):
            was_undone = self._is_undone(record)
            yield
            if self._kind(record) != "compaction" or self._is_undone(record) == was_undone:
                return
            restored_tokens = 0 if was_undone else self._stores.context(session_id).tokens
            self._stores.sessions.update(session_id, self._access.owner, restored_tokens=restored_tokens)

    def _is_undone(self, record: Record) -> bool:
        """Whether a version with the messages themselves is active."""
        active = self._active_version(record)
        return active is not None and active.is_undone

    def _spec(self, record: Record, *, rate: float) -> FoldSpec:
        """Returns the fold of what a record covers."""
        session_id = record.thread_id
        with self._stores.database.reading():
            sources = [self._stores.records.get(session_id, source) for source in record.sources]
            language = session_language(self._stores.archive.opening(session_id))
            said = self._said(record, behind=sources)
            kind = self._kind(record)
        return fold_anew(record, sources, said, kind=kind, rate=rate, language=language)

    def _said(self, record: Record, *, behind: Sequence[Record] = ()) -> list[ArchivedMessage]:
        """Returns the live messages that a record covers behind some of its sources."""
        first = behind[-1].to_position + 1 if behind else record.from_position
        return self._stores.archive.live_within(record.thread_id, [(first, record.to_position)])

    def _kind(self, record: Record) -> RecordKind:
        """Returns what a record was before it was undone."""
        kinds = (version.kind for version in self._stores.versions.of(record.thread_id, record.id))
        return next((kind for kind in (record.kind, *kinds) if kind != "verbatim"), "interval")
