from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from graph.file.root_folder import RootFolder, RootFolders
from graph.value.error import PathError, PathReason
from tests.fake.privilege import without_privilege

SECRET = b"of another project"
LIMIT = 1_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "allowed" / "shop"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "AGENTS.md").write_bytes(b"be brief")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "AGENTS.md").write_bytes(SECRET)
    return root


@pytest.fixture
def folder(project: Path) -> Iterator[RootFolder]:
    with RootFolders([project]).opened(project) as opened:
        yield opened


def refused(read: Callable[[], object]) -> PathReason:
    with pytest.raises(PathError) as raised:
        read()
    return raised.value.reason


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_listed_folder_and_every_folder_below_it_is_a_root(project: Path) -> None:
    folders = RootFolders([project.parent])
    assert folders.resolve(project.parent) == project.parent
    with folders.opened(project / "docs") as opened:
        assert opened.path == project / "docs"
        assert opened.read_bytes("AGENTS.md", max_bytes=LIMIT) == b"be brief"


def test_nothing_else_is_a_root(project: Path) -> None:
    folders = RootFolders([project])
    for path in ("", "..", "/", "/etc", "../other", "a\0b", "\ud800", "x" * 5_000):
        with pytest.raises(PathError), folders.opened(path):
            pass
    assert refused(lambda: RootFolders([]).resolve(project)) == "not_allowed"
    (project.parent / "shop2").mkdir()  # its name begins alike
    assert refused(lambda: folders.resolve(project.parent / "shop2")) == "not_allowed"
    for root, reason in ((project / "gone", "vanished"), (project / "docs" / "AGENTS.md", "not_a_folder")):
        with pytest.raises(PathError) as raised, folders.opened(root):
            pass
        assert raised.value.reason == reason


def test_listed_link_stands_for_what_it_leads_to_when_it_is_listed(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(project)
    folders = RootFolders([link])
    assert folders.resolve(link) == project
    link.unlink()
    link.symlink_to(tmp_path / "other")
    assert refused(lambda: folders.resolve(link)) == "not_allowed"
    (project / "out").symlink_to(tmp_path / "other")
    assert refused(lambda: folders.resolve(project / "out")) == "symlink_outside"


def test_path_that_leads_out_or_is_none_is_refused(folder: RootFolder) -> None:
    for path in ("../other/AGENTS.md", "docs/../../../other/AGENTS.md", "/etc/passwd"):
        assert refused(partial(folder.read_bytes, path, max_bytes=LIMIT)) == "outside"
        assert refused(partial(folder.entries, path)) == "outside"
    for path in ("a\0b", "\ud800", "x" * 5_000, "docs/gone", "docs/AGENTS.md/x"):
        refused(partial(folder.read_bytes, path, max_bytes=LIMIT))


def test_links_inside_the_root_are_followed_and_known_as_one_file(project: Path, folder: RootFolder) -> None:
    (project / "link").symlink_to("docs")
    (project / "CLAUDE.md").symlink_to(project / "link" / "AGENTS.md")
    direct = folder.read_head("docs/AGENTS.md", head_bytes=LIMIT, max_bytes=LIMIT)
    linked = folder.read_head("CLAUDE.md", head_bytes=LIMIT, max_bytes=LIMIT)
    assert linked == direct
    assert folder.entries("link") == folder.entries("docs")
    assert folder.relative("link/AGENTS.md") == "docs/AGENTS.md"
    assert folder.entries("").links == {"link", "CLAUDE.md"}


def test_links_that_lead_out_of_the_root_or_to_themselves_are_refused(
    project: Path, folder: RootFolder, tmp_path: Path
) -> None:
    (project / "AGENTS.md").symlink_to("../../other/AGENTS.md")
    (project / "zero").symlink_to("/dev/zero")
    (project / "away").symlink_to(tmp_path / "other")
    (project / "loop").symlink_to("loop")
    for path in ("AGENTS.md", "zero", "away/AGENTS.md"):
        assert refused(partial(folder.read_bytes, path, max_bytes=LIMIT)) == "symlink_outside"
    assert refused(lambda: folder.entries("away")) == "symlink_outside"
    assert refused(lambda: folder.read_bytes("loop", max_bytes=LIMIT)) == "vanished"


def test_only_regular_files_that_may_be_read_are_read_up_to_the_limit(project: Path, folder: RootFolder) -> None:
    os.mkfifo(project / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(project / "socket"))
        for name in ("fifo", "socket", "docs", ""):
            assert refused(partial(folder.read_bytes, name, max_bytes=LIMIT)) == "not_regular"
    with (project / "huge").open("wb") as huge:
        huge.truncate(100_000_000)
    (project / "just").write_bytes(b"ab" * (LIMIT // 2))
    assert refused(lambda: folder.read_bytes("huge", max_bytes=LIMIT)) == "too_large"
    assert folder.read_bytes("just", max_bytes=LIMIT) == b"ab" * (LIMIT // 2)
    assert refused(lambda: folder.read_bytes("just", max_bytes=LIMIT - 1)) == "too_large"
    head = folder.read_head("just", head_bytes=3, max_bytes=LIMIT)
    assert (head.data, head.size_bytes) == (b"aba", LIMIT)
    (project / "just").chmod(0)
    with without_privilege():
        assert refused(lambda: folder.read_bytes("just", max_bytes=LIMIT)) == "unreadable"


def test_folder_of_too_many_names_is_refused(project: Path, folder: RootFolder) -> None:
    for number in range(10_001):
        (project / "docs" / str(number)).touch()
    assert refused(lambda: folder.entries("docs")) == "too_large"


def test_names_of_a_folder_are_sorted_by_kind(project: Path, folder: RootFolder) -> None:
    (project / "b").touch()
    (project / "a").touch()
    (project / "up").symlink_to("..")
    listing = folder.entries(".")
    assert (listing.files, listing.folders) == (("a", "b", "up"), ("docs",))
    assert listing.links == {"up"}


def test_name_stands_there_even_if_its_link_leads_nowhere(project: Path, folder: RootFolder) -> None:
    (project / "dangling").symlink_to("nowhere")
    assert folder.is_there("dangling")
    assert folder.is_there("docs/AGENTS.md")
    assert not folder.is_there("docs/gone")
    assert not folder.is_there("gone/AGENTS.md")
    assert not folder.is_there("docs/AGENTS.md/AGENTS.md")
    assert refused(lambda: folder.is_there("..")) == "outside"


def test_root_that_is_renamed_or_removed_is_noticed(project: Path, folder: RootFolder) -> None:
    folder.check_in_place()
    project.rename(project.parent / "renamed")
    assert refused(folder.check_in_place) == "vanished"
    project.mkdir()
    assert refused(folder.check_in_place) == "vanished"


def test_folder_that_vanishes_while_it_is_open_reads_as_gone(project: Path, folder: RootFolder) -> None:
    (project / "docs" / "AGENTS.md").unlink()
    with folder.open_folder("docs") as descriptor:
        (project / "docs").rmdir()
        with os.scandir(descriptor) as names:
            assert list(names) == []
    assert refused(lambda: folder.entries("docs")) == "vanished"
    assert refused(lambda: folder.read_bytes("docs/AGENTS.md", max_bytes=LIMIT)) == "vanished"


@pytest.mark.parametrize("name", ["AGENTS.md", "docs"])
def test_what_is_swapped_for_a_link_between_check_and_read_never_arrives(
    project: Path, folder: RootFolder, tmp_path: Path, name: str
) -> None:
    (project / "AGENTS.md").write_bytes(b"be brief")
    outside = tmp_path / "other" / "AGENTS.md" if name == "AGENTS.md" else tmp_path / "other"
    path = "AGENTS.md" if name == "AGENTS.md" else "docs/AGENTS.md"
    (project / "link").symlink_to(outside)
    is_done = threading.Event()

    def swap() -> None:
        while not is_done.is_set():  # each name always exists, as one or as the other
            (project / name).rename(project / "aside")
            (project / "link").rename(project / name)
            (project / name).rename(project / "link")
            (project / "aside").rename(project / name)

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes = set[bytes | PathReason]()
    try:
        for _ in range(3_000):
            try:
                outcomes.add(folder.read_bytes(path, max_bytes=LIMIT))
            except PathError as error:
                outcomes.add(error.reason)
    finally:
        is_done.set()
        swapping.join()
    assert SECRET not in outcomes
    assert {b"be brief", "symlink_outside"} <= outcomes


def test_nothing_stays_open(project: Path, tmp_path: Path) -> None:
    (project / "away").symlink_to(tmp_path / "other")
    folders = RootFolders([project])
    before = open_files()
    with folders.opened(project) as opened:
        opened.read_bytes("docs/AGENTS.md", max_bytes=LIMIT)
        opened.entries("docs")
        for path in ("gone/x", "docs/AGENTS.md/x", "docs/gone", "away", ""):
            refused(partial(opened.read_bytes, path, max_bytes=LIMIT))
    with pytest.raises(PathError), folders.opened(project / "docs" / "gone"):
        pass
    assert open_files() == before
