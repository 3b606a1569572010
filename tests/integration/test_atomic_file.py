from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from graph.file.atomic_file import locked, read_whole, write_whole
from graph.value.error import DiskFullError, FileAccessError
from tests.fake.whole_writer import version

ROOT = Path(__file__).parents[2]
KILLS = 25
VERSIONS = 50


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "a.json"


def start_writer(file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.fake.whole_writer", str(file)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def names_beside(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


def number_in(data: bytes | None) -> int:
    assert data is not None
    number = int(data[:8])
    assert data == version(number)
    return number


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_a_whole_file_with_all_that_it_told(file: Path) -> None:
    for kill in range(KILLS):
        writer = start_writer(file)
        assert writer.stdout is not None
        times = [time.monotonic() for _ in range(5) if writer.stdout.readline()]
        # Each time at another moment of a write.
        time.sleep((times[-1] - times[0]) / 4 * kill / KILLS)
        writer.kill()
        told = [line for line in ["5\n", *writer.stdout.readlines()] if line.endswith("\n")]
        writer.wait()
        assert number_in(read_whole(file)) >= int(told[-1])
        with locked(file):
            assert names_beside(file) == ["a.json", "a.json.lock"]


@pytest.mark.slow
def test_a_reader_without_the_lock_never_reads_a_part(file: Path) -> None:
    writer = start_writer(file)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        read: list[int] = []
        while len(set(read)) < VERSIONS:
            read.append(number_in(read_whole(file)))
    finally:
        writer.kill()
        writer.wait()
    assert read == sorted(read)


def test_a_full_disk_is_told_and_leaves_the_old_file(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting isn't allowed here")
    file = tmp_path / "a.json"
    try:
        with locked(file):
            write_whole(file, b"old")
            with pytest.raises(DiskFullError):
                write_whole(file, b"a" * 100_000)
        assert read_whole(file) == b"old"
        assert names_beside(file) == ["a.json", "a.json.lock"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_that_somebody_else_holds_is_refused(file: Path) -> None:
    assert read_whole(file) is None
    with locked(file), pytest.raises(FileAccessError, match="was locked for 0 s"), locked(file, wait_seconds=0):
        pass
    with locked(file, wait_seconds=0):
        pass
