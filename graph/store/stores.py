"""All stores of one server, opened and closed together, with the reads that span several of them."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import bindparam, select

from graph.core.pin import pin_of
from graph.core.snapshot import uncovered_ranges
from graph.server.newest import Newest
from graph.server.settings import Settings
from graph.store.access import ApiTokenStore, SignInStore
from graph.store.archive import Archive, ImageStore, PinStore
from graph.store.call import CallStore, SideRequestStore, TitleStore
from graph.store.column import add_once
from graph.store.database import Clock, Database, utc_now
from graph.store.fingerprint import FingerprintStore
from graph.store.lease import LeaseStore
from graph.store.owner import InstructionStore, OwnerStore, OwnerUseStore
from graph.store.project import ContextBlockStore, RuleAgreementStore
from graph.store.record import RecordStore, VersionStore
from graph.store.reset import ResetStore
from graph.store.schema import server_key_table
from graph.store.search import SearchStore
from graph.store.session import SessionRow, SessionStore
from graph.store.sqlite.checkpoint import SqliteCheckpoints
from graph.store.sqlite.file import in_use
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.state import SessionState
from graph.store.token_use import TokenUseStore
from graph.store.turn import TurnStore
from graph.store.vector import VectorStore
from graph.value.error import SettingsError
from graph.value.record import Record
from prompt.system.framing import Language

if TYPE_CHECKING:
    from graph.store.postgres.checkpoint import PostgresCheckpoints

KEY_BYTES: Final = 32

_key = server_key_table.c
_VALUE = select(_key.value).where(_key.name == bindparam("of_name"))


class ServerKeyStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, bytes] = {}  # no key is ever changed

    def get(self, name: str) -> bytes:
        """Returns the key of 32 bytes, created by the first server to ask."""
        if name not in self._known:
            self._known[name] = self._get(name)
        return self._known[name]

    def _get(self, name: str) -> bytes:
        with self._database.read() as connection:
            value: bytes | None = connection.execute(_VALUE, {"of_name": name}).scalar()
        if value is not None:
            return value
        with self._database.write() as connection:
            connection.execute(add_once(server_key_table).values(name=name, value=secrets.token_bytes(KEY_BYTES)))
            # Another server's, if it was first.
            return bytes(connection.execute(_VALUE, {"of_name": name}).scalar_one())


_LOG = logging.getLogger(__name__)
_MOST_STATES: Final = 128


@dataclass(frozen=True, kw_only=True)
class ChatStores:
    """The stores of sessions. Archive and records are the only truth; graph state is made from them."""

    database: Database
    leases: LeaseStore
    sessions: SessionStore
    turns: TurnStore
    archive: Archive
    images: ImageStore
    records: RecordStore
    versions: VersionStore
    pins: PinStore
    resets: ResetStore
    calls: CallStore
    blocks: ContextBlockStore
    instructions: InstructionStore
    search: SearchStore
    vectors: VectorStore
    checkpoints: SqliteCheckpoints | PostgresCheckpoints
    language_setting: Literal["auto", "ko", "en"] = "auto"
    _states: Newest[str, SessionState] = field(default_factory=lambda: Newest(_MOST_STATES))

    @property
    def default_language(self) -> Language:
        """The language of the page's chats that have no words yet."""
        return "en" if self.language_setting == "en" else "ko"

    def state(self, session_id: str, *, whole_turns: int | None = None) -> SessionState:
        """Returns what the tables say of a session.

        Of the raw messages, those of the last turn and of `whole_turns` before it; None for all.

        Raises `NotFoundError`: There is no such session.
        """
        with self.database.reading():
            row, last, first_turn, for_all = self.sessions.beginning(session_id)
            from_turn = 1 if whole_turns is None else max(1, row.turn_count - whole_turns)
            state = self._states.get(session_id)
            if state is None or state.row.context_revision != row.context_revision or state.from_turn > from_turn:
                if self.database.is_sharing:
                    # A row from memory may be older than what is read now, and must not lend it its revision.
                    row, last, first_turn, for_all = self.sessions.beginning(session_id, is_shared=False)
                state = self._read(row, first_turn=first_turn, from_turn=from_turn)
                if row.context_revision is not None and not self.database.is_writing:
                    self._states.put(session_id, state)
        return replace(state, row=row, last=last, for_all=for_all).within(whole_turns)

    def unsaved_state(self, row: SessionRow, language: Language | None) -> SessionState:
        """Returns the state of a session that the next message would create."""
        for_all, default = self.instructions.get(row.owner), language or self.default_language
        return SessionState(row=row, default_language=default, for_all=for_all)

    def carry(self, session_id: str, change: Callable[[SessionState], SessionState]) -> SessionState | None:
        """Carries the known state of a session on by what this thread has just written under its lease.

        Returns None, and nothing is known any more, if somebody else has changed the session in between. The rows of
        the session and of its last turn are those of the state before.
        """
        state, revision = self._states.get(session_id), self.database.context_revision
        if state is not None and revision is not None and state.row.context_revision == revision - 1:
            changed = change(state)
            changed = replace(changed, row=replace(changed.row, context_revision=revision))
            self._states.put(session_id, changed)
            return changed
        return None

    def forget(self, session_id: str) -> None:
        """Drops what is known of a deleted session."""
        self._states.drop(session_id)

    def _read(self, row: SessionRow, *, first_turn: int, from_turn: int) -> SessionState:
        session_id, begin = row.session_id, row.context_from_position
        active, set_aside, undone = self.records.standing(session_id)
        ranges = uncovered_ranges(active, begin)
        raw, imported = self.archive.uncovered(session_id, ranges, from_turn=from_turn)
        left_out: list[Record] = []
        if raw and active and raw[0].position <= active[-1].to_position:
            hole = raw[0].position
            _LOG.warning("the records of session=%s leave position %d out; what follows is read raw", session_id, hole)
            left_out = [record for record in active if record.to_position >= hole]
            active = [record for record in active if record.to_position < hole]
            raw, imported = self.archive.uncovered(session_id, [(hole, None)], from_turn=from_turn)
        first_said, pinned, has_long_files = self.archive.opening(session_id, from_turn=first_turn)
        default = "en" if row.client and self.language_setting != "ko" else self.default_language
        return SessionState(
            row=row,
            active=active,
            left_out=left_out,
            raw=raw,
            imported=imported,
            set_aside=set_aside,
            undone=undone,
            pins=tuple(pin_of(entry) for entry in pinned if entry.position > begin),
            blocks=self.blocks.standing(session_id),
            default_language=default,
            first_said=first_said,
            calls=self.calls.recent(session_id, is_branch=bool(row.forked_from)),
            first_turn=first_turn,
            from_turn=from_turn,
            has_long_files=has_long_files,
        )


@dataclass(frozen=True, kw_only=True)
class OwnerStores:
    owners: OwnerStore
    sign_ins: SignInStore
    use: OwnerUseStore
    token_uses: TokenUseStore
    titles: TitleStore
    agreements: RuleAgreementStore


@dataclass(frozen=True, kw_only=True)
class ProgramStores:
    tokens: ApiTokenStore
    fingerprints: FingerprintStore
    keys: ServerKeyStore
    side_requests: SideRequestStore


@dataclass(frozen=True, kw_only=True)
class Stores:
    chat: ChatStores
    owner: OwnerStores
    program: ProgramStores


def open_database(settings: Settings, *, clock: Clock = utc_now) -> Database:
    """Opens, creates or migrates the configured database.

    Raises:
        SettingsError: The Postgres extra isn't installed, or the URL can't be parsed.
        DatabaseError: The database can't be used; the subclass says why.
    """
    if settings.chat_database_url is None:
        return open_sqlite(settings.database_path, busy_timeout_seconds=settings.busy_timeout_seconds, clock=clock)
    try:
        from graph.store.postgres.postgres_database import open_postgres  # noqa: PLC0415  # its driver is an extra
    except ImportError as error:
        msg = "CHAT_DATABASE_URL: needs more packages: pip install -r requirements-server.lock"
        raise SettingsError(msg) from error
    return open_postgres(settings.chat_database_url, busy_timeout_seconds=settings.busy_timeout_seconds)


@contextmanager
def open_stores(settings: Settings, clock: Clock) -> Iterator[Stores]:
    """Opens the database and the checkpoints; raises what `open_database` does."""
    with ExitStack() as stack:
        if settings.chat_database_url is None:
            stack.enter_context(in_use(settings.database_path))
        database = open_database(settings, clock=clock)
        stack.callback(database.close)
        checkpoints = open_checkpoints(settings)
        stack.callback(checkpoints.close)
        leases = LeaseStore(
            database, lease_seconds=settings.lease_seconds, heartbeat_seconds=settings.heartbeat_seconds
        )
        stack.callback(leases.close)
        yield Stores(
            chat=ChatStores(
                database=database,
                leases=leases,
                sessions=SessionStore(database),
                turns=TurnStore(database, clock=clock),
                archive=Archive(database, clock=clock),
                images=ImageStore(database),
                records=RecordStore(database),
                versions=VersionStore(database),
                pins=PinStore(database),
                resets=ResetStore(database),
                calls=CallStore(database),
                blocks=ContextBlockStore(database),
                instructions=InstructionStore(database),
                search=SearchStore(database),
                vectors=VectorStore(database),
                checkpoints=checkpoints,
                language_setting=settings.turnfold_language,
            ),
            owner=OwnerStores(
                owners=OwnerStore(database, clock=clock),
                sign_ins=SignInStore(database),
                use=OwnerUseStore(
                    database,
                    clock=clock,
                    turns_per_minute=settings.user_turns_per_minute,
                    tokens_per_day=settings.user_tokens_per_day,
                ),
                token_uses=TokenUseStore(database),
                titles=TitleStore(database),
                agreements=RuleAgreementStore(database, clock=clock),
            ),
            program=ProgramStores(
                tokens=ApiTokenStore(database, clock=clock),
                fingerprints=FingerprintStore(database),
                keys=ServerKeyStore(database),
                side_requests=SideRequestStore(database),
            ),
        )


def open_checkpoints(settings: Settings) -> SqliteCheckpoints | PostgresCheckpoints:
    """Opens the checkpoints beside the configured database."""
    if settings.chat_database_url is None:
        return SqliteCheckpoints(settings.checkpoint_path, busy_timeout_seconds=settings.busy_timeout_seconds)
    from graph.store.postgres.checkpoint import PostgresCheckpoints  # noqa: PLC0415  # its driver is an extra

    return PostgresCheckpoints(settings.chat_database_url, busy_timeout_seconds=settings.busy_timeout_seconds)
