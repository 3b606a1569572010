"""Which hosts are this computer itself, and which addresses may be trusted with a sign-in."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

_ADDRESS: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?P<port>:\d{1,5})?(?P<path>/[^\s?#@]*)?",
    re.ASCII | re.IGNORECASE,
)


def is_loopback(host: str) -> bool:
    """Whether a name or an address, IPv6 with or without brackets, leads to this computer and to nobody else's."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_issuer(address: str) -> str:
    """Returns the address of an identity provider as it is.

    Raises:
        ValueError: It is none, or what is sent there could be read on the way.
    """
    if _parts(address) is None:
        msg = "takes an address such as https://id.example.com/realm; http:// on this computer alone"
        raise ValueError(msg)
    return address


def check_origin(address: str) -> str:
    """Returns scheme, host and port of an address, in lower case.

    Raises:
        ValueError: It is none, has more than these, or a cookie sent there could be read on the way.
    """
    parts = _parts(address.lower())
    if parts is None or (parts["path"] or "/") != "/":
        msg = "takes what stands before the path, such as https://chat.example.com; http:// on this computer alone"
        raise ValueError(msg)
    return f"{parts['scheme']}://{parts['host']}{parts['port'] or ''}"


def host_of(origin: str) -> str:
    """Returns host and port of an origin that `check_origin` returned."""
    return origin.partition("://")[2]


def _parts(address: str) -> re.Match[str] | None:
    match = _ADDRESS.fullmatch(address)
    return match if match and (match["scheme"].lower() == "https" or is_loopback(match["host"].lower())) else None
