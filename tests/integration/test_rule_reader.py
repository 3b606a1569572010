from __future__ import annotations

import itertools
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from graph.file.root_folder import RootFolders
from graph.layer.rule_reader import MAX_FILES, READ_BYTES, locate, read_rules
from graph.layer.rule_set import RuleSet
from graph.value.error import PathError
from tests.fake.privilege import without_privilege

OUTSIDE = "of another project"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "AGENTS.md").write_text(OUTSIDE)
    return root


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def read(root: Path, current_file: str | None = None, clock: Callable[[], float] = lambda: 0.0) -> RuleSet:
    with RootFolders([root]).opened(root) as folder:
        return read_rules(folder, locate(folder, current_file), clock=clock)


def paths(rules: RuleSet) -> list[str]:
    return [file.path for file in rules.files]


def refusals(rules: RuleSet) -> dict[str, str]:
    return {file.path: file.refusal for file in rules.files if file.refusal is not None}


def test_each_folder_on_the_way_to_the_current_file_is_read_from_the_root_on(project: Path) -> None:
    names = ("AGENTS.md", "src/AGENTS.md", "src/web/AGENTS.md", "src/web/deep/AGENTS.md", "docs/AGENTS.md")
    write(project, {name: name for name in names})
    (project / "link").symlink_to("src/web")
    for current_file in ("src/web/new.ts", str(project / "src" / "web" / "new.ts"), "link/new.ts"):
        rules = read(project, current_file)
        assert paths(rules) == ["AGENTS.md", "src/AGENTS.md", "src/web/AGENTS.md"]
        assert rules.folders == ("", "src", "src/web")
    for outside in ("../other/x.ts", "/etc/passwd", "a\0b", "\ud800", "", "x" * 5_000, None):
        assert read(project, outside).folders == ("",)
        assert paths(read(project, outside)) == ["AGENTS.md"]


def test_rules_of_an_editor_are_found_at_every_depth(project: Path) -> None:
    names = [".cursor/rules/b.mdc", ".cursor/rules/a/c.mdc", ".cursor/rules/note.md", "src/.cursor/rules/d.mdc"]
    write(project, {name: name for name in [*names, "AGENTS.md"]})
    rules = read(project, "src/x.ts")
    assert paths(rules) == ["AGENTS.md", ".cursor/rules/b.mdc", ".cursor/rules/a/c.mdc", "src/.cursor/rules/d.mdc"]
    assert [file.folder for file in rules.files] == ["", "", "", "src"]


@pytest.mark.parametrize("own", ["AGENTS.md", ".cursor/rules/a.mdc"])
def test_other_names_are_read_only_where_a_folder_has_neither(project: Path, own: str) -> None:
    write(project, {"CLAUDE.md": "c", ".cursorrules": "r", ".cursor/rules/note.txt": "x"})
    write(project, {"src/CLAUDE.md": "s", f"src/{own}": "own"})
    assert paths(read(project, "src/x.ts")) == ["CLAUDE.md", ".cursorrules", f"src/{own}"]


def test_one_file_or_folder_of_two_names_is_read_once(project: Path) -> None:
    write(project, {"AGENTS.md": "root", "src/x": "", ".cursor/rules/a/x.mdc": "x", "shared/y.mdc": "y"})
    (project / "src" / "AGENTS.md").symlink_to("../AGENTS.md")
    os.link(project / "AGENTS.md", project / "src" / ".cursorrules")
    (project / ".cursor/rules/a/again").symlink_to("../../rules")
    (project / ".cursor/rules/shared").symlink_to("../../shared")
    found = ["AGENTS.md", ".cursor/rules/a/x.mdc", ".cursor/rules/shared/y.mdc"]
    assert paths(read(project, "src/x")) == found


def test_the_nearest_are_read_if_there_are_too_many_files_or_folders(project: Path) -> None:
    many = {f".cursor/rules/{number:03}.mdc": str(number) for number in range(MAX_FILES)}
    write(project, {**many, "AGENTS.md": "root", "src/AGENTS.md": "near"})
    rules = read(project, "src/a.ts")
    assert paths(rules) == ["AGENTS.md", *sorted(many)[: MAX_FILES - 2], "src/AGENTS.md"]
    assert rules.exceeded == ("files",)
    write(project, {f".cursor/rules/{number:03}/a.mdc": str(number) for number in range(250)})
    assert read(project, "src/a.ts").exceeded == ("files", "folders")
    deep = "/".join(["d"] * 201)
    write(project, {f"{deep}/AGENTS.md": "near"})
    rules = read(project, f"{deep}/a.ts")
    assert paths(rules) == [f"{deep}/AGENTS.md"]
    assert rules.exceeded == ("folders",)


def test_what_is_no_rules_file_is_refused_with_its_reason(project: Path, tmp_path: Path) -> None:
    rules = project / ".cursor" / "rules"
    rules.mkdir(parents=True)
    (project / "AGENTS.md").symlink_to("/dev/zero")
    os.mkfifo(rules / "fifo.mdc")
    (rules / "folder.mdc").mkdir()
    (rules / "binary.mdc").write_bytes(b"\x7fELF\0")
    (rules / "gone.mdc").symlink_to("nowhere")
    (rules / "out.mdc").symlink_to(tmp_path / "other" / "AGENTS.md")
    (rules / "away").symlink_to(tmp_path / "other")
    (project / "src").mkdir()
    (project / "src" / ".cursor").symlink_to(tmp_path / "other")
    (tmp_path / "other" / "rules").mkdir()
    (rules / "good.mdc").write_text("---\nalwaysApply: true\n---\nBe brief.")
    with (rules / "huge.mdc").open("wb") as huge:
        huge.truncate(100_000_000)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(rules / "socket.mdc"))
        found = read(project, "src/a.ts")
    assert refusals(found) == {
        "AGENTS.md": "symlink_outside",
        "src/.cursor/rules": "symlink_outside",
        ".cursor/rules/away": "symlink_outside",
        ".cursor/rules/binary.mdc": "binary",
        ".cursor/rules/fifo.mdc": "not_regular",
        ".cursor/rules/gone.mdc": "vanished",
        ".cursor/rules/huge.mdc": "too_large",
        ".cursor/rules/out.mdc": "symlink_outside",
        ".cursor/rules/socket.mdc": "not_regular",
    }
    assert found.text_for().persistent == '<rules from=".cursor/rules/good.mdc">\nBe brief.\n</rules>'


def test_long_file_is_read_to_a_line_end_within_32_kib(project: Path) -> None:
    line = "언제나 한국어로 답한다.\n"
    text = line * (45_002 // len(line.encode()))
    write(project, {"AGENTS.md": text})
    file = read(project).files[0]
    assert len(file.raw.encode()) == READ_BYTES // len(line.encode()) * len(line.encode())
    assert file.size_bytes == len(text.encode())
    assert file.bad_count == 0


def test_folders_that_are_not_there_cost_nothing(project: Path) -> None:
    write(project, {"AGENTS.md": "root"})
    looks = itertools.count()
    rules = read(project, "d/" * 2_000 + "a.ts", clock=lambda: next(looks) and 0.0)
    assert paths(rules) == ["AGENTS.md"]
    assert next(looks) < 10
    assert len(rules.folders) == 2_001


def test_a_root_that_vanishes_while_it_is_read_or_takes_too_long_gives_no_rules(project: Path) -> None:
    write(project, {"AGENTS.md": "root"})
    seconds = itertools.count(0.0, 1.5)

    def vanish() -> float:
        if project.exists():
            project.rename(project.parent / "moved")
        return 0.0

    for clock, reason in ((lambda: next(seconds), "too_slow"), (vanish, "vanished")):
        with pytest.raises(PathError) as raised:
            read(project, clock=clock)
        assert raised.value.reason == reason


def test_folder_that_vanishes_while_it_is_read_leaves_the_others(project: Path) -> None:
    write(project, {"AGENTS.md": "root", ".cursor/rules/a/x.mdc": "x", ".cursor/rules/b/y.mdc": "y"})
    times = itertools.count()

    def clock() -> float:
        if next(times) == 4:  # behind the listing of the rules' folder
            (project / ".cursor/rules/a/x.mdc").unlink()
            (project / ".cursor/rules/a").rmdir()
        return 0.0

    rules = read(project, clock=clock)
    assert refusals(rules) == {".cursor/rules/a": "vanished"}
    assert paths(rules) == ["AGENTS.md", ".cursor/rules/a", ".cursor/rules/b/y.mdc"]


def test_folder_without_permission_is_refused_with_its_reason(project: Path) -> None:
    write(project, {"src/AGENTS.md": "x", "AGENTS.md": "root"})
    (project / "src").chmod(0)
    try:
        with without_privilege():
            assert refusals(read(project, "src/a.ts"))["src/AGENTS.md"] == "unreadable"
    finally:
        (project / "src").chmod(0o700)


def test_names_hide_nothing_and_need_not_be_text(project: Path) -> None:
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "obey")
    write(project, {f".cursor/rules/a{hidden}.mdc": "---\nalwaysApply: true\n---\nx"})
    Path(os.fsdecode(os.fsencode(project) + b"/.cursor/rules/\xff\n.mdc")).write_text("---\ndescription: y\n---\n")
    rules = read(project)
    text = RuleSet.model_validate_json(rules.model_dump_json()).text_for().persistent
    assert hidden not in text
    assert '<rules from=".cursor/rules/a⟦U+E006F⟧' in text
    assert '<rule name="\ufffd">y</rule>' in text


def test_link_that_is_swapped_while_rules_are_read_brings_nothing_from_outside(project: Path, tmp_path: Path) -> None:
    write(project, {"inside.md": "be brief"})
    (project / "AGENTS.md").symlink_to("inside.md")
    (project / "next").symlink_to(tmp_path / "other" / "AGENTS.md")
    is_done = threading.Event()

    def swap() -> None:
        while not is_done.is_set():
            (project / "AGENTS.md").rename(project / "aside")
            (project / "next").rename(project / "AGENTS.md")
            (project / "aside").rename(project / "next")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        texts = {file.raw for _ in range(300) for file in read(project).files}
    finally:
        is_done.set()
        swapping.join()
    assert texts <= {"be brief", ""}
    assert "be brief" in texts
