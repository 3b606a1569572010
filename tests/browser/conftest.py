"""Starts the whole product and a Chromium to use it with."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Playwright, expect, sync_playwright

from graph.server.settings import Settings
from graph.service import ChatService, open_service
from tests.browser.visitor import PATIENCE_MILLISECONDS, Visitor
from tests.fake.identity_provider import IdentityProvider
from tests.fake.mcp_tools import entry_of
from tests.fake.openai_server import FakeOpenAI

ROOT = Path(__file__).parents[2]
OWN = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # With a page that stays open, the pages of a window share a process, which has compiled their scripts already.
    "--process-per-site",
)


def chromium_path(playwright: Playwright) -> str | None:
    bundled = playwright.chromium.executable_path
    # The shell alone draws no window around a page, which is half of what opening one costs.
    shell, *whole = map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))
    return shell or (bundled if Path(bundled).exists() else next(filter(None, whole), None))


@contextmanager
def started(
    folder: Path, settings: Mapping[str, str], *, script: Path = ROOT / "app.py", port: int = 0
) -> Iterator[str]:
    retained = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    command += ["--server.headless=true", f"--server.port={port}"]
    with (folder / "server.log").open("w+") as log:
        # It runs in a folder of its own, so that no developer's `.env` counts.
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**retained, **settings, "TURNFOLD_DATA_DIR": str(folder / "data"), **OWN},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout is not None
            address = next((found for line in process.stdout if (found := re.search(r"http://\S+", line))), None)
            if address is None:
                pytest.fail(f"the server did not start: {(folder / 'server.log').read_text()}")
            yield address.group().replace("localhost", "127.0.0.1")  # as the tests name this host
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # says where each thread is
                process.wait()
                pytest.fail(f"the server did not end: {(folder / 'server.log').read_text()}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the journeys first: their two files take longest, and would keep one process at the end."""
    items.sort(key=lambda item: not item.path.name.startswith("test_journey_"))
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what its pages showed to the report of a test that failed: some failures come once in a hundred runs."""
    report = yield
    if report.when == "call" and report.failed:
        visitors = [value for value in item.funcargs.values() if isinstance(value, Visitor)]
        with suppress(Error):  # the page may be gone
            report.sections += [("page", visitor.describe()) for visitor in visitors]
    return report


# Playwright's loop counts as running in this thread until it ends; what comes behind these tests has its own.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        path = chromium_path(playwright)
        if path is None:
            if os.environ.get("REQUIRE_BROWSER"):
                pytest.fail("no Chromium")
            pytest.skip("no Chromium")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def endpoint() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def fake_openai(endpoint: FakeOpenAI) -> Iterator[FakeOpenAI]:
    """The endpoint that all browser tests share, for one of them: it scripts replies to its own words alone."""
    with endpoint.lent():
        yield endpoint


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scripted")


def scripted_settings(endpoint: FakeOpenAI) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": endpoint.url,
        "OPENAI_API_KEY": "sk-scripted-key-of-the-tests",
        "CHAT_MODEL": "scripted-model",
        "MODEL_WINDOW_TOKENS": "100000",
        "MODEL_SLOTS": "16",
        "MODEL_ATTEMPTS": "1",
        "AUTO_TITLES": "false",
        "MODEL_PRICES": '{"currency": "USD", "models": {"scripted-model": {"input": 2.5, "output": 10}}}',
    }


@pytest.fixture(scope="session")
def address(folder: Path, endpoint: FakeOpenAI) -> Iterator[str]:
    with started(folder, scripted_settings(endpoint)) as url:
        yield url


@contextmanager
def preparing(folder: Path, endpoint: FakeOpenAI, **settings: str) -> Iterator[ChatService]:
    """A second server on the files of the first: it prepares chats in a tenth of the time that the page takes."""
    values = {name.lower(): value for name, value in {**scripted_settings(endpoint), **settings}.items()}
    with open_service(Settings(_env_file=None, turnfold_data_dir=folder / "data", **values)) as service:  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic turns text into values
        yield service


@pytest.fixture(scope="session")
def other_server(folder: Path, endpoint: FakeOpenAI, address: str) -> Iterator[ChatService]:
    assert address
    with preparing(folder, endpoint) as service:
        yield service


@pytest.fixture(autouse=True)
def _leave_no_chats(request: pytest.FixtureRequest) -> Iterator[None]:
    """Deletes what the test has begun: every row of the sidebar costs each later drawing of a page."""
    if not {"address", "target"} & set(request.fixturenames):
        yield
        return
    service: ChatService = request.getfixturevalue("other_server")
    before = {item.session_id for item in service.sessions.list()}
    yield
    for item in service.sessions.list():
        if item.session_id not in before:
            service.sessions.delete(item.session_id)


@pytest.fixture(scope="session")
def offline_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(tmp_path_factory.mktemp("offline"), {}) as url:
        yield url


@cache
def context_of(chromium: Browser, options: str) -> BrowserContext:
    """Returns the window for these options: the page's scripts are read and compiled once for all its tests."""
    return chromium.new_context(**json.loads(options))


@contextmanager
def visiting(chromium: Browser, address: str, **options: object) -> Iterator[Visitor]:
    defaults: dict[str, object] = {
        "locale": "ko-KR",
        "timezone_id": "Asia/Seoul",
        "reduced_motion": "reduce",
        "viewport": {"width": 1280, "height": 800},
        # A window lets a page that was pressed copy; without one Chromium asks somebody who isn't there.
        "permissions": ["clipboard-read", "clipboard-write"],
    }
    context = context_of(chromium, json.dumps({**defaults, **options}, sort_keys=True))
    if not context.pages:
        context.new_page().goto(f"{address}/health")
    visitor = Visitor(context, address, "en" if options.get("locale") == "en-US" else "ko")
    try:
        yield visitor
        visitor.expect_no_complaint()
    except (AssertionError, Error) as error:
        with suppress(Error):
            error.add_note(visitor.describe())
        raise
    finally:
        # Also after a failure: the next page would open as this one was left.
        with suppress(Error):
            visitor.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        visitor.page.close()
        context.clear_cookies()


@pytest.fixture
def visitor(chromium: Browser, address: str) -> Iterator[Visitor]:
    with visiting(chromium, address) as opened:
        yield opened


@pytest.fixture
def phone(chromium: Browser, address: str) -> Iterator[Visitor]:
    with visiting(chromium, address, viewport={"width": 390, "height": 844}, has_touch=True) as opened:
        yield opened


@pytest.fixture
def english(chromium: Browser, address: str) -> Iterator[Visitor]:
    with visiting(chromium, address, locale="en-US") as opened:
        yield opened


NARROW_LIMITS = {
    "CONTEXT_STRATEGY": "compaction",
    "ENABLE_AUTO_COMPACTION": "false",
    "MAX_CONTEXT_TOKENS": "2000",
    "ROLLING_SENDS_UNSUMMARISED": "false",
}


class Target(NamedTuple):
    """Where a journey goes; `service` is another server's on the same files."""

    address: str
    service: ChatService


@pytest.fixture
def target(journey: str, request: pytest.FixtureRequest, fake_openai: FakeOpenAI, tmp_path: Path) -> Iterator[Target]:
    """Where a journey goes: the server that most tests share, or one of its own."""
    from tests.browser.site import opened_site  # noqa: PLC0415  # it imports this file

    with ExitStack() as stack:
        if journey == "sign-in":
            provider = stack.enter_context(IdentityProvider())
            site = stack.enter_context(opened_site(tmp_path, fake_openai, provider))
            service = stack.enter_context(preparing(tmp_path, fake_openai))
            yield Target(site.address, service.for_owner(site.owner("minsu")))
        elif journey in {"project", "full context"}:
            (tmp_path / "projects" / "shop").mkdir(parents=True)
            changes = {"project": {"PROJECT_ROOTS": str(tmp_path / "projects/shop")}}.get(journey, NARROW_LIMITS)
            address = stack.enter_context(started(tmp_path, {**scripted_settings(fake_openai), **changes}))
            yield Target(address, stack.enter_context(preparing(tmp_path, fake_openai, **changes)))
        elif journey == "tools":
            entries = {"mcpServers": {"notes": entry_of(tmp_path), "gone": {"command": "no-such-command"}}}
            (tmp_path / "servers.json").write_text(json.dumps(entries))
            changes = {"MCP_SERVERS": str(tmp_path / "servers.json")}
            address = stack.enter_context(started(tmp_path, {**scripted_settings(fake_openai), **changes}))
            yield Target(address, stack.enter_context(preparing(tmp_path, fake_openai)))
        else:
            address = request.getfixturevalue("offline_address" if journey == "first chat" else "address")
            yield Target(address, request.getfixturevalue("other_server"))
