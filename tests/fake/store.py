"""Real stores over a real file with a clock that a test moves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import psycopg
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from pydantic import SecretStr
from sqlalchemy import Connection, Engine, event, inspect

from graph.server.settings import Settings
from graph.store.access import ApiTokenStore, SignInStore
from graph.store.archive import Archive, ImageStore, PinStore
from graph.store.call import CallStore, ModelCall
from graph.store.database import Database, Lease
from graph.store.lease import LeaseStore
from graph.store.owner import InstructionStore, OwnerStore, OwnerUseStore
from graph.store.postgres.postgres_database import open_postgres
from graph.store.project import ContextBlockStore, RuleAgreementStore
from graph.store.record import RecordStore, VersionStore
from graph.store.reset import ResetStore
from graph.store.schema import METADATA
from graph.store.search import SearchStore
from graph.store.session import SessionStore
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.stores import ChatStores
from graph.store.turn import TurnRow, TurnStore
from graph.store.vector import VectorStore
from graph.value.record import ArchivedMessage, Record
from tests.fake.postgres import cut_connections

OWNER = "alice"
SESSION = "s1"
BEGIN = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


class MovableClock:
    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def has_returned(self, moment: datetime | None) -> bool:
        """Whether the database was told this moment by the clock that it uses."""
        return moment == self.now


class MovableDeadlines(MovableClock):
    """A clock over a database that has its own: what is to be late is moved towards it."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def move(self, seconds: float) -> None:
        super().move(seconds)
        with self._database.write() as connection:
            for table in ("lease", "record"):
                later = f"UPDATE {table} SET expires_at = expires_at - make_interval(secs => %s)"  # noqa: S608  # names of our own
                connection.exec_driver_sql(later, (float(seconds),))

    def has_returned(self, moment: datetime | None) -> bool:
        return moment is not None and abs(datetime.now(UTC) - moment) < timedelta(seconds=10)


@cache
def _empty_database() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "turnfold.db"
        open_sqlite(path, busy_timeout_seconds=5).close()
        return path.read_bytes()


def lay_empty_database(folder: Path) -> None:
    """Puts a database at the newest revision into a folder that has none: the migrations have tests of their own."""
    path = folder / "turnfold.db"
    if not path.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(_empty_database())


def cut_off(url: SecretStr) -> SecretStr:
    """Renames a database: whoever is connected loses it for good, as if they died. Returns its new URL.

    An empty one stands in its place, so that nobody waits for it.
    """
    server, _, name = url.get_secret_value().rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        cut_connections(url.get_secret_value())
        connection.execute(f"ALTER DATABASE {name} RENAME TO {name}_left".encode())
        connection.execute(f"ALTER DATABASE {name}_left ALLOW_CONNECTIONS true".encode())
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
    left = SecretStr(f"{server}/{name}_left")
    with psycopg.connect(left.get_secret_value()) as connection:
        connection.execute("UPDATE lease SET expires_at = NULL")  # as in `leave_behind`
    return left


def leave_behind(settings: Settings, folder: Path) -> None:
    """Copies the files as they are now to a new folder, as a server that dies leaves them."""
    folder.mkdir()
    for file in (settings.database_path, settings.checkpoint_path):
        with closing(sqlite3.connect(file)) as living, closing(sqlite3.connect(folder / file.name)) as dead:
            living.backup(dead)
    # The lease of a process that is gone is free; the process of this test isn't gone.
    with closing(sqlite3.connect(folder / "turnfold.db")) as dead, dead:
        dead.execute("UPDATE lease SET expires_at = NULL")


class SharedStatements(dict[tuple[object, ...], object]):
    """Compiled statements by all but the database that they were compiled for, which is as good as any of its kind."""

    def get(self, key: tuple[object, ...], default: object = None) -> object:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: tuple[object, ...], compiled: object) -> None:
        super().__setitem__((type(key[0]), *key[1:]), compiled)


_STATEMENTS: Final = SharedStatements()


@event.listens_for(Engine, "engine_connect")
def _share_statements(connection: Connection) -> None:
    """Spares each service that a test opens the compiling of its hundred statements, a fifth of a second."""
    connection.execution_options(compiled_cache=_STATEMENTS)


_OF_CHATS: Final = {field.name for field in fields(ChatStores)}


@dataclass(frozen=True)
class StoreSet:
    """The stores of one server.

    Attributes:
        location: What `open_location` takes to open them in another process.
    """

    path: Path
    location: tuple[str, str]
    clock: MovableClock
    database: Database
    leases: LeaseStore
    sessions: SessionStore
    turns: TurnStore
    archive: Archive
    records: RecordStore
    calls: CallStore
    search: SearchStore
    vectors: VectorStore
    blocks: ContextBlockStore
    agreements: RuleAgreementStore
    owners: OwnerStore
    sign_ins: SignInStore
    tokens: ApiTokenStore
    use: OwnerUseStore
    instructions: InstructionStore

    @property
    def chat(self) -> ChatStores:
        """What a service has of them, without checkpoints."""
        stores: dict[str, Any] = {name: value for name, value in vars(self).items() if name in _OF_CHATS}
        for name, kind in (
            ("images", ImageStore),
            ("versions", VersionStore),
            ("pins", PinStore),
            ("resets", ResetStore),
        ):
            stores[name] = kind(self.database)
        return ChatStores(**stores, checkpoints=cast("Any", None))

    def make_session(self, session_id: str = SESSION, owner: str = OWNER) -> Lease:
        self.sessions.create(session_id, owner, compression_rate=0.3, strategy="interval")
        return self.leases.acquire(session_id)

    def begin(self, lease: Lease, message_id: str, text: str = "a question") -> TurnRow:
        message = HumanMessage(text, id=message_id)
        return self.turns.begin(lease, owner=OWNER, message=message, model="m", is_casual=False)[0]

    def say(self, lease: Lease, turn: TurnRow, *messages: AnyMessage) -> list[ArchivedMessage]:
        return self.archive.append(lease, owner=OWNER, turn=turn.number, attempt=turn.attempt, messages=messages)

    def run_turn(self, lease: Lease, name: str) -> TurnRow:
        turn = self.begin(lease, f"{name}-question")
        self.say(lease, turn, AIMessage("an answer", id=f"{name}-answer"))
        self.turns.finish(lease, turn.number, "finished")
        return self.turns.get(lease.session_id, turn.number)

    def make_record(self, record_id: str, from_position: int = 1, to_position: int = 6) -> Record:
        return Record(
            id=record_id,
            thread_id=SESSION,
            turns=(1, 2, 3),
            turn_length=3,
            original_chars=1500,
            summary_chars=0,
            compression_rate=0.3,
            summary="",
            kind="interval",
            level=0,
            from_position=from_position,
            to_position=to_position,
            status="IN_PROGRESS",
            outcome=None,
            created_at=self.clock(),
            model="m",
            target_chars=450,
            source_key=f"key-{from_position}-{to_position}",
            source_tokens=700,
            summary_tokens=0,
        )

    def complete(self, record: Record, summary: str = "a summary") -> Record:
        done = record.with_changes(
            status="COMPLETED", outcome="compressed", summary=summary, summary_chars=len(summary), summary_tokens=5
        )
        assert self.start(record)
        assert self.records.end(done)
        return done

    def start(self, record: Record, seconds: float = 60) -> bool:
        return self.records.start(record, owner=OWNER, expires_after_seconds=seconds)

    def fail(self, record_id: str, error_code: str, **positions: int) -> None:
        record = self.make_record(record_id, **positions)
        assert self.start(record)
        assert self.records.end(record.with_changes(status="FAILED", outcome="failed", error_code=error_code))

    def make_call(self, call_id: str, turn: int, **changes: object) -> ModelCall:
        values: dict[str, object] = {
            "id": call_id,
            "session_id": SESSION,
            "turn": turn,
            "attempt": 1,
            "kind": "answer",
            "model": "m",
            "manifest": (("system", "base", 1, 20), ("message", "q1", 1, 30)),
            "input_hash": "abc",
            "sent_tokens": 100,
            "full_tokens": 300,
            "usage_input_tokens": None,
            "usage_output_tokens": None,
            "usage_cached_tokens": None,
            "seconds": 0.5,
            "error_code": "",
            "created_at": self.clock(),
        }
        return ModelCall(**{**values, **changes})  # type: ignore[arg-type]  # the test names fields of the call


@contextmanager
def open_database(folder: Path, url: SecretStr | None = None) -> Iterator[tuple[Database, MovableClock]]:
    """Opens a file in the folder, which is made at the newest revision, or this Postgres, with a clock to move."""
    if url is None:
        lay_empty_database(folder)
        clock = MovableClock()
        with closing(open_sqlite(folder / "turnfold.db", busy_timeout_seconds=10, clock=clock)) as database:
            yield database, clock
    else:
        with closing(open_postgres(url, busy_timeout_seconds=30)) as database:
            yield database, MovableDeadlines(database)


def empty(database: Database) -> None:
    """Deletes all that the stores have written."""
    with database.write() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("INSERT INTO message_search (message_search) VALUES ('delete-all')")
        names = inspect(connection).get_table_names()
        for table in reversed([table for table in METADATA.sorted_tables if table.name in names]):
            connection.execute(table.delete())


@contextmanager
def stores_over(
    database: Database, clock: MovableClock, folder: Path, url: SecretStr | None = None
) -> Iterator[StoreSet]:
    """Makes the stores of a server over an open database, whose clock begins anew."""
    clock.now = BEGIN
    leases = LeaseStore(database, lease_seconds=20, heartbeat_seconds=60)
    yield StoreSet(
        folder / "turnfold.db",
        (str(folder), url.get_secret_value() if url else ""),
        clock,
        database,
        leases,
        SessionStore(database),
        TurnStore(database, clock=clock),
        Archive(database, clock=clock),
        RecordStore(database),
        CallStore(database),
        SearchStore(database),
        VectorStore(database),
        ContextBlockStore(database),
        RuleAgreementStore(database, clock=clock),
        OwnerStore(database, clock=clock),
        SignInStore(database),
        ApiTokenStore(database, clock=clock),
        OwnerUseStore(database, clock=clock, turns_per_minute=None, tokens_per_day=None),
        InstructionStore(database),
    )
    leases.close()


@contextmanager
def open_store_set(folder: Path, url: SecretStr | None = None) -> Iterator[StoreSet]:
    """Opens the stores over a file in the folder, or over the Postgres of this URL."""
    with open_database(folder, url) as (database, clock), stores_over(database, clock, folder, url) as stores:
        yield stores


def open_location(folder: str, url: str) -> AbstractContextManager[StoreSet]:
    """Opens the stores again that a test has opened in another process."""
    return open_store_set(Path(folder), SecretStr(url) if url else None)
