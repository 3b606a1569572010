"""Starts what is measured: a Streamlit app in a process of its own, as its users do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.fake.port import free_port, wait_for_port

ROOT = Path(__file__).parents[1]
PRODUCT = ROOT / "app.py"


class App(NamedTuple):
    """An app that answers on a port of loopback."""

    process: subprocess.Popen[bytes]
    port: int


@contextmanager
def started(
    folder: Path,
    settings: Mapping[str, str],
    *,
    script: Path = PRODUCT,
    port: int = 0,
    runner: Sequence[str] = ("streamlit",),
) -> Iterator[App]:
    """Runs an app in a folder, with no other settings than these; what it says goes to the file `log` there.

    `runner` is the module that runs it, with what it takes before Streamlit's own arguments.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    retained = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    own = {"TURNFOLD_DATA_DIR": str(folder / "data")}
    arguments = ["run", str(script), "--server.headless=true", f"--server.port={port}"]
    command = [sys.executable, "-m", *runner, *arguments]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={**retained, **own, **settings}, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_for_port(port, process, folder / "log")
        yield App(process, port)
    finally:
        process.kill()
        process.wait()


def model_settings(url: str) -> dict[str, str]:
    """Returns the settings of a product that asks the endpoint of `bench.endpoint`."""
    return {
        "OPENAI_BASE_URL": url,
        "MODEL_SLOTS": "1000",
        "OPENAI_API_KEY": "sk-bench",
        "CHAT_MODEL": "bench-model",
        "MODEL_WINDOW_TOKENS": "100000",
        "TURNS_PER_MINUTE": "1000000",
    }
