"""All stores of one server, opened and closed together, with the reads that span several of them."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from langchain_core.messages import AnyMessage
from sqlalchemy import bindparam, select

from graph.core.instruction import own_block
from graph.core.language import session_language
from graph.core.pin import Pin, pin_of
from graph.core.snapshot import uncovered_ranges
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
from graph.store.sqlite.checkpoint import Checkpointer, open_checkpointer
from graph.store.sqlite.file import in_use
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.token_use import TokenUseStore
from graph.store.turn import TurnStore
from graph.store.vector import VectorStore
from graph.value.error import SettingsError
from graph.value.record import ArchivedMessage, Record
from prompt.system.framing import Language

if TYPE_CHECKING:
    from graph.store.postgres.pooled_saver import PooledSaver

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


class Context(NamedTuple):
    """The records and messages that a model input may contain.

    `records` are the active ones up to the first gap in coverage, oldest first; `left_out` those behind it, whose
    messages are in `raw`.
    """

    records: list[Record]
    raw: list[ArchivedMessage]
    left_out: list[Record]

    @property
    def tokens(self) -> int:
        return sum(record.summary_tokens for record in self.records) + sum(entry.tokens for entry in self.raw)


@dataclass(frozen=True, kw_only=True)
class ChatStores:
    """The stores of sessions. Archive and records are the only truth; checkpoints derive from them."""

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
    checkpointer: Checkpointer | PooledSaver
    language_setting: Literal["auto", "ko", "en"] = "auto"

    @property
    def default_language(self) -> Language:
        """The language of the page's chats that have no words yet."""
        return "en" if self.language_setting == "en" else "ko"

    def language(self, session_id: str, *, before: Sequence[AnyMessage] = ()) -> Language:
        """Returns the language of a session's fixed sentences.

        It is that of its program's system message, else of the first message with words (of `before`, then of the
        archive), else the server's; without any, a program's chat is English and the page's Korean.
        """
        with self.database.reading():
            decided, client = self.sessions.language(session_id)
            if decided:
                return "ko" if decided == "ko" else "en"
            default = "en" if client and self.language_setting != "ko" else self.default_language
            return session_language([*before, *self.archive.openings(session_id)], default)

    def context(self, session_id: str, *, from_turn: int = 1) -> Context:
        """Reads a session's context, raw behind a gap in coverage: more tokens, but nothing lost."""
        with self.database.reading():
            records = self.records.active(session_id)
            begin = self.sessions.context_begin(session_id)
            raw = self.archive.live_within(session_id, uncovered_ranges(records, begin), from_turn=from_turn)
            if not raw or not records or raw[0].position > records[-1].to_position:
                return Context(records, raw, [])
            hole = raw[0].position
            _LOG.warning("the records of session=%s leave position %d out; what follows is read raw", session_id, hole)
            retained = [record for record in records if record.to_position < hole]
            raw = self.archive.live(session_id, from_position=hole, from_turn=from_turn)
        return Context(retained, raw, records[len(retained) :])

    def pinned(self, session_id: str) -> tuple[Pin, ...]:
        """Returns the pinned messages since the last reset, in order."""
        with self.database.reading():
            entries = self.pins.live(session_id)
            begin = self.sessions.context_begin(session_id) if entries else 0
        return tuple(pin_of(entry) for entry in entries if entry.position > begin)

    def first_turn(self, session_id: str) -> int:
        """Returns the first turn after the last reset."""
        return max((*self.resets.turns(session_id), 0)) + 1

    def has_long_files(self, session_id: str) -> bool:
        """Returns whether questions since the last reset have files of which only the beginning is sent."""
        return self.archive.has_whole_questions(session_id, self.first_turn(session_id))

    def own_block(self, session: SessionRow, language: Language) -> str:
        """Returns the user's instructions as a session's next turn is sent them.

        In a chat that a program began its own system message rules, and not the text for all chats.
        """
        for_all = "" if session.client else self.instructions.get(session.owner)
        return own_block(for_all, session.instructions, language)

    def oldest_raw_position(self, session_id: str) -> int | None:
        begin = self.sessions.context_begin(session_id)
        ranges = uncovered_ranges(self.records.active(session_id), begin)
        oldest = self.archive.live_within(session_id, ranges, limit=1)
        return oldest[0].position if oldest else None


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
        checkpointer = open_checkpoints(settings)
        stack.callback(checkpointer.close)
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
                checkpointer=checkpointer,
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


def open_checkpoints(settings: Settings) -> Checkpointer | PooledSaver:
    """Opens the checkpoints beside the configured database."""
    if settings.chat_database_url is None:
        return open_checkpointer(settings.checkpoint_path, busy_timeout_seconds=settings.busy_timeout_seconds)
    from graph.store.postgres.pooled_saver import open_saver  # noqa: PLC0415  # its driver is an extra

    return open_saver(settings.chat_database_url, busy_timeout_seconds=settings.busy_timeout_seconds)
