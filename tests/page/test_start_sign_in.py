from __future__ import annotations

import socket
from pathlib import Path

import httpx2
import pytest

from tests.fake.identity_provider import COOKIE_SECRET
from tests.fake.served_app import ask_health, refused_start, served
from tests.fake.sign_in import PROVIDER

UNASKED = "http://127.0.0.1:9/v1"  # no model is called
SIGN_IN = {**{name.upper(): value for name, value in PROVIDER.items()}, "TURNFOLD_HOSTS": "chat.example.com"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}, "STREAMLIT_SERVER_ADDRESS (0.0.0.0) is one that others reach"),
        (SIGN_IN, "STREAMLIT_SERVER_COOKIE_SECRET takes at least 32 bytes"),
        ({**SIGN_IN, "STREAMLIT_SERVER_COOKIE_SECRET": "s" * 31}, "takes at least 32 bytes"),
        (
            {
                **SIGN_IN,
                "STREAMLIT_SERVER_COOKIE_SECRET": COOKIE_SECRET,
                "STREAMLIT_SERVER_TRUSTED_USER_HEADERS": '{"X-Sub": "sub"}',
            },
            "STREAMLIT_SERVER_TRUSTED_USER_HEADERS can't be used with OIDC_ISSUER",
        ),
    ],
    ids=["all-addresses", "no-secret", "short-secret", "trusted-headers"],
)
def test_a_start_that_would_let_strangers_in_is_refused_with_a_sentence(
    tmp_path: Path, settings: dict[str, str], sentence: str
) -> None:
    said = refused_start(tmp_path, TURNFOLD_DATA_DIR=str(tmp_path / "data"), **settings)
    assert sentence in said
    assert SIGN_IN["OIDC_CLIENT_SECRET"] not in said
    assert not (tmp_path / "data").exists()


def test_whoever_runs_it_may_open_it_without_a_sign_in(tmp_path: Path) -> None:
    settings = {"STREAMLIT_SERVER_ADDRESS": "0.0.0.0", "OPEN_WITHOUT_SIGN_IN": "true"}
    with served("app.py", tmp_path / "data", UNASKED, tmp_path / "log", **settings) as (process, port):
        assert ask_health(port, process) == (200, "ok")


def test_behind_https_every_cookie_is_for_https_and_with_a_sign_in_it_may_be_reached(tmp_path: Path) -> None:
    settings = {
        **SIGN_IN,
        "STREAMLIT_SERVER_COOKIE_SECRET": COOKIE_SECRET,
        "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
    }
    with served("app.py", tmp_path / "data", UNASKED, tmp_path / "log", **settings) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        headers = {"Host": "chat.example.com", "Cookie": "_streamlit_user=forged"}
        answer = httpx2.get(f"http://127.0.0.1:{port}/auth/login", headers=headers, trust_env=False)
        cookies = answer.headers.get_list("set-cookie")
        assert cookies
        assert all(cookie.endswith("; Secure") for cookie in cookies)


def test_a_page_is_reached_with_the_cookies_of_long_tokens(tmp_path: Path) -> None:
    settings = {**SIGN_IN, "STREAMLIT_SERVER_COOKIE_SECRET": COOKIE_SECRET}
    cookies = "; ".join(f"_streamlit_user_tokens_{number}={'x' * 4_000}" for number in range(3))
    asked = (
        "GET /_stcore/stream HTTP/1.1\r\nHost: chat.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Sec-WebSocket-Protocol: streamlit\r\nCookie: {cookies}\r\n\r\n"
    )
    with served("app.py", tmp_path / "data", UNASKED, tmp_path / "log", **settings) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(asked.encode())
            assert connection.recv(65_536).startswith(b"HTTP/1.1 101")
