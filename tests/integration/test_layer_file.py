"""The files of the contexts of owners and roots: what outlasts the server, and what becomes of a damaged one."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.layer.app_context import ContextRegistry, ContextScope, FileContextStore, PersistentRefreshTrigger
from graph.value.error import FileAccessError
from tests.fake.drawn import at_most
from tests.fake.layer import DIRECTORY

ROOT = Path(__file__).parents[2]
NAME = "persistent-context.json"
PAIRS = [("kim", "/a"), ("kim", "/b"), ("lee", "/a"), ("kim/a", ""), ("../..", "/a"), ("", "kim/a"), ("\ud800", "\x00")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "layer" / NAME


def open_store(file: Path) -> FileContextStore:
    return FileContextStore(file, ContextScope.APP)


def start_writer(file: Path, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fake.context_writer", str(file), *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def names_beside(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


def test_file_and_folder_are_the_users_alone(file: Path) -> None:
    open_store(file).put("projectRules", "규칙")
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {0o600}
    assert names_beside(file) == [NAME, f"{NAME}.lock"]


@settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=100), max_size=5))
def test_any_text_is_there_after_a_restart(file: Path, entries: dict[str, str]) -> None:
    store = open_store(file)
    store.clear()
    store.put_all(entries)
    retained = {key.replace("\x00", "\ufffd"): value.replace("\x00", "\ufffd") for key, value in entries.items()}
    assert dict(open_store(file).snapshot()) == retained


def test_two_processes_lose_nothing_of_each_other(file: Path) -> None:
    writers = [start_writer(file, name, 100) for name in ("a", "b")]
    assert [len(writer.communicate()[0].splitlines()) for writer in writers] == [100, 100]
    retained = open_store(file).snapshot()
    assert dict(retained) == {f"{name}-{number}": str(number) for name in "ab" for number in range(1, 101)}


def test_opening_deletes_what_was_left_of_this_file_alone(file: Path) -> None:
    open_store(file).put("projectRules", "규칙")
    for name in (NAME, "other.json"):
        (file.parent / f".tmp-{name}-abc").write_text("{")
    assert dict(open_store(file).snapshot()) == {"projectRules": "규칙"}
    assert names_beside(file) == [".tmp-other.json-abc", NAME, f"{NAME}.lock"]


def test_a_write_that_fails_leaves_the_old_file(file: Path) -> None:
    open_store(file).put("projectRules", "규칙")
    writer = start_writer(file, "a", 1_000, 1_000)
    *told, refused = writer.communicate()[0].splitlines()
    assert refused == "refused file_access"
    assert dict(open_store(file).snapshot()) == {"projectRules": "규칙", **{f"a-{number}": number for number in told}}
    assert names_beside(file) == [NAME, f"{NAME}.lock"]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"[]",
        b"null",
        b'{"projectRules": 1}',
        b"\xff\xfe{}",
        b"\x00" * 9,
        b"[" * 100_000,
        b'{"projectRules": "' + "가".encode()[:2] + b'"}',
    ],
)
def test_a_damaged_file_is_put_aside_for_a_new_one(
    file: Path, damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    opened = open_store(file)
    for is_open in (True, False):
        file.write_bytes(damaged)
        assert dict((opened if is_open else open_store(file)).snapshot()) == {}
        (side_request,) = file.parent.glob(f"{NAME}.damaged-*")
        assert side_request.read_bytes() == damaged
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert side_request.name in caplog.text
        side_request.unlink()
        caplog.clear()
    file.write_bytes(damaged)
    opened.put("projectRules", "새 규칙")
    assert json.loads(file.read_text()) == {"projectRules": "새 규칙"}
    assert len(list(file.parent.glob("*.damaged-*"))) == 1


def test_an_escaped_half_of_a_letter_becomes_a_whole_one(file: Path) -> None:
    store = open_store(file)
    file.write_text(r'{"projectRules": "\ud800a"}')
    assert dict(store.snapshot()) == {"projectRules": "\ufffda"}


def test_a_place_that_cannot_be_written_is_refused_and_left_as_it_is(file: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no folder")
    with pytest.raises(FileAccessError, match="File exists"):
        open_store(tmp_path / "plain" / NAME)
    (file / "inside").mkdir(parents=True)
    with pytest.raises(FileAccessError, match="Is a directory"):
        open_store(file)
    assert (file / "inside").is_dir()


class Rules:
    def __init__(self) -> None:
        self.loaded: list[tuple[str, str]] = []

    def load(self, owner: str, root: str) -> str:
        self.loaded.append((owner, root))
        return f"{owner}의 {root} 규칙"


def registry(folder: Path, rules: Rules) -> ContextRegistry:
    return ContextRegistry(folder, rules.load, directory=DIRECTORY)


def test_each_owner_and_root_has_a_context_of_its_own(tmp_path: Path) -> None:
    contexts = registry(tmp_path / "layer", Rules())
    for owner, root in PAIRS:
        service = contexts.app_context(owner, root)
        assert contexts.app_context(owner, root) is service
        service.update_volatile_from_request({"selection": f"{owner} {root}"})
        service.refresh_persistent_if_needed(PersistentRefreshTrigger(root, "digest"))
    seen = [contexts.app_context(*pair).get_app_context_for_prompt() for pair in PAIRS]
    for (persistent, volatile), (other_persistent, other_volatile) in combinations(seen, 2):
        assert persistent["projectRules"] != other_persistent["projectRules"]
        assert volatile["selection"] != other_volatile["selection"]
    assert [path.name for path in tmp_path.iterdir()] == ["layer"]
    assert len(list((tmp_path / "layer").iterdir())) == len(PAIRS)


def test_agreed_rules_outlast_the_server_and_what_a_request_said_does_not(tmp_path: Path) -> None:
    rules = Rules()
    trigger = PersistentRefreshTrigger("/a\udcff", "digest")
    before = registry(tmp_path, rules).app_context("kim", "/a\udcff")
    assert before.refresh_persistent_if_needed(trigger)
    before.update_volatile_from_request({"selection": "x"})
    after = registry(tmp_path, rules).app_context("kim", "/a\udcff")
    persistent, volatile = after.get_app_context_for_prompt()
    assert persistent["projectRules"] == "kim의 /a\ufffd 규칙"
    assert "selection" not in volatile
    assert not after.refresh_persistent_if_needed(trigger)
    assert rules.loaded == [("kim", "/a\udcff")]
    (file,) = tmp_path.glob(f"*/{NAME}")
    file.write_bytes(b"{")
    assert after.refresh_persistent_if_needed(trigger)
    assert after.get_app_context_for_prompt()[0]["projectRules"] == "kim의 /a\ufffd 규칙"


def test_only_the_services_asked_for_last_are_kept(tmp_path: Path) -> None:
    contexts = registry(tmp_path, Rules())
    first, second = (contexts.app_context("kim", root) for root in ("/1", "/2"))
    for number in range(3, 257):
        contexts.app_context("kim", f"/{number}")
    assert contexts.app_context("kim", "/1") is first
    contexts.app_context("kim", "/257")
    assert contexts.app_context("kim", "/1") is first
    assert contexts.app_context("kim", "/2") is not second


def test_the_lines_of_turns_that_earlier_versions_kept_are_deleted(tmp_path: Path) -> None:
    rules = registry(tmp_path, Rules()).app_context("kim", "/a")
    rules.refresh_persistent_if_needed(PersistentRefreshTrigger("/a", "digest"))
    (file,) = tmp_path.glob(f"*/{NAME}")
    name = "execution-summary-cache.json"
    for retained in (name, f"{name}.lock", f"{name}.damaged-0123456789ab", f".tmp-{name}-abc"):
        (file.parent / retained).write_text("{}")
    registry(tmp_path, Rules())
    assert names_beside(file) == [NAME, f"{NAME}.lock"]
