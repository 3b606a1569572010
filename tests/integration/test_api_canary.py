from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from socket import create_connection

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_app import ask_health, served

TOKEN = "canary-token-0123456789"  # noqa: S105  # of this test alone
WRONG = "canary-wrong-0123456789"
SAID = "canary said 카나리아가 말했습니다"
BODY = {"model": "turnfold", "messages": [{"role": "user", "content": SAID}]}


def test_no_log_has_a_token_or_a_text_and_no_file_or_refusal_a_token(server: FakeOpenAI, tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "log"
    names = {"CHAT_API_TOKENS": f"editor:kim:{TOKEN}", "CHAT_API_ORIGINS": "https://notes.example"}
    with served("app.py", folder, server.url, log, TURNFOLD_LOG_LEVEL="DEBUG", **names) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            told = [
                client.post(path, headers={"Authorization": f"Bearer {token}", **more}, content=body)
                for path in ("/v1/chat/completions", "/v1/models", f"/v1/{TOKEN}", f"/v1/models?key={TOKEN}")
                for token in (TOKEN, WRONG)
                for more in (
                    {},
                    {"Host": "evil.example"},
                    {"Origin": "https://evil.example"},
                    {"Origin": "https://notes.example"},
                )
                for body in (json.dumps(BODY), SAID.encode(), json.dumps({"messages": SAID, SAID: TOKEN}))
            ]
        assert {answer.status_code for answer in told} >= {200, 400, 401, 403, 404, 405}
    refusals = [answer.text for answer in told if answer.status_code >= 400]
    assert not [text for text in refusals if "canary" in text]
    written = log.read_text()
    assert "TurnFinished" in written
    assert "canary" not in written
    assert "카나리아" not in written
    kept = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert TOKEN.encode() not in kept
    assert WRONG.encode() not in kept


@pytest.fixture(scope="module")
def page_server(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("page")
    names = {"TURNFOLD_HOSTS": "chat.example.com"}
    with served("app.py", folder / "data", endpoint.url, folder / "log", **names) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        yield port


@pytest.mark.parametrize(
    ("host", "origin", "is_let_in"),
    [
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}", True),
        ("chat.example.com", "https://chat.example.com", True),
        ("evil.example:{port}", "http://evil.example:{port}", False),
        ("127.0.0.1:{port}", "http://evil.example", False),
    ],
)
def test_the_page_and_its_stream_are_reached_by_their_own_names_alone(
    page_server: int, host: str, origin: str, *, is_let_in: bool
) -> None:
    host, origin = host.format(port=page_server), origin.format(port=page_server)
    answer = httpx2.get(f"http://127.0.0.1:{page_server}/", headers={"Host": host, "Origin": origin})
    assert answer.status_code == (200 if is_let_in else 403)
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert opening_of_the_stream(page_server, host, origin) == (101 if is_let_in else 403)


def opening_of_the_stream(port: int, host: str, origin: str) -> int:
    """Returns the status with which the page's websocket is answered."""
    opened = create_connection(("127.0.0.1", port))
    stream = f"ws://{host}/_stcore/stream"
    try:
        with connect(stream, sock=opened, origin=Origin(origin), subprotocols=[Subprotocol("streamlit")]):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/v1/", "/v1/anything"])
def test_without_a_token_in_the_settings_there_is_no_door(page_server: int, path: str) -> None:
    answer = httpx2.post(
        f"http://127.0.0.1:{page_server}{path}", headers={"Authorization": f"Bearer {TOKEN}"}, json=BODY
    )
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_url"
