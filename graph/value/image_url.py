"""The rule for image URLs passed to a model's server, which fetches them from inside a network of its own."""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

_DATA: Final = "data:image/"
# No user part before the host: parsers disagree on where it ends.
_WEB: Final = re.compile(
    r"https://(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?)(?::\d{1,5})?(?:[/?#][^\s\\\x00-\x1f\x7f]*)?",
    re.ASCII | re.IGNORECASE,
)
# A name whose last part is a number in any spelling is read as an IPv4 address.
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*", re.ASCII | re.IGNORECASE)
# Names of the computer itself, of local networks (RFC 6761, 6762, 8375), and common private suffixes.
_INTERNAL: Final = frozenset(
    {"localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "svc"}
)
_HOME_NETWORK: Final = ".home.arpa"
# Global unicast. Other ranges embed IPv4 addresses in several ways.
_GLOBAL_IPV6: Final = ip_network("2000::/3")


def is_image_url(url: str) -> bool:
    """True for data URLs of images, and for https URLs with a public host.

    Private, loopback, link-local and reserved addresses, in any spelling, and names of internal networks aren't public.
    Names aren't resolved: a public name with a private address isn't noticed.
    """
    if url[: len(_DATA)].lower() == _DATA:
        return True
    parts = _WEB.fullmatch(url)
    if parts is None:
        return False
    return _is_public_ipv6(parts["ipv6"]) if parts["ipv6"] else _is_public_name(parts["name"].lower())


def _is_public_name(name: str) -> bool:
    *parents, last = name.split(".")
    if _NUMBER.fullmatch(last):
        return _is_public_ipv4(name)
    return bool(parents) and last not in _INTERNAL and not name.endswith(_HOME_NETWORK)


def _is_public_ipv4(address: str) -> bool:
    try:
        # Unlike `ipaddress`, inet_aton reads every spelling that clients accept: 2130706433, 0x7f.1, 0177.0.0.1.
        found = IPv4Address(socket.inet_aton(address))
    except OSError:
        return False
    return found.is_global and not found.is_multicast


def _is_public_ipv6(address: str) -> bool:
    try:
        found = IPv6Address(address)
    except ValueError:
        return False
    return found in _GLOBAL_IPV6 and found.is_global and found.sixtofour is None
