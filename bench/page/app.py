"""Runs what is measured: a Streamlit app in a process of its own, as its users do, and a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser, sync_playwright

PRODUCT: Final = Path(__file__).parents[2] / "app.py"
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_CHROMIUMS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class RunningApp(NamedTuple):
    """An app that answers on a port of loopback."""

    port: int
    process_id: int


@contextmanager
def started_app(folder: Path, script: Path, settings: dict[str, str]) -> Iterator[RunningApp]:
    """Runs a Streamlit app in a folder, with no other settings than these."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true", "--server.port=0"]
    process = subprocess.Popen(  # noqa: S603  # it runs the product and the bare chat
        command, cwd=folder, env={**kept, **settings}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        ports = (re.search(r"http://\S+?:(\d+)", line) for line in process.stdout or ())
        yield RunningApp(int(next(filter(None, ports))[1]), process.pid)
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:  # what is measured has ended: what it still writes isn't needed
            process.kill()
            process.wait()


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Opens the machine's Chromium, or the one that Playwright has."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
        yield browser
        browser.close()


def chromium_path() -> str | None:
    """Returns where the machine's Chromium is; None if there is only the one that Playwright has."""
    return next(filter(None, map(shutil.which, _CHROMIUMS)), None)
