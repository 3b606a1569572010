"""Images that a model's server may be told to fetch."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.value.client import is_image_url

PUBLIC_HOSTS = (
    "example.org",
    "EXAMPLE.ORG",
    "example.org.",
    "a.test:8443",
    "a-b.c_d.example.org:443",
    "xn--bj0bj06e.kr",
    "local.example.org",
    "localhost.example.org",
    "10.example.org",
    "8.8.8.8",
    "134744072",
    "0x8.8.8.8",
    "[2001:4860:4860::8888]",
    "[2606:4700::1111]:443",
)
INTERNAL_HOSTS = (
    # Loopback and "this host", in every spelling that clients read.
    *(
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0x1",
    ),
    *("0.0.0.0", "0", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
    # Private and shared networks, link-local ones with a cloud's metadata, multicast, broadcast, reserved.
    *("10.0.0.1", "10.1", "167772161", "172.16.0.1", "172.31.255.255", "192.168.1.1", "0xc0a80101", "100.64.0.1"),
    *("169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "224.0.0.1"),
    *("255.255.255.255", "240.0.0.1", "192.0.2.7", "198.18.0.1", "203.0.113.9"),
    *("[fe80::1]", "[fc00::1]", "[fd12:3456::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]"),
    # IPv4 within IPv6: mapped, NAT64, 6to4, Teredo.
    *("[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]"),
    # Names of the computer itself and of local networks.
    *("localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain", "printer.local", "db.internal"),
    *("metadata.google.internal", "metadata", "database", "nas.lan", "nas.home", "a.home.arpa", "x.corp", "x.intranet"),
    "kubernetes.default.svc",
    # No host, or one that isn't read alike by all.
    *(
        "",
        ".",
        "a..b",
        "-",
        "256.1.1.1",
        "1.2.3.4.5",
        "08.8.8.8",
        "0x",
        "8.8.8.0x",
        "4294967296",
        "[]",
        "[::1",
        "[fe80::1%25lo]",
    ),
    *("example.org@127.0.0.1", "example.org:80@127.0.0.1", "user:word@example.org", "127.0.0.1\\@example.org"),
    *(
        "example.org\\.evil",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "１２７.0.0.1",
        "한글.kr",
        "example.org:",
        "example.org:x",
    ),
)


@pytest.mark.parametrize("path", ["", "/", "/a/b.png", "?x=@127.0.0.1", "#x", "/그림.png?a=b&c=:@[]"])
def test_an_address_of_a_public_host_is_one_at_any_path(path: str) -> None:
    for host in PUBLIC_HOSTS:
        assert is_image_url(f"https://{host}{path}"), host
        assert is_image_url(f"HTTPS://{host}{path}"), host


@pytest.mark.parametrize("path", ["", "/a.png", "?x=.example.org", "#@example.org"])
def test_an_internal_host_is_none_however_it_is_spelled(path: str) -> None:
    for host in INTERNAL_HOSTS:
        assert not is_image_url(f"https://{host}{path}"), host


def test_only_https_and_the_bytes_themselves_are_taken() -> None:
    assert is_image_url("data:image/png;base64,AA")
    assert is_image_url("DATA:IMAGE/PNG;base64,AA")
    for url in (
        *(
            "http://example.org/a.png",
            "file:///etc/passwd",
            "ftp://example.org/a",
            "//example.org/a",
            "example.org/a.png",
        ),
        *("data:text/html,x", "image:0", "", "https:example.org", "https:/example.org", "https:///example.org/a"),
        *(
            " https://example.org",
            "https://example.org\n",
            "https://example.org/a b",
            "https://exa\tmple.org",
            "https://a.org/\0",
        ),
    ):
        assert not is_image_url(url), url


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_public_in_all_of_its_spellings_or_in_none(address: IPv4Address) -> None:
    number = int(address)
    first, rest = divmod(number, 1 << 24)
    spellings = (
        str(address),
        str(number),
        hex(number),
        f"0{number:o}",
        f"{first}.{rest}",
        f"0{first:o}.{rest:#x}",
        f"{address}.",
    )
    told = {is_image_url(f"https://{host}/a.png") for host in spellings}
    assert told == {address.is_global and not address.is_multicast}


@given(st.text(max_size=200))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    is_image_url(f"https://{text}")
