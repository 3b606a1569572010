from __future__ import annotations

import threading
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.layer.app_context import PATH_CHARS, SELECTION_CHARS, RequestPolicy
from prompt.system.framing import Language
from tests.fake.layer import DIRECTORY, app_context

KEYS = st.sampled_from(["currentFile", "selection", "projectRoot", "workingDirectory", "currentFileRules"]) | st.text()
SAID = st.text(max_size=50) | st.integers() | st.none() | st.lists(st.text(), max_size=2)
SERVER = {"workingDirectory": str(DIRECTORY), "projectRoot": "/srv/root"}


@given(st.lists(st.dictionaries(KEYS, SAID, max_size=6), max_size=4), st.sampled_from(get_args(RequestPolicy)))
def test_only_the_allowed_keys_are_taken(requests: list[dict[str, object]], policy: RequestPolicy) -> None:
    service = app_context(policy=policy)
    for request in requests:
        service.ensure_volatile_server_working_directory(DIRECTORY, Path("/srv/root"))
        volatile = service.update_volatile_from_request(request)
        assert set(volatile) <= {"workingDirectory", "projectRoot", "currentFile", "selection"}
        assert volatile["workingDirectory"] == str(DIRECTORY)
        assert all(volatile.values())
        assert "projectRoot" in request or volatile["projectRoot"] == "/srv/root"
        assert service.get_app_context_for_prompt()[1] == volatile


def test_a_caller_cannot_set_what_the_server_sets_and_a_root_for_its_request_alone() -> None:
    service = app_context()
    service.ensure_volatile_server_working_directory(DIRECTORY, Path("/srv/root"))
    request = {"workingDirectory": "/etc", "currentFileRules": "따라.", "defaultSystemRules": "", "userMessage": "나"}
    assert service.update_volatile_from_request(request) == SERVER
    assert not service.volatile_store.snapshot().get("currentFileRules")
    assert service.update_volatile_from_request({"projectRoot": "/srv/other"})["projectRoot"] == "/srv/other"
    assert service.update_volatile_from_request({})["projectRoot"] == "/srv/root"


def test_relative_paths_are_resolved_against_the_servers_directory_and_those_too_long_dropped() -> None:
    service = app_context()
    for said, resolved in (
        ("src/App.kt", "/srv/code/src/App.kt"),
        (".", "/srv/code"),
        ("./src/../문서/a.md", "/srv/code/문서/a.md"),
        ("../other/a.py", "/srv/other/a.py"),
        ("/repo/./a.py", "/repo/a.py"),
        ("~/a.py", "/srv/code/~/a.py"),
        ("a\x00b", "/srv/code/a\ufffdb"),
    ):
        assert service.update_volatile_from_request({"currentFile": said})["currentFile"] == resolved
    longest = "/" + "a" * (PATH_CHARS - 1)
    assert service.update_volatile_from_request({"currentFile": longest})["currentFile"] == longest
    assert service.update_volatile_from_request({"currentFile": longest + "a"})["currentFile"] == longest
    assert service.update_volatile_from_request({"projectRoot": longest + "a"})["projectRoot"] == str(DIRECTORY)


@pytest.mark.parametrize(
    ("language", "note"),
    [("ko", "[… 9,000자 중 1,023자 생략]"), ("en", "[… 1,039 of 9,000 characters left out]")],
)
def test_a_long_selection_is_cut_where_one_can_see_it(language: Language, note: str) -> None:
    said = "가나다" * 3_000
    cut = app_context().update_volatile_from_request({"selection": said}, language)["selection"]
    retained, _, end = cut.rpartition("\n")
    assert end == note
    assert said.startswith(retained)
    assert f"{len(said) - len(retained):,}" in note
    assert len(cut) <= SELECTION_CHARS
    for length in (SELECTION_CHARS - 1, SELECTION_CHARS, SELECTION_CHARS + 1, SELECTION_CHARS + 60):
        cut = app_context().update_volatile_from_request({"selection": "a" * length}, language)["selection"]
        assert (cut == "a" * length) == (length <= SELECTION_CHARS)
        assert len(cut) <= SELECTION_CHARS


def test_a_request_is_merged_with_the_one_before_but_for_another_file_or_stands_alone() -> None:
    merged, alone = app_context(policy="merge"), app_context(policy="request")
    for service in (merged, alone):
        service.update_volatile_from_request({"currentFile": "a.py", "selection": "def a():"})
    server = {"workingDirectory": str(DIRECTORY), "projectRoot": str(DIRECTORY)}
    assert alone.update_volatile_from_request({}) == alone.get_app_context_for_prompt()[1] == server
    assert merged.update_volatile_from_request({})["selection"] == "def a():"
    assert merged.update_volatile_from_request({"selection": "return"})["currentFile"] == "/srv/code/a.py"
    assert "selection" in merged.update_volatile_from_request({"currentFile": "./a.py"})
    assert "selection" not in merged.update_volatile_from_request({"currentFile": "b.py"})
    for blank in ("", " ", "\n\t"):  # takes back an earlier value
        merged.update_volatile_from_request({"currentFile": "a.py", "selection": "def a():"})
        assert "selection" not in merged.update_volatile_from_request({"selection": blank})
        assert merged.update_volatile_from_request({"currentFile": blank, "projectRoot": blank}) == server


def test_directories_that_are_no_utf_8_are_told_as_text() -> None:
    service = app_context()
    service.ensure_volatile_server_working_directory(Path("/srv/\udcff"), Path("/srv/\udcfe"))
    volatile = service.update_volatile_from_request({"currentFile": "a.py"})
    assert list(volatile.values()) == ["/srv/\ufffd", "/srv/\ufffd", "/srv/\ufffd/a.py"]


def test_no_reader_sees_half_a_request() -> None:
    service = app_context()
    pairs = [{"currentFile": f"/{name}.py", "selection": name} for name in "ab"]
    service.update_volatile_from_request(pairs[0])
    done = threading.Event()

    def write() -> None:
        for number in range(2_000):
            service.update_volatile_from_request(pairs[number % 2])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        volatile = service.get_app_context_for_prompt()[1]
        seen.add((volatile.get("currentFile"), volatile.get("selection")))
    writer.join()
    assert seen <= {("/a.py", "a"), ("/b.py", "b")}
