from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from graph.store.lease import LeaseStore, is_gone, this_process
from graph.store.schema import lease_table
from graph.store.turn import PartialText
from graph.value.error import BusyError, DatabaseError, LeaseLostError, NotFoundError
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines

ROOT = Path(__file__).resolve().parents[2]
HOLD_FOR_EVER = """
import sys, time
from graph.store.lease import LeaseStore
from tests.fake.store import SESSION, open_location
with open_location(*sys.argv[1:]) as stores:
    leases = LeaseStore(stores.database, lease_seconds=600, heartbeat_seconds=60)
    print(leases.acquire(SESSION).fence, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def session(stores: StoreSet) -> None:
    stores.sessions.create(SESSION, OWNER, compression_rate=0.3, strategy="interval")


def other_server(stores: StoreSet) -> LeaseStore:
    return LeaseStore(stores.database, lease_seconds=20, heartbeat_seconds=60)


def pretend(stores: StoreSet, **columns: object) -> None:
    with stores.database.write() as connection:
        connection.execute(update(lease_table).values(**columns))


def test_held_session_is_busy_for_everybody_until_released_and_its_fence_rises(stores: StoreSet) -> None:
    other = other_server(stores)
    stores.sessions.create("s2", OWNER, compression_rate=0.3, strategy="interval")
    with pytest.raises(NotFoundError):
        stores.leases.acquire("nowhere")
    for fence in (1, 2, 3):
        lease = stores.leases.acquire(SESSION)
        assert lease.fence == fence
        for leases in (stores.leases, other):
            with pytest.raises(BusyError):
                leases.acquire(SESSION)
        assert other.holder_is_alive(SESSION)
        other.release(other.acquire("s2"))
        stores.leases.release(lease)
        assert not other.holder_is_alive(SESSION)
    other.acquire(SESSION)
    other.close()
    assert stores.leases.acquire(SESSION).fence == 5


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


def test_lease_that_ran_out_is_its_holders_until_another_takes_it(stores: StoreSet) -> None:
    old = stores.leases.acquire(SESSION)
    with pytest.raises(LeaseLostError):
        stores.begin(replace(old, fence=old.fence + 1), "q1")
    with pytest.raises(LeaseLostError):
        stores.begin(replace(old, holder="another"), "q1")
    stores.clock.move(3_600)
    turn = stores.begin(old, "q1")
    stores.turns.save_partials([PartialText(old, turn.number, "said meanwhile")])
    assert stores.turns.get(SESSION, turn.number).partial_text == "said meanwhile"
    new = other_server(stores).acquire(SESSION)
    assert new.fence == old.fence + 1
    stores.turns.save_partials([PartialText(old, turn.number, "said too late")])
    assert stores.turns.get(SESSION, turn.number).partial_text == "said meanwhile"
    with pytest.raises(LeaseLostError):
        stores.turns.finish(old, turn.number, "finished")
    stores.leases.release(old)
    assert stores.leases.holder_is_alive(SESSION)
    assert stores.turns.get(SESSION, 1).status == "running"
    stores.turns.finish(new, turn.number, "failed", error_code="closed")
    assert [turn.status for turn in stores.turns.list(SESSION, last=9)] == ["failed"]
    stores.sessions.delete(SESSION, OWNER)
    stores.sessions.create(SESSION, OWNER, compression_rate=0.3, strategy="interval")
    with pytest.raises(LeaseLostError):
        stores.begin(new, "q1")


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


def test_heartbeat_keeps_a_long_turn_its_lease_also_when_it_comes_late(stores: StoreSet) -> None:
    leases = LeaseStore(stores.database, lease_seconds=20, heartbeat_seconds=0.01)
    leases.acquire(SESSION)
    other = other_server(stores)
    for seconds in (15, 15, 3_600):
        stores.clock.move(seconds)
        wait_for_renewal(stores)
        with pytest.raises(BusyError):
            other.acquire(SESSION)
    leases.close()
    assert other.acquire(SESSION).fence == 2
    other.close()


def wait_for_renewal(stores: StoreSet) -> None:
    """Waits until a heartbeat has seen what the clock says now."""
    deadline = time.monotonic() + 30
    while not stores.clock.has_returned(expiry(stores) - timedelta(seconds=20)):
        assert time.monotonic() < deadline, "no heartbeat came"
        time.sleep(0.01)


def expiry(stores: StoreSet) -> datetime:
    with stores.database.read() as connection:
        found: datetime = connection.execute(select(lease_table.c.expires_at)).scalar_one()
    return found


@pytest.mark.slow
def test_lease_of_a_killed_process_is_free_at_once_even_before_it_is_reaped(stores: StoreSet) -> None:
    command = [sys.executable, "-c", HOLD_FOR_EVER, *stores.location]
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


def test_lease_of_another_host_lasts_and_one_of_a_process_id_used_again_does_not(stores: StoreSet) -> None:
    stores.leases.acquire(SESSION)
    pretend(stores, process_started="1")
    other = other_server(stores)
    assert other.acquire(SESSION).fence == 2
    pretend(stores, host="elsewhere", process_id=999_999_999)
    with pytest.raises(BusyError):
        stores.leases.acquire(SESSION)
    stores.clock.move(20)
    assert stores.leases.acquire(SESSION).fence == 3


@pytest.mark.slow
def test_process_without_a_known_start_is_looked_up_by_its_id() -> None:
    me = replace(this_process(), started="")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_gone(me)
    assert is_gone(replace(me, process_id=ended.pid))
