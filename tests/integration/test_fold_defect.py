"""Folds that end by a defect, wherever it is: no row stays in progress, and none is paid for again without an end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, AnyMessage
from sqlalchemy import select

from graph.fold.review import SummaryDraft
from graph.fold.spec import FoldSpec, fold_of
from graph.model.factory import open_models
from graph.model.spending import Spending
from graph.model.summariser import ExtractiveSummariser
from graph.node.fold_worker import FoldPlan, FoldWorker
from graph.server.metrics import Metrics
from graph.store.record import RecordStore
from graph.store.schema import record_table
from graph.value.record import Record
from tests.fake.chat import question
from tests.fake.open_chat import settings_maker
from tests.fake.store import OWNER, SESSION, StoreSet


class BrokenSummariser(ExtractiveSummariser):
    def summarise(self, messages: Sequence[AnyMessage], target_chars: int, **_: object) -> SummaryDraft:
        raise ZeroDivisionError(len(messages), target_chars)


class BrokenRecords(RecordStore):
    """Can't write what was made."""

    def end(self, record: Record) -> bool:
        if record.status == "COMPLETED":
            raise OverflowError(record.id)
        return super().end(record)


class BrokenMetrics(Metrics):
    def fold_ended(self, outcome: str, *, seconds: float, error_code: str = "") -> None:
        if not error_code:
            raise ValueError(outcome, seconds)


@pytest.fixture
def spec(stores: StoreSet) -> FoldSpec:
    lease = stores.make_session()
    for number in range(1, 4):
        turn = stores.begin(lease, f"q{number}", question(number))
        stores.say(lease, turn, AIMessage("서버를 옮기기 전에 데이터베이스를 복제합니다. " * 9, id=f"a{number}"))
        stores.turns.finish(lease, turn.number, "finished")
    return fold_of((), stores.archive.live(SESSION), kind="interval", rate=0.3, language="ko")


@pytest.mark.parametrize("broken", ["summariser", "records", "metrics", "source"])
def test_a_fold_that_ends_by_a_defect_stays_in_progress_nowhere(
    stores: StoreSet, spec: FoldSpec, tmp_path: Path, broken: str
) -> None:
    records = (BrokenRecords if broken == "records" else RecordStore)(stores.database)
    summariser = BrokenSummariser() if broken == "summariser" else ExtractiveSummariser()
    if broken == "source":
        spec = replace(spec, messages=(None,))  # type: ignore[arg-type]  # what no spec has
    with open_models(settings_maker(tmp_path, "http://127.0.0.1:9/v1")()) as models:
        worker = FoldWorker(
            stores=replace(stores.chat, records=records),
            models=models,
            spending=Spending(stores.use, (BrokenMetrics if broken == "metrics" else Metrics)()),
            clock=stores.clock,
            deadline_seconds=10,
        )
        worker.wait(FoldPlan(SESSION, OWNER, spec, summariser, "key"), 10, threading.Event())
        worker.close()
    assert not stores.records.in_progress(SESSION, "key")
    ended = "COMPLETED" if broken == "metrics" else "FAILED"
    with stores.database.read() as connection:
        assert connection.execute(select(record_table.c.status)).scalars().all() == [ended]
