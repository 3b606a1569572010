from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph.admin.__main__ import main
from graph.server.identity import owner_of
from graph.value.error import SignInError
from graph.value.event import TurnFinished
from tests.fake.body import shape
from tests.fake.chat import Chat, question
from tests.fake.logs import restored_logging
from tests.fake.open_chat import MakeSettings, OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

Admin = Callable[..., int]


@pytest.fixture
def admin(make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> Admin:
    """Runs a command as `python -m graph.admin` would, over the tests' folder or another one."""

    def run(*words: object, folder: Path | None = None) -> int:
        monkeypatch.setenv("TURNFOLD_DATA_DIR", str(folder or make_settings().turnfold_data_dir))
        with restored_logging():
            return main([str(word) for word in words])

    return run


def content(file: Path) -> dict[str, list[Any]]:
    """Every row of every table that belongs to sessions."""
    with closing(sqlite3.connect(file)) as connection:
        names = ("session", "turn", "message", "record", "model_call")
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3").fetchall() for name in names}  # noqa: S608  # names of our own


def test_a_backup_made_while_a_turn_runs_is_whole_and_can_be_put_back(
    open_chat: OpenChat, server: FakeOpenAI, admin: Admin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "copy" / "kept.db"
    with open_chat() as chat:
        chat.ask(1, 4)
        server.script(hang("여기까지"))
        chat.start(question(5))
        server.wait_until(lambda fake: fake.hanging_count == 1)
        assert admin("backup", backup) == 0
        chat.stop_when(lambda live: live.text == "여기까지")
        chat.ask(6, 7)
        assert admin("restore", backup) == 1
        assert "in use by a server" in capsys.readouterr().err
    assert backup.stat().st_mode & 0o077 == 0
    assert [file.name for file in backup.parent.iterdir()] == ["kept.db"]
    settings = chat.service.settings
    before = content(settings.database_path)
    assert admin("restore", backup) == 0
    (side_request,) = settings.turnfold_data_dir.glob("turnfold.db.before-*Z")
    assert content(side_request) == before
    with open_chat(chat.session_id) as chat:
        assert [turn.status for turn in chat.turns] == ["finished"] * 4 + ["failed"]
        chat.ask(6, 6)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5, 6]


def test_backups_go_into_the_data_folder_by_themselves_and_overwrite_nothing(
    open_chat: OpenChat, admin: Admin, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    chat = open_chat()
    chat.ask(1, 1)
    assert admin("backup") == 0
    made = Path(capsys.readouterr().out.strip())
    assert made.parent == chat.service.settings.turnfold_data_dir / "backup"
    assert content(made)["message"]
    assert admin("backup", made) == 1
    assert "is there already" in capsys.readouterr().err
    assert admin("backup", folder=tmp_path / "nothing") == 1


def test_what_is_no_backup_changes_nothing(open_chat: OpenChat, admin: Admin, tmp_path: Path) -> None:
    with open_chat() as chat:
        chat.say(question(1))
    folder = chat.service.settings.turnfold_data_dir
    (tmp_path / "text").write_bytes(b"my diary")
    (tmp_path / "empty").touch()
    before = content(folder / "turnfold.db")
    for name in ("text", "empty", "no-file"):
        assert admin("restore", tmp_path / name) == 1
        assert content(folder / "turnfold.db") == before
    assert not list(folder.glob("*.before-*"))


def test_a_backup_of_a_too_old_version_is_refused_and_says_how_to_take_its_chats_along(
    open_chat: OpenChat, admin: Admin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_chat() as chat:
        chat.say(question(1))
    file = chat.service.settings.database_path
    assert admin("backup", tmp_path / "old.db") == 0
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0012'")
    before = content(file)
    assert admin("restore", tmp_path / "old.db") == 1
    told = capsys.readouterr().err
    assert "(0012)" in told
    assert "make export TO=<file> with the version that wrote it, then make import FROM=<file>" in told
    assert content(file) == before


def without_sequence(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Records are counted by each database for itself; their order is what counts."""
    return {**rows, "record": [row[1:] for row in sorted(rows["record"], key=lambda row: (row[2], row[0]))]}


def test_an_export_is_imported_without_loss_and_to_each_owner_if_it_is_told_so(
    open_chat: OpenChat, server: FakeOpenAI, admin: Admin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_chat() as chat:
        server.script(text(""), text(""), kind="summary")  # a rejected one
        server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("낮입니다."))
        chat.say("앞\x00뒤 🏳\ufe0f\u200d🌈 \u202e")
        chat.ask(2, 4)
        chat.regenerate()
        server.script(failure(500))
        chat.say(question(5))
        other = Chat(chat.service.for_owner("second"))
        other.ask(1, 4)
        chat.wait_for_folds()
        assert admin("export", tmp_path / "all.jsonl") == 0
        before = content(chat.service.settings.database_path)
        assert admin("import", tmp_path / "all.jsonl") == 0
        assert "0 sessions imported, 2 were there already" in capsys.readouterr().out
        assert content(chat.service.settings.database_path) == before
    assert admin("import", tmp_path / "all.jsonl", "--keep-owners", folder=tmp_path / "other") == 0
    assert "2 sessions imported, 0 were there already" in capsys.readouterr().out
    assert without_sequence(content(tmp_path / "other" / "turnfold.db")) == without_sequence(before)
    assert admin("export", tmp_path / "again.jsonl", folder=tmp_path / "other") == 0
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "all.jsonl").read_text()
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o077 == 0
    read = open_chat(chat.session_id, turnfold_data_dir=tmp_path / "other")
    assert [item.session_id for item in read.service.sessions.list()] == [chat.session_id]
    assert [turn.status for turn in read.turns] == ["finished"] * 4 + ["failed"]
    assert isinstance(read.say(question(6))[-1], TurnFinished)
    second = read.service.for_owner("second")
    assert [item.session_id for item in second.sessions.list()] == [other.session_id]
    assert Chat(second, other.session_id).covered == [(1, 2, 3)]


def test_a_spoilt_export_is_refused_whole(open_chat: OpenChat, admin: Admin, tmp_path: Path) -> None:
    open_chat().ask(1, 2)
    assert admin("export", tmp_path / "all.jsonl") == 0
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    for spoilt in (
        ["no json", *lines[1:]],
        [*lines[:-1], lines[-1][:-10]],
        [lines[0], *lines[2:]],
        [*lines, json.dumps({"table": "lease", "row": {"session_id": "s"}})],
        [*lines, json.dumps({"table": "message", "row": {"session_id": "s", "evil": 1}})],
        [json.dumps({**json.loads(lines[0]), "revision": "9999"}), *lines[1:]],
        [],
    ):
        (tmp_path / "bad.jsonl").write_text("\n".join(spoilt))
        assert admin("import", tmp_path / "bad.jsonl", folder=tmp_path / "other") == 1
        assert content(tmp_path / "other" / "turnfold.db")["session"] == []


def test_a_withdrawn_owner_is_let_in_again_by_the_operator_alone(
    open_chat: OpenChat, admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    service = open_chat().service
    owner = "oidc-0123456789"

    def output_of(*words: str) -> str:
        assert admin(*words) == 0
        return capsys.readouterr().out.strip()

    assert output_of("withdrawn") == "nobody"
    for _ in range(2):
        assert output_of("withdraw", owner) == f"{owner} is let in no more; what they have is kept"
    with pytest.raises(SignInError):
        service.for_owner(owner)
    assert re.fullmatch(rf"{owner} since \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ", output_of("withdrawn"))
    assert output_of("readmit", owner) == f"{owner} is let in again"
    assert output_of("readmit", owner) == f"{owner} wasn't withdrawn"
    assert service.for_owner(owner).sessions.list() == ()


def test_the_owner_that_a_user_of_the_provider_is_can_be_named(
    admin: Admin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert admin("owner", "248289761001") == 1
    assert "OIDC_ISSUER" in capsys.readouterr().err
    for name, value in {
        "OIDC_ISSUER": "http://localhost:9400/",
        "OIDC_CLIENT_ID": "turnfold",
        "OIDC_CLIENT_SECRET": "secret-of-the-client",
        "TURNFOLD_ORIGIN": "http://localhost:8501",
    }.items():
        monkeypatch.setenv(name, value)
    assert admin("owner", "248289761001") == 0
    assert capsys.readouterr().out.strip() == owner_of("http://localhost:9400", "248289761001")
