from __future__ import annotations

import socket
from pathlib import Path

import httpx2
import pytest

from tests.fake.identity_provider import COOKIE_SECRET
from tests.fake.served_app import ask_health, refused_start, second_start, served
from tests.fake.sign_in import PROVIDER

UNASKED = "http://127.0.0.1:9/v1"  # no model is called
SIGN_IN = {**{name.upper(): value for name, value in PROVIDER.items()}, "TURNFOLD_HOSTS": "chat.example.com"}
WITH_SECRET = {**SIGN_IN, "STREAMLIT_SERVER_COOKIE_SECRET": COOKIE_SECRET}
HEADERS = {"STREAMLIT_SERVER_TRUSTED_USER_HEADERS": '{"X-Sub": "sub"}'}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("COMPRESSION_RATE", "9", "COMPRESSION_RATE"),
        ("OPENAI_BASE_URL", "localhost:11434", "OPENAI_BASE_URL: takes a URL that begins with http:// or https://"),
        ("LEASE_SECONDS", "9.5", "LEASE_SECONDS (9.5) must be at least twice HEARTBEAT_SECONDS (5)"),
        ("TURNFOLD_DATA_DIR", "{folder}", "not_a_database"),
        ("MCP_SERVERS", "{folder}/turnfold.db", "turnfold.db isn't JSON"),
        ("STREAMLIT_SERVER_BASE_URL_PATH", "/chat/", "server.baseUrlPath) can't be used: Turnfold needs a host name"),
        ("CHAT_DATABASE_URL", "postgresql://a:b@c/d?schema=x", "has the parameter schema, which Postgres doesn't know"),
    ],
)
def test_server_that_cannot_start_says_why_in_a_sentence(tmp_path: Path, name: str, value: str, sentence: str) -> None:
    (tmp_path / "turnfold.db").write_text("these are plain words, and no database at all")
    assert sentence in refused_start(tmp_path, **{name: value.format(folder=tmp_path)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (SIGN_IN, "STREAMLIT_SERVER_COOKIE_SECRET takes at least 32 bytes"),
        (
            {"STREAMLIT_SERVER_ADDRESS": "0.0.0.0"},
            "STREAMLIT_SERVER_ADDRESS (0.0.0.0) is one that others reach",
        ),
        ({**SIGN_IN, "STREAMLIT_SERVER_COOKIE_SECRET": "s" * 31}, "takes at least 32 bytes"),
        (
            {**WITH_SECRET, **HEADERS},
            "STREAMLIT_SERVER_TRUSTED_USER_HEADERS can't be used with OIDC_ISSUER",
        ),
    ],
    ids=["no-secret", "all-addresses", "short-secret", "trusted-headers"],
)
def test_a_start_that_would_let_strangers_in_is_refused_with_a_sentence(
    tmp_path: Path, settings: dict[str, str], sentence: str
) -> None:
    said = refused_start(tmp_path, TURNFOLD_DATA_DIR=str(tmp_path / "data"), **settings)
    assert sentence in said
    assert SIGN_IN["OIDC_CLIENT_SECRET"] not in said
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_whoever_runs_it_may_open_it_without_a_sign_in(tmp_path: Path) -> None:
    settings = {"STREAMLIT_SERVER_ADDRESS": "0.0.0.0", "OPEN_WITHOUT_SIGN_IN": "true"}
    with served("app.py", tmp_path / "data", UNASKED, tmp_path / "log", **settings) as (process, port):
        assert ask_health(port, process) == (200, "ok")


def test_with_a_sign_in_others_reach_it_with_secure_cookies_and_long_tokens(tmp_path: Path) -> None:
    settings = {**WITH_SECRET, "STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}
    long_tokens = "; ".join(f"_streamlit_user_tokens_{number}={'x' * 4_000}" for number in range(3))
    asked = (
        "GET /_stcore/stream HTTP/1.1\r\nHost: chat.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Sec-WebSocket-Protocol: streamlit\r\nCookie: {long_tokens}\r\n\r\n"
    )
    with served("app.py", tmp_path / "data", UNASKED, tmp_path / "log", **settings) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        headers = {"Host": "chat.example.com", "Cookie": "_streamlit_user=forged"}
        answer = httpx2.get(f"http://127.0.0.1:{port}/auth/login", headers=headers, trust_env=False)
        cookies = answer.headers.get_list("set-cookie")
        assert cookies
        assert all(cookie.endswith("; Secure") for cookie in cookies)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(asked.encode())
            assert connection.recv(65_536).startswith(b"HTTP/1.1 101")


def test_a_started_server_says_where_it_is_and_a_second_one_that_it_runs_already(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    with served("app.py", data, UNASKED, log) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        said = log.read_text()
        assert f"http://localhost:{port}" in said
        assert "off until there is a token: CHAT_API_TOKEN in .env" in said
        assert "scripted-model at 127.0.0.1:9. For another one: CHAT_MODEL in .env" in said
        assert str(data) in said
        assert len(said.strip().splitlines()) == 5
        again = second_start(tmp_path, TURNFOLD_DATA_DIR=str(data))
        assert f"already runs at http://localhost:{port} over {data}" in again
        process.terminate()
        process.wait(30)
    assert not (data / "address").exists()
