"""Starts the product's server as its users do, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fake.chat import question
from tests.fake.port import free_port

ROOT: Final = Path(__file__).resolve().parents[2]
KEY: Final = "sk-scripted-key-of-the-tests"


def refused_start(folder: Path, **settings: str) -> str:
    """Starts the product in a folder, with settings that it must not take; returns what it says of them."""
    said = _refused(_command(ROOT / "app.py", 0), folder, settings)
    assert "Turnfold can't start" in said
    return said


def second_start(folder: Path, **settings: str) -> str:
    """Starts the product without a port of its own, where one runs already; returns what it says."""
    return _refused(_command(ROOT / "app.py"), folder, settings)


def _refused(command: list[str], folder: Path, settings: Mapping[str, str]) -> str:
    environment = {**_retained(), **settings}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


@contextmanager
def served(
    script: str, folder: Path, url: str, log: Path, **settings: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Starts the server of a script over the files in a folder; yields its process and port."""
    port = free_port()
    environment = {
        **_retained(),
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": KEY,
        "CHAT_MODEL": "scripted-model",
        "AUTO_TITLES": "false",
        "MODEL_SLOTS": "16",
        "TURNFOLD_DATA_DIR": str(folder),
        "TURNFOLD_TEST_MESSAGE": question(1),
        **settings,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(script, port), cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield process, port
        finally:
            process.kill()
            process.wait()


def _command(script: str | Path, port: int | None = None) -> list[str]:
    chosen = [] if port is None else [f"--server.port={port}"]
    return [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true", *chosen]


def _retained() -> dict[str, str]:
    """What a server is given of the tests' own environment."""
    return {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}


def ask_health(port: int, process: subprocess.Popen[bytes], *, patience_seconds: float = 60) -> tuple[int, str]:
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                return answer.status, json.load(answer)["status"]
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["status"]
        except OSError:
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)
