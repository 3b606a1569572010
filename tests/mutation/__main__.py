"""Makes one fault at a time in a copy of the project and runs the tests that must see it.

python -m tests.mutation [--sample N] [--seed N] [--jobs N] [--root DIR] [--only NAME] [--verbose]

The last line sums up; the exit code is 1 if a mutant survived or doesn't apply, or if the tests fail without any.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.fake.folder import fast_folder
from tests.mutation.fold_mutants import Mutant
from tests.mutation.mutants import MUTANTS
from tests.mutation.place import mutated

ROOT: Final = Path(__file__).resolve().parents[2]
_PYTEST: Final = ("-m", "pytest", "-xq", "--timeout=30", "-pno:randomly", "-pno:cacheprovider", "-m", "not postgres")
_MUTANT_SECONDS: Final = 120
_BASE_SECONDS: Final = 1_200
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+::\S+)", re.MULTILINE)


def tests_of(mutants: Iterable[Mutant]) -> list[str]:
    """Returns the test files that must see these mutants, unit tests first."""
    files = dict.fromkeys(file for mutant in mutants for file in mutant.tests)
    return sorted(files, key=lambda file: not file.startswith("tests/unit/"))


def copy_tree(root: Path, copy: Path) -> None:
    """Copies the files that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in listed.split("\0"):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)


def run_tests(copy: Path, files: Sequence[str], *, seconds: float, compiles: bool) -> tuple[int | None, str]:
    """Returns pytest's exit code, None if it took too long, and what it said."""
    # A mutant may be as long as its line and made in the same second: compiled, it would be taken for another one.
    # In CI properties draw the same examples each time, so that no mutant is killed by chance.
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "" if compiles else "1", "CI": "1"}
    command = [sys.executable, *_PYTEST, *files]
    with (
        tempfile.TemporaryFile("w+", errors="replace") as said,
        subprocess.Popen(command, cwd=copy, env=env, stdout=said, stderr=said, start_new_session=True) as process,
    ):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, "too slow"
        said.seek(0)
        return process.returncode, said.read()


def try_mutant(copies: SimpleQueue[Path], mutant: Mutant, *, is_verbose: bool) -> str:
    """Makes the fault in a copy that is free, runs its tests there and takes it back; returns what became of it."""
    copy, began = copies.get(), time.monotonic()
    path = copy / mutant.path
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    try:
        faulty = mutated(text, mutant.place, mutant.change)
    except LookupError as error:
        result, why = "doesn't apply", str(error)
    else:
        times = path.stat()
        path.write_text(faulty, encoding="utf-8")
        result, why = judge(*run_tests(copy, tests_of([mutant]), seconds=_MUTANT_SECONDS, compiles=False))
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its compiled file is valid again
    copies.put(copy)
    if is_verbose or result != "killed":
        change = f"{mutant.path}: {mutant.place}, {mutant.change}"
        sys.stdout.write(f"{result} [{time.monotonic() - began:.0f} s] {change} ({why})\n")
        sys.stdout.flush()
    return result


def judge(code: int | None, said: str) -> tuple[str, str]:
    """Returns what became of a mutant whose tests ended so, and why: a file that can't be collected kills none."""
    if not code:
        return ("killed", said) if code is None else ("survived", "all tests pass")
    failed = _FAILED.search(said)
    return ("killed", failed[1]) if code == 1 and failed else ("doesn't apply", f"no test runs: {said[-300:]}")


def try_all(mutants: Sequence[Mutant], root: Path, folder: Path, *, jobs: int, is_verbose: bool) -> Counter[str] | None:
    """Counts what became of these mutants; None if their tests fail without them."""
    copies = [folder / str(number) for number in range(jobs)]
    copy_tree(root, copies[0])
    with ThreadPoolExecutor(jobs) as pool:
        run_base = partial(run_tests, copies[0], seconds=_BASE_SECONDS, compiles=True)
        for code, said in pool.map(run_base, filter(None, (tests_of(mutants)[job::jobs] for job in range(jobs)))):
            if code != 0:
                sys.stdout.write(f"{said}\nThe tests fail without any mutant, exit code {code}\n")
                return None
        queue: SimpleQueue[Path] = SimpleQueue()
        for copy in copies:
            if copy != copies[0]:
                shutil.copytree(copies[0], copy)
            queue.put(copy)
        return Counter(pool.map(partial(try_mutant, queue, is_verbose=is_verbose), mutants))


def main() -> int:
    """Tries all mutants or a sample of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--sample", type=int, help="how many mutants, drawn at random; all by default")
    parser.add_argument("--seed", type=int, help="draws the sample of another run again")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    parser.add_argument("--only", default="", help="only those of an area or a file")
    parser.add_argument("--verbose", action="store_true", help="tells by which test each mutant is killed")
    wanted = parser.parse_args()
    began = time.monotonic()
    chosen = [mutant for mutant in MUTANTS if wanted.only in ("", mutant.area, mutant.path)]
    if wanted.sample is not None:
        seed = secrets.randbelow(2**31) if wanted.seed is None else wanted.seed
        sys.stdout.write(f"seed {seed}\n")
        chosen = random.Random(seed).sample(chosen, min(wanted.sample, len(chosen)))  # noqa: S311 - a sample
    if missing := [file for file in tests_of(chosen) if not (wanted.root / file).is_file()]:
        sys.stdout.write(f"There are no such test files: {', '.join(missing)}\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="turnfold-mutation-", dir=fast_folder()) as folder:
        counts = try_all(chosen, wanted.root, Path(folder), jobs=wanted.jobs, is_verbose=wanted.verbose)
    if counts is None:
        return 1
    told = ", ".join(f"{counts[result]} {result}" for result in ("killed", "survived", "doesn't apply"))
    sys.stdout.write(f"{len(chosen)} mutants: {told} ({time.monotonic() - began:.0f} s)\n")
    return 0 if counts["killed"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
