from __future__ import annotations

from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage

from graph.core.in_place import LastInput
from graph.core.model_input import assemble, system_part
from graph.worker.last_inputs import LastInputs
from tests.fake.store import OWNER, SESSION, open_store_set


def last_of(name: str) -> LastInput:
    sent = assemble(system_part("ko", can_recall=True), (), [HumanMessage(name, id=name)])
    return LastInput("m", sent, (), AIMessage("답", id=f"{name}-answer"))


def test_only_the_newest_sessions_are_remembered(tmp_path: Path) -> None:
    with open_store_set(tmp_path) as stores:
        inputs = LastInputs(stores.calls, "always")
        for number in range(100):
            inputs.keep(f"s{number}", last_of(f"s{number}"))
            inputs.keep("s0", last_of(f"again {number}"))
        assert len(inputs) == 64
        assert "s0" in inputs
        assert "s99" in inputs
        assert "s1" not in inputs
        inputs.forget("s0")
        assert "s0" not in inputs


def test_nothing_is_remembered_where_nothing_is_asked_in_place(tmp_path: Path) -> None:
    with open_store_set(tmp_path) as stores:
        inputs = LastInputs(stores.calls, "never")
        inputs.keep("s1", last_of("s1"))
        assert len(inputs) == 0


def test_a_cache_is_at_work_where_one_of_the_last_calls_read_from_it(tmp_path: Path) -> None:
    with open_store_set(tmp_path) as stores:
        lease = stores.make_session()
        stores.run_turn(lease, "one")
        assert not stores.calls.reads_cache(SESSION)
        stores.calls.add(lease, stores.make_call("c0", 1, usage_cached_tokens=None), OWNER)
        stores.calls.add(lease, stores.make_call("c1", 1, usage_cached_tokens=0), OWNER)
        stores.calls.add(lease, stores.make_call("c2", 1, kind="reasoning", usage_cached_tokens=9), OWNER)
        assert not stores.calls.reads_cache(SESSION)
        stores.calls.add(lease, stores.make_call("c3", 1, usage_cached_tokens=64), OWNER)
        assert stores.calls.reads_cache(SESSION)
        for number in range(20):
            stores.calls.add(lease, stores.make_call(f"d{number}", 1, usage_cached_tokens=0), OWNER)
        assert not stores.calls.reads_cache(SESSION)
