from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, message_to_dict
from sqlalchemy import Connection, MetaData, create_engine, insert, select

from graph.store.schema import METADATA
from graph.store.upgrade import make_config
from tests.fake.body import content_of, faults, shape
from tests.fake.chat import question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.store import StoreSet, open_store_set
from tests.integration.test_store_database import differences

NOW = datetime(2026, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001  # as SQLite keeps it
PLACE = {"session_id": "old", "owner": "local"}
# The last revision whose times are texts, as `fill` writes them.
TIMES_AS_TEXT = "0007"
TURNS = 5


def revisions() -> list[str]:
    return [script.revision for script in ScriptDirectory.from_config(make_config()).walk_revisions()][::-1]


def values(table: str, turn: int) -> list[dict[str, Any]]:
    """The rows of one turn, in the columns of the first version."""
    spoken: list[AnyMessage] = [
        HumanMessage(question(turn), id=f"user-{turn}"),
        AIMessage(f"{turn}번 질문의 답입니다. " * 5, id=f"ai-{turn}"),
    ]
    rows: dict[str, list[dict[str, Any]]] = {
        "turn": [
            {**PLACE, "number": turn, "attempt": 1, "status": "finished", "user_message_id": f"user-{turn}",
             "model": "", "is_casual": False, "stop_requested": False, "error_code": "", "error_detail": "",
             "started_at": NOW, "finished_at": NOW, "history_tokens": 100 * turn, "partial_text": ""}
        ],
        "message": [
            {**PLACE, "position": 2 * turn - 1 + index, "message_id": message.id, "turn": turn, "attempt": 1,
             "role": message.type, "chars": len(message.text), "tokens": 50, "created_at": NOW,
             "content": json.dumps(message_to_dict(message))}
            for index, message in enumerate(spoken)
        ],
        "model_call": [
            {**PLACE, "id": f"call-{turn}", "turn": turn, "attempt": 1, "ordinal": 1, "kind": "answer", "model": "m",
             "input_hash": "", "sent_tokens": 90, "full_tokens": 100, "usage_input_tokens": None,
             "usage_output_tokens": None, "usage_cached_tokens": None, "seconds": 1.0, "error_code": "",
             "created_at": NOW, "manifest": "[]"}
        ],
    }  # fmt: skip
    return rows[table]


RECORD = {
    **PLACE, "id": "rec-old", "kind": "interval", "level": 0, "from_position": 1, "to_position": 6, "turn_length": 3,
    "status": "COMPLETED", "outcome": "compressed", "adopted_at": NOW, "superseded_by": None, "expires_at": NOW,
    "created_at": NOW, "model": "m", "compression_rate": 0.3, "original_chars": 700, "summary_chars": 14,
    "target_chars": 210, "source_key": "k", "source_tokens": 300, "summary_tokens": 12, "input_tokens": 1,
    "output_tokens": 1, "is_usage": False, "version": 1, "replaces": None, "edited": False, "error_code": "",
    "seconds": 1.0, "turns": "[1, 2, 3]", "sources": "[]", "summary": "옛 버전이 쓴 요약입니다.",
}  # fmt: skip
KEPT, MISSING = ("OPS-4711", "야간버스는 절대"), ("180만 원", "K7QX2M")
FACTS = {"kept_facts": json.dumps(KEPT, ensure_ascii=False), "missing_facts": json.dumps(MISSING)}
SESSION = {
    **PLACE, "created_at": NOW, "updated_at": NOW, "compression_rate": 0.3, "strategy": "", "model": "",
    "turn_count": TURNS, "title": "옛 대화", "title_folded": "옛 대화",
}  # fmt: skip


def fill(connection: Connection) -> None:
    tables = MetaData()
    tables.reflect(connection)
    connection.execute(insert(tables.tables["session"]).values(SESSION))
    facts = FACTS if "kept_facts" in tables.tables["record"].c else {}
    connection.execute(insert(tables.tables["record"]).values({**RECORD, **facts}))
    # The first version gave both tries after a context-length error one ordinal.
    twice = values("model_call", 2)[0] | {"id": "a-second-try", "sent_tokens": 80, "created_at": NOW + timedelta(1)}
    connection.execute(insert(tables.tables["model_call"]).values(twice))
    lease = {**PLACE, "fence": 7, "expires_at": None, "host": "h", "process_id": 1, "process_started": ""}
    connection.execute(insert(tables.tables["lease"]).values(lease))
    for name in ("turn", "message", "model_call"):
        for turn in range(1, TURNS + 1):
            for row in values(name, turn):
                connection.execute(insert(tables.tables[name]).values(row))


def lay_old_database(folder: Path, revision: str) -> None:
    config = make_config()
    engine = create_engine(f"sqlite:///{folder / 'turnfold.db'}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, min(revision, TIMES_AS_TEXT))
        fill(connection)
        command.upgrade(config, revision)
    engine.dispose()


REVISIONS = revisions()
# Of the others a step each is like one of these.
QUICK = {REVISIONS[0], "0006", REVISIONS[-1]}


@pytest.mark.parametrize(
    "revision", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in REVISIONS]
)
def test_a_chat_of_an_older_version_is_all_there_and_goes_on(
    open_chat: OpenChat, server: FakeOpenAI, tmp_path: Path, revision: str
) -> None:
    lay_old_database(tmp_path, revision)
    shutil.copytree(tmp_path, tmp_path / "deleted")
    with open_store_set(tmp_path) as stores:
        check_rows(stores, has_facts=revision >= "0006")
        if revision < "0007":  # the index is filled by a later migration
            assert stores.search.turns("old", "김민수가", before_turn=TURNS, limit=10) == [4, 3, 2, 1]
            assert stores.search.turns("old", "4번 질문의", before_turn=TURNS, limit=1) == [4]
            assert stores.search.sessions("local", "질문의 답", limit=5).keys() == {"old"}
        with stores.database.read() as connection:
            assert differences(connection) == []
    chat = open_chat("old", turnfold_data_dir=tmp_path)
    assert [(turn.number, turn.user_text) for turn in chat.turns] == [(n, question(n)) for n in range(1, TURNS + 1)]
    assert chat.service.sessions.list()[0].updated_at == NOW.replace(tzinfo=UTC)
    assert [record.summary for record in chat.service.folds.records("old")] == ["옛 버전이 쓴 요약입니다."]
    assert [point.sent_tokens for point in chat.service.folds.chart("old")] == [90, 80, 90, 90, 90]
    chat.ask(6, 8)
    first = server.bodies("chat")[0]
    assert shape(first) == [(1, 3), 4, 5, 6]
    assert "옛 버전이 쓴 요약입니다." in content_of(first["messages"][0])
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    with open_store_set(tmp_path / "deleted") as stores:
        stores.sessions.delete("old", "local")
        assert stores.search.sessions("local", "질문의 답", limit=5) == {}
        with stores.database.read() as connection:
            for table in METADATA.tables.values():
                assert connection.execute(select(table)).all() == [], table.name


def check_rows(stores: StoreSet, *, has_facts: bool) -> None:
    (record,) = stores.records.active("old")
    assert (record.kept_facts, record.missing_facts) == ((KEPT, MISSING) if has_facts else ((), ()))
    calls = [(call.id, call.ordinal) for turn in (1, 2, 3) for call in stores.calls.of_turn("old", turn)]
    assert calls == [("call-1", 1), ("call-2", 1), ("a-second-try", 1), ("call-3", 1)]
    assert [turn.number for turn in stores.turns.list("old", last=9)] == list(range(1, TURNS + 1))
    assert stores.turns.get("old", 2).user_message_id == "user-2"
    said = [entry.message.id for entry in stores.archive.live_turns("old", 2, 3)]
    assert said == ["user-2", "ai-2", "user-3", "ai-3"]
    lease = stores.leases.acquire("old")
    assert lease.fence == 8
    stores.leases.release(lease)
    session = stores.sessions.get("old", "local")
    assert (session.project_root, session.has_memory, session.title) == ("", True, "옛 대화")
    assert stores.blocks.newest("old", "front") is None


def test_a_list_of_facts_that_somebody_spoilt_keeps_no_chat_from_being_opened(tmp_path: Path) -> None:
    lay_old_database(tmp_path, "0008")
    for number, spoilt in enumerate(("no list", "7", "[7]")):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(tmp_path / "turnfold.db", folder)
        with closing(sqlite3.connect(folder / "turnfold.db")) as connection, connection:
            connection.execute("UPDATE record SET missing_facts = ?", (spoilt,))
        with open_store_set(folder) as stores:
            (record,) = stores.records.active("old")
            assert (record.summary, record.kept_facts, record.missing_facts) == (RECORD["summary"], (), ())
