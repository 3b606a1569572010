from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection, Engine, event, select, text, update
from sqlalchemy.dialects import postgresql

from graph.error import BusyError, DatabaseBusyError, LeaseLostError
from graph.store.expression import database_time
from graph.store.lease import LeaseStore
from graph.store.postgres.postgres_database import PostgresDatabase
from graph.store.schema import lease_table, record_table, session_table
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def engine() -> str:
    return "postgres"


def test_writers_of_one_session_take_turns_and_those_of_others_do_not_wait(stores: StoreSet) -> None:
    stores.make_session()
    stores.make_session("s2")
    inside, leave = threading.Event(), threading.Event()

    def rename_slowly() -> None:
        with stores.database.write(session_id=SESSION) as connection:
            inside.set()
            assert leave.wait(60)
            connection.execute(update(session_table).where(session_table.c.session_id == SESSION).values(title="first"))

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(rename_slowly)
        assert inside.wait(60)
        late = pool.submit(stores.sessions.rename, SESSION, OWNER, "second")
        stores.sessions.rename("s2", OWNER, "other")
        assert stores.sessions.get(SESSION, OWNER).title == ""
        leave.set()
        slow.result()
        late.result()
    assert stores.sessions.get(SESSION, OWNER).title == "second"


@pytest.mark.parametrize("table", ["lease", "session"])
def test_while_a_holder_writes_nobody_takes_its_lease_or_changes_its_session(stores: StoreSet, table: str) -> None:
    locking = text(f"SELECT 1 FROM {table} WHERE session_id = '{SESSION}' FOR NO KEY UPDATE NOWAIT")  # noqa: S608  # names of our own

    def lock() -> None:
        with stores.database.write() as connection:
            connection.execute(locking)

    lease = stores.make_session()
    with stores.database.write(lease), pytest.raises(DatabaseBusyError):
        lock()
    lock()


def test_the_session_is_locked_before_the_lease_as_by_everybody() -> None:
    statement = str(PostgresDatabase.is_held.compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]  # the class of a dialect is not typed
    assert "FROM session JOIN lease" in statement
    assert statement.endswith("FOR NO KEY UPDATE")


def test_a_lease_runs_out_by_the_databases_clock(stores: StoreSet) -> None:
    short = LeaseStore(stores.database, lease_seconds=0.2, heartbeat_seconds=60)
    lease = stores.make_session()
    stores.leases.release(lease)
    lost = short.acquire(SESSION)
    kept = stores.leases.acquire(SESSION, wait_seconds=60)
    assert kept.fence == lost.fence + 1
    with pytest.raises(LeaseLostError):
        stores.begin(lost, "q1")


def test_all_leases_are_renewed_by_one_statement_but_lost_ones_and_those_that_are_written_under(
    stores: StoreSet,
) -> None:
    leases = [stores.make_session(name) for name in (SESSION, "s2", "s3")]
    late = select(lease_table.c.session_id).where(lease_table.c.expires_at < database_time(15))

    def renew() -> list[str]:
        """Returns which are late behind it."""
        stores.leases._renew(leases)  # noqa: SLF001  # what the heartbeat calls
        with stores.database.read() as connection:
            return sorted(connection.execute(late).scalars())

    stores.clock.move(15)
    with ThreadPoolExecutor(1) as pool, stores.database.write(leases[0]):
        assert pool.submit(renew).result(60) == [SESSION]
    assert set(stores.leases._held()) == set(leases)  # noqa: SLF001  # what the next heartbeat renews
    stores.clock.move(15)
    with stores.database.write() as connection:
        connection.execute(update(lease_table).where(lease_table.c.session_id == "s2").values(owner="another"))
    renew()
    assert {lease.session_id for lease in stores.leases._held()} == {"s3"}  # noqa: SLF001  # the same


def test_a_heartbeat_just_before_a_lease_is_committed_does_not_lose_it(stores: StoreSet) -> None:
    stores.leases.release(stores.make_session())
    beats: list[Connection] = []

    def beat(connection: Connection) -> None:
        beats.append(connection)
        if len(beats) == 1:
            stores.leases._renew_all()  # noqa: SLF001  # what the heartbeat calls

    event.listen(Engine, "commit", beat)
    try:
        lease = stores.leases.acquire(SESSION)
    finally:
        event.remove(Engine, "commit", beat)
    assert beats
    assert stores.leases._held() == [lease]  # noqa: SLF001  # what the next heartbeat renews
    with pytest.raises(BusyError):
        stores.leases.acquire(SESSION)


def test_rows_are_in_order_within_a_session_and_over_all_whatever_the_clock_says(stores: StoreSet) -> None:
    for name in (SESSION, "s2"):
        stores.make_session(name)
    ahead = timedelta(days=365) // timedelta(microseconds=1)
    for number, name in enumerate((SESSION, "s2", SESSION, "s2")):
        record = stores.make_record(f"r{number}", number * 6 + 1, number * 6 + 6)
        assert stores.start(replace(record, thread_id=name))
        if number == 0:
            with stores.database.write() as connection:
                connection.execute(update(record_table).values(sequence=record_table.c.sequence + ahead))
    order = select(record_table.c.id).order_by(record_table.c.sequence)
    with stores.database.read() as connection:
        assert connection.execute(order).scalars().all() == ["r1", "r3", "r0", "r2"]
