from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.network import check_issuer, check_origin, is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"])
def test_this_computer(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.0.2", "localhost.example.com", "127.0.0.1.nip.io"])
def test_others_reach_these(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://Chat.Example.com/", "https://chat.example.com"),
        ("https://chat.example.com:8443", "https://chat.example.com:8443"),
        ("http://127.0.0.1:8501", "http://127.0.0.1:8501"),
        ("http://[::1]:8501/", "http://[::1]:8501"),
    ],
)
def test_an_origin_is_scheme_host_and_port(address: str, origin: str) -> None:
    assert check_origin(address) == origin


REFUSED = [
    "",
    "chat.example.com",
    "http://chat.example.com",
    "https://user@chat.example.com",
    "https://chat.example.com?x",
    "https://chat.example.com#x",
    "https://chat.example.com /",
    "https://챗.example.com",
    "ftp://chat.example.com",
    "https://",
    "http://127.0.0.1.nip.io",
]


@pytest.mark.parametrize("address", [*REFUSED, "https://chat.example.com/chat"])
def test_an_origin_that_is_none_or_is_open_to_be_read_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"https://chat\.example\.com"):
        check_origin(address)


@pytest.mark.parametrize("address", REFUSED)
def test_an_issuer_that_is_none_or_is_open_to_be_read_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"https://id\.example\.com"):
        check_issuer(address)


@pytest.mark.parametrize("address", ["https://id.example.com/Realm/x/", "http://localhost:9400", "https://a"])
def test_an_issuer_is_kept_as_it_is(address: str) -> None:
    assert check_issuer(address) == address


@given(st.text())
def test_any_text_is_taken_or_refused(text: str) -> None:
    for check in (check_issuer, check_origin):
        try:
            assert check(text).lower().startswith("http")
        except ValueError as error:
            assert "takes" in str(error)  # noqa: PT017  # most texts are refused
