"""Identity and access: sign-ins by an identity provider, addresses, and API tokens of programs."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final, NoReturn

from pydantic import SecretStr

_DIGITS: Final = 40
# Upper bound of `SIGN_IN_HOURS`.
LONGEST_SIGN_IN_HOURS: Final = 720
_NAME_CHARS: Final = 80
# Claims with a name, best first.
_NAMES: Final = ("name", "preferred_username", "nickname", "sub")
_LATEST: Final = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class SignIn:
    """One sign-in of an owner, in one browser: all tabs with its cookie, and all copies of the cookie.

    `began` is by the provider's clock; times are UTC.
    """

    id: str
    began: datetime
    until: datetime


@dataclass(frozen=True)
class Identity:
    """A user who signed in, as described by the provider's token; `name` is for display, never compared."""

    owner: str
    name: str
    sign_in: SignIn


def owner_of(issuer: str, subject: str) -> str:
    """Returns the owner for a provider's subject: the same on every server, distinct for each provider.

    Independent of the e-mail address, which can be reassigned, and of a trailing slash of the issuer.
    """
    return f"oidc-{_digest(issuer.rstrip('/'), subject)}"


def identity_of(claims: Mapping[str, object], *, issuer: str, hours: float) -> Identity | None:
    """Returns the user from the claims of a verified token; None if invalid. `hours` limits the sign-in."""
    issuer_claim, subject = claims.get("iss"), claims.get("sub")
    began, ends = _seconds(claims.get("iat")), _seconds(claims.get("exp"))
    if not (isinstance(issuer_claim, str) and issuer_claim.rstrip("/") == issuer.rstrip("/")):
        return None
    if not (isinstance(subject, str) and subject) or began is None or ends is None:
        return None
    until = min(ends, began + hours * 3600, _LATEST)
    # Each sign-in request has a unique nonce, without which no token is accepted.
    sign_in = SignIn(_digest(began, claims.get("nonce")), _moment(began), _moment(until))
    return Identity(owner_of(issuer_claim, subject), _name(claims), sign_in)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _seconds(claim: object) -> float | None:
    """Returns a time claim in seconds since 1970, None if invalid."""
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        return None
    return float(claim) if 0 <= claim <= _LATEST else None


def _name(claims: Mapping[str, object]) -> str:
    for claim in _NAMES:
        value = claims.get(claim)
        seen = "".join(char if char.isprintable() else " " for char in value) if isinstance(value, str) else ""
        if name := " ".join(seen.split())[:_NAME_CHARS].strip():
            return name
    return ""


_ADDRESS: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?P<port>:\d{1,5})?(?P<path>/[^\s?#@]*)?",
    re.ASCII | re.IGNORECASE,
)


def is_loopback(host: str) -> bool:
    """True if a host name or address, IPv6 with or without brackets, is this computer's loopback."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_PRIVATE_ENDS: Final = (".local", ".internal", ".lan", ".home.arpa")


def is_in_own_network(host: str) -> bool:
    """True for loopback, private addresses, and names that only a private network knows (`ollama`, `box.local`)."""
    try:
        return is_loopback(host) or ip_address(host.strip("[]")).is_private
    except ValueError:
        return "." not in host or host.lower().endswith(_PRIVATE_ENDS)


def is_reachable(address: str) -> bool:
    """True for IP addresses by which other computers may reach this one."""
    try:
        return not ip_address(address).is_loopback
    except ValueError:
        return False


def refuse(sentence: str) -> NoReturn:
    raise ValueError(sentence)


def check_issuer(address: str) -> str:
    """Returns the URL unchanged; raises `ValueError` unless valid and encrypted."""
    if _parts(address) is None:
        refuse("takes an address such as https://id.example.com/realm; http:// on this computer alone")
    return address


def check_origin(address: str) -> str:
    """Returns scheme, host and port in lower case; raises `ValueError` for more parts or an unencrypted address."""
    parts = _parts(address.lower())
    if parts is None or (parts["path"] or "/") != "/":
        refuse("takes what stands before the path, such as https://chat.example.com; http:// on this computer alone")
    return f"{parts['scheme']}://{parts['host']}{parts['port'] or ''}"


def host_of(origin: str) -> str:
    return origin.partition("://")[2]


def _parts(address: str) -> re.Match[str] | None:
    match = _ADDRESS.fullmatch(address)
    return match if match and (match["scheme"].lower() == "https" or is_loopback(match["host"].lower())) else None


OWNER_CHARS: Final = 64
NAME_CHARS: Final = 32
_TOKEN_BYTES: Final = 32
# Bearer tokens (RFC 6750) contain no separators of the list.
_PARTED: Final = re.compile(r"[,\n]")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}", re.ASCII)


@dataclass(frozen=True)
class ApiToken:
    """One program's token; `tools` is None for all server tools.

    `is_personal` is true if one person uses the token, false if several share it.
    """

    name: str
    owner: str
    token: SecretStr
    tools: frozenset[str] | None = None
    is_personal: bool = False


def new_token() -> str:
    return f"tf-{secrets.token_urlsafe(_TOKEN_BYTES)}"


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


def is_name(text: str, *, most_chars: int) -> bool:
    """True for valid names of programs and owners: visible, without control characters."""
    return 0 < len(text) <= most_chars and text.isprintable() and not text.isspace()


def check_token(token: str) -> str:
    """Returns the token unchanged; raises `ValueError`, without its text, if short or invalid in a header."""
    if not _TOKEN.fullmatch(token):
        refuse("takes tokens of 16 to 512 characters, each one of A-Z a-z 0-9 . _ ~ + / = -")
    return token


def read_list(listed: str) -> list[str]:
    """Splits a list at commas and line ends; empty entries are dropped."""
    return [entry for part in _PARTED.split(listed) if (entry := part.strip())]


def read_tokens(listed: str) -> list[ApiToken]:
    """Parses a list of `name:owner:token[:tool+tool]`, separated by commas or lines.

    Without a fourth field a program may use all tools of the server; with an empty one, none. A `ValueError` has the
    position of a malformed entry and no part of its text.
    """
    return [_read(entry, number) for number, entry in enumerate(read_list(listed), start=1)]


def _read(entry: str, number: int) -> ApiToken:
    fields = [field.strip() for field in entry.split(":")]
    if len(fields) not in (3, 4):
        form = "name:owner:token or name:owner:token:tool+tool, with commas between them"
        refuse(f"takes {form}; not its entry {number}")
    name, owner, token, *tools = fields
    for value, chars in ((name, NAME_CHARS), (owner, OWNER_CHARS)):
        if not is_name(value, most_chars=chars):
            lengths = f"names of 1 to {NAME_CHARS} and owners of 1 to {OWNER_CHARS} characters"
            refuse(f"takes {lengths}; not its entry {number}")
    allowed = frozenset(filter(None, map(str.strip, tools[0].split("+")))) if tools else None
    return ApiToken(name, owner, SecretStr(check_token(token)), allowed)
