from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from openai import OpenAI
from playwright.sync_api import Browser, expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.browser.conftest import visiting
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.proxy import proxied
from tests.fake.served_app import ask_health, served

pytestmark = pytest.mark.slow

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105  # of these servers alone
Servers = dict[int, subprocess.Popen[bytes]]


@contextmanager
def behind_proxy(endpoint: FakeOpenAI, folder: Path) -> Iterator[tuple[str, Servers]]:
    """Runs two servers on one database; yields their proxy's address, and them by their ports."""
    settings = {"MODEL_WINDOW_TOKENS": "100000", "MODEL_ATTEMPTS": "1", "CHAT_API_TOKENS": f"editor:local:{TOKEN}"}
    with ExitStack() as stack:
        started = [
            stack.enter_context(served("app.py", folder / "data", endpoint.url, folder / f"log-{n}", **settings))
            for n in range(2)
        ]
        for process, port in started:
            assert ask_health(port, process) == (200, "ok")
        port = stack.enter_context(proxied(folder / "nginx", [port for _, port in started]))
        yield f"http://127.0.0.1:{port}/", {port: process for process, port in started}


@pytest.fixture(scope="module")
def proxy(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with behind_proxy(endpoint, tmp_path_factory.mktemp("proxied")) as (address, _):
        yield address


def test_a_page_behind_the_proxy_goes_on_when_its_server_is_killed(
    chromium: Browser, endpoint: FakeOpenAI, fake_openai: FakeOpenAI, tmp_path: Path
) -> None:
    fake_openai.script(text("The first answer is this one."), to="the first question")
    fake_openai.script(text("The second answer is that one."), to="the second question")
    with behind_proxy(endpoint, tmp_path) as (address, servers), visiting(chromium, address) as visitor:
        visitor.open()
        visitor.ask("This is the first question.")
        expect(visitor.turn(1)).to_contain_text("The first answer is this one.")
        mine = port_of_page(tmp_path / "nginx/log")
        with visitor.page.expect_websocket():
            servers[mine].kill()
            servers[mine].wait()
        expect(visitor.page.get_by_test_id("stApp")).to_have_attribute("data-test-connection-state", "CONNECTED")
        visitor.settle()
        visitor.ask("This is the second question.", first=2)
        expect(visitor.turn(1)).to_contain_text("The first answer is this one.")
        expect(visitor.turn(2)).to_contain_text("The second answer is that one.")
        visitor.complaints.clear()  # of the connection that was cut


def test_a_program_behind_the_proxy_reads_words_before_the_answer_ends(proxy: str, fake_openai: FakeOpenAI) -> None:
    fake_openai.script(hang("One word ", "and another "), to="that never ends")
    program = OpenAI(base_url=f"{proxy}v1", api_key=TOKEN, max_retries=0, timeout=60)
    said = ""
    with program.chat.completions.create(
        model="turnfold", messages=[{"role": "user", "content": "A question that never ends"}], stream=True
    ) as stream:
        for piece in stream:
            said += piece.choices[0].delta.content or ""
            if said == "One word and another ":
                break
    assert said == "One word and another "


def test_only_a_page_of_the_same_origin_has_its_websocket_passed_on(proxy: str) -> None:
    stream = f"{proxy.replace('http', 'ws')}_stcore/stream"
    connect(stream, origin=Origin(proxy.rstrip("/")), proxy=None, open_timeout=30).close()
    with pytest.raises(InvalidStatus) as refused:
        connect(stream, origin=Origin("http://127.0.0.1:1"), proxy=None, open_timeout=30)
    assert refused.value.response.status_code == 403


def port_of_page(log: Path) -> int:
    """The server that the page's first request went to."""
    line = next(line for line in log.read_text().splitlines() if " GET / " in line)
    return int(line.rpartition(":")[2])
