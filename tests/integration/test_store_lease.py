from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import select, update

from graph.error import BusyError, DatabaseError, LeaseLostError, NotFoundError
from graph.store.lease import LeaseStore
from graph.store.process import is_gone, this_process
from graph.store.schema import lease_table
from tests.fake.store import OWNER, SESSION, StoreSet, open_store_set

pytestmark = pytest.mark.both_engines

ROOT = Path(__file__).resolve().parents[2]
HOLD_FOR_EVER = """
import sys, time
from graph.store.lease import LeaseStore
from tests.fake.store import SESSION, open_place
with open_place(*sys.argv[1:]) as stores:
    leases = LeaseStore(stores.database, lease_seconds=600, heartbeat_seconds=60)
    print(leases.acquire(SESSION).fence, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def stores(tmp_path: Path, database_url: SecretStr | None) -> Iterator[StoreSet]:
    with open_store_set(tmp_path, database_url) as opened:
        opened.sessions.create(SESSION, OWNER, compression_rate=0.3, strategy="interval")
        yield opened


def other_server(stores: StoreSet) -> LeaseStore:
    return LeaseStore(stores.database, lease_seconds=20, heartbeat_seconds=60)


def pretend(stores: StoreSet, **columns: object) -> None:
    with stores.database.write() as connection:
        connection.execute(update(lease_table).values(**columns))


def test_fence_rises_with_every_lease_and_outlives_release(stores: StoreSet) -> None:
    fences = []
    for _ in range(3):
        lease = stores.leases.acquire(SESSION)
        fences.append(lease.fence)
        stores.leases.release(lease)
    assert fences == [1, 2, 3]


def test_held_session_is_busy_for_everybody_until_released(stores: StoreSet) -> None:
    other = other_server(stores)
    lease = stores.leases.acquire(SESSION)
    for leases in (stores.leases, other):
        with pytest.raises(BusyError):
            leases.acquire(SESSION)
    assert other.holder_is_alive(SESSION)
    stores.leases.release(lease)
    assert not other.holder_is_alive(SESSION)
    assert other.acquire(SESSION).fence == lease.fence + 1


def test_sessions_do_not_wait_for_each_other(stores: StoreSet) -> None:
    stores.sessions.create("s2", OWNER, compression_rate=0.3, strategy="interval")
    assert {stores.leases.acquire(name).session_id for name in (SESSION, "s2")} == {SESSION, "s2"}


def test_waiting_caller_gets_the_lease_when_it_is_released(stores: StoreSet) -> None:
    lease = stores.leases.acquire(SESSION)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other_server(stores).acquire, SESSION, wait_seconds=30)
        time.sleep(0.2)
        assert not waiting.done()
        stores.leases.release(lease)
        assert waiting.result(timeout=30).fence == 2


def test_threads_exclude_each_other(stores: StoreSet) -> None:
    inside: list[int] = []
    most: list[int] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        for _ in range(5):
            lease = stores.leases.acquire(SESSION, wait_seconds=60)
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.002)
            inside.remove(number)
            stores.leases.release(lease)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, number) for number in range(4)]:
            future.result()
    assert len(most) == 20
    assert max(most) == 1


def test_lease_that_ran_out_is_free_and_its_holder_writes_no_more(stores: StoreSet) -> None:
    old = stores.leases.acquire(SESSION)
    turn = stores.begin(old, "q1")
    stores.clock.move(20)
    with pytest.raises(LeaseLostError):
        stores.begin(old, "q2")
    new = other_server(stores).acquire(SESSION)
    assert new.fence == old.fence + 1
    with pytest.raises(LeaseLostError):
        stores.turns.finish(old, turn.number, "finished")
    assert stores.turns.get(SESSION, 1).status == "running"
    stores.turns.finish(new, turn.number, "failed", error_code="closed")
    assert stores.turns.get(SESSION, 1).status == "failed"


@pytest.mark.sqlite
def test_lease_whose_release_could_not_be_written_is_free_for_its_own_server(stores: StoreSet) -> None:
    old = stores.leases.acquire(SESSION)
    refuse = "CREATE TRIGGER no_room BEFORE UPDATE ON lease BEGIN SELECT RAISE(ABORT, 'x'); END"
    with stores.database.write() as connection:
        connection.exec_driver_sql(refuse)
    with pytest.raises(DatabaseError):
        stores.leases.release(old)
    with stores.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER no_room")
    with pytest.raises(BusyError):
        other_server(stores).acquire(SESSION)
    assert stores.leases.acquire(SESSION).fence == old.fence + 1
    with pytest.raises(BusyError):
        stores.leases.acquire(SESSION)


def test_release_of_a_lost_lease_leaves_the_new_holder_alone(stores: StoreSet) -> None:
    old = stores.leases.acquire(SESSION)
    stores.clock.move(21)
    new = other_server(stores).acquire(SESSION)
    stores.leases.release(old)
    assert stores.leases.holder_is_alive(SESSION)
    assert stores.begin(new, "q1").number == 1


def test_hold_with_a_wrong_fence_writes_nothing(stores: StoreSet) -> None:
    lease = stores.leases.acquire(SESSION)
    with pytest.raises(LeaseLostError):
        stores.begin(replace(lease, fence=lease.fence + 1), "q1")
    assert stores.turns.last(SESSION) is None


def test_heartbeat_keeps_a_long_turn_its_lease(stores: StoreSet) -> None:
    leases = LeaseStore(stores.database, lease_seconds=20, heartbeat_seconds=0.01)
    leases.acquire(SESSION)
    other = other_server(stores)
    for _ in range(3):
        stores.clock.move(15)
        wait_for_renewal(stores)
        with pytest.raises(BusyError):
            other.acquire(SESSION)
    leases.close()
    assert other.acquire(SESSION).fence == 2
    other.close()


def wait_for_renewal(stores: StoreSet) -> None:
    """Waits until a heartbeat has seen what the clock says now."""
    deadline = time.monotonic() + 30
    while not stores.clock.has_told(expiry(stores) - timedelta(seconds=20)):
        assert time.monotonic() < deadline, "no heartbeat came"
        time.sleep(0.01)


def expiry(stores: StoreSet) -> datetime:
    with stores.database.read() as connection:
        found: datetime = connection.execute(select(lease_table.c.expires_at)).scalar_one()
    return found


def test_lease_of_a_killed_process_is_free_at_once_even_before_it_is_reaped(stores: StoreSet) -> None:
    command = [sys.executable, "-c", HOLD_FOR_EVER, *stores.place]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "1\n"
        leases = LeaseStore(stores.database, lease_seconds=20, heartbeat_seconds=60)
        with pytest.raises(BusyError):
            leases.acquire(SESSION)
        holder.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
        assert leases.acquire(SESSION).fence == 2
        leases.close()
    finally:
        holder.kill()
        holder.communicate()


def test_process_id_that_was_used_again_is_not_the_holder(stores: StoreSet) -> None:
    stores.leases.acquire(SESSION)
    pretend(stores, process_started="1")
    assert other_server(stores).acquire(SESSION).fence == 2


def test_process_of_another_host_keeps_its_lease_until_it_runs_out(stores: StoreSet) -> None:
    stores.leases.acquire(SESSION)
    pretend(stores, host="elsewhere", process_id=999_999_999)
    other = other_server(stores)
    with pytest.raises(BusyError):
        other.acquire(SESSION)
    stores.clock.move(20)
    assert other.acquire(SESSION).fence == 2


def test_process_without_a_known_start_is_looked_up_by_its_id() -> None:
    me = replace(this_process(), started="")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_gone(me)
    assert is_gone(replace(me, process_id=ended.pid))


def test_close_frees_what_is_held(stores: StoreSet) -> None:
    leases = other_server(stores)
    leases.acquire(SESSION)
    leases.close()
    assert stores.leases.acquire(SESSION).fence == 2


def test_unknown_session_is_not_found(stores: StoreSet) -> None:
    with pytest.raises(NotFoundError):
        stores.leases.acquire("nowhere")


def test_worker_of_a_deleted_session_writes_no_more(stores: StoreSet) -> None:
    lease = stores.leases.acquire(SESSION)
    stores.sessions.delete(SESSION, OWNER)
    stores.sessions.create(SESSION, OWNER, compression_rate=0.3, strategy="interval")
    with pytest.raises(LeaseLostError):
        stores.begin(lease, "q1")
