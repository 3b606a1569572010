from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.error import FileAccessError
from graph.layer.file_context_store import FileContextStore
from graph.layer.scope import ContextScope

ROOT = Path(__file__).parents[2]
NAME = "persistent-context.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "layer" / NAME


def open_store(file: Path, most_entries: int | None = None) -> FileContextStore:
    return FileContextStore(file, ContextScope.APP, most_entries=most_entries)


def start_writer(file: Path, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fake.context_writer", str(file), *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def names_beside(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


def test_what_was_put_is_there_after_a_restart(file: Path) -> None:
    open_store(file).put_all({"projectRules": "첫 줄\n둘째 줄", "loadedRoot": "/repo"})
    assert dict(open_store(file).snapshot()) == {"projectRules": "첫 줄\n둘째 줄", "loadedRoot": "/repo"}


def test_file_and_folder_are_the_users_alone(file: Path) -> None:
    open_store(file).put("projectRules", "규칙")
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}
    assert names_beside(file) == [NAME, f"{NAME}.lock"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=100), max_size=5))
def test_any_text_can_be_kept(file: Path, entries: dict[str, str]) -> None:
    store = open_store(file)
    store.clear()
    store.put_all(entries)
    kept = open_store(file).snapshot()
    assert dict(kept) == {
        key.replace("\x00", "\ufffd"): value.replace("\x00", "\ufffd") for key, value in entries.items()
    }


def test_the_newest_entries_are_kept_and_a_repeated_one_is_new(file: Path) -> None:
    store = open_store(file, most_entries=3)
    for key in "abcad":
        store.put(key, f"{key} → 답")
    assert list(store.snapshot()) == ["c", "a", "d"]
    store.remove(["a", "x"])
    assert list(open_store(file, most_entries=3).snapshot()) == ["c", "d"]


def test_two_processes_lose_nothing_of_each_other(file: Path) -> None:
    writers = [start_writer(file, name, 150) for name in ("a", "b")]
    assert [len(writer.communicate()[0].splitlines()) for writer in writers] == [150, 150]
    kept = open_store(file).snapshot()
    assert dict(kept) == {f"{name}-{number}": str(number) for name in "ab" for number in range(1, 151)}


def test_opening_deletes_what_was_left_of_this_file_alone(file: Path) -> None:
    open_store(file).put("projectRules", "규칙")
    for name in (NAME, "execution-summary-cache.json"):
        (file.parent / f".tmp-{name}-abc").write_text("{")
    assert dict(open_store(file).snapshot()) == {"projectRules": "규칙"}
    assert names_beside(file) == [".tmp-execution-summary-cache.json-abc", NAME, f"{NAME}.lock"]


def test_a_write_that_fails_leaves_the_old_file(file: Path) -> None:
    open_store(file).put("projectRules", "규칙")
    writer = start_writer(file, "a", 1_000, 1_000)
    *told, refused = writer.communicate()[0].splitlines()
    assert refused == "refused file_access"
    assert dict(open_store(file).snapshot()) == {"projectRules": "규칙", **{f"a-{number}": number for number in told}}
    assert names_beside(file) == [NAME, f"{NAME}.lock"]


DAMAGED = [
    b"", b"{", b"[]", b"null", b'"text"', b'{"projectRules": 1}', b'{"projectRules": null}', b"\xff\xfe{}", b"\x00" * 9,
    b"[" * 100_000, b'{"projectRules": "' + "가".encode()[:2] + b'"}',
]  # fmt: skip


@pytest.mark.parametrize("damaged", DAMAGED)
@pytest.mark.parametrize("is_open", [False, True])
def test_a_damaged_file_is_put_aside_and_the_context_begins_anew(
    file: Path, damaged: bytes, caplog: pytest.LogCaptureFixture, *, is_open: bool
) -> None:
    store = open_store(file)
    store.put("projectRules", "규칙")
    file.write_bytes(damaged)
    store = store if is_open else open_store(file)
    assert dict(store.snapshot()) == {}
    (aside,) = file.parent.glob(f"{NAME}.damaged-*")
    assert aside.read_bytes() == damaged
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert aside.name in caplog.text
    store.put("projectRules", "새 규칙")
    assert json.loads(file.read_text()) == {"projectRules": "새 규칙"}


def test_a_change_of_a_damaged_file_puts_it_aside_too(file: Path) -> None:
    store = open_store(file)
    file.write_bytes(b"{")
    store.put("projectRules", "규칙")
    assert dict(store.snapshot()) == {"projectRules": "규칙"}
    assert len(list(file.parent.glob("*.damaged-*"))) == 1


def test_an_escaped_half_of_a_letter_becomes_a_whole_one(file: Path) -> None:
    store = open_store(file)
    file.write_text(r'{"projectRules": "\ud800a"}')
    assert dict(store.snapshot()) == {"projectRules": "\ufffda"}


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "layer").write_text("no folder")
    with pytest.raises(FileAccessError, match="File exists"):
        open_store(tmp_path / "layer" / NAME)


def test_a_folder_in_the_files_place_is_refused_and_kept(file: Path) -> None:
    (file / "inside").mkdir(parents=True)
    with pytest.raises(FileAccessError, match="Is a directory"):
        open_store(file)
    assert (file / "inside").is_dir()
