"""Who an identity provider says that somebody is, and until when: the owner of his sessions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_DIGITS: Final = 40
_NAME_CHARS: Final = 80
# What a provider may tell of a name, the best first.
_NAMES: Final = ("name", "preferred_username", "nickname", "sub")
_LATEST: Final = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class Identity:
    """A sign-in as the provider's token tells of it.

    Attributes:
        owner: Whose sessions these are: `service.for_owner(identity.owner)`.
        name: What the page calls him; never compared with anything.
        until: When the sign-in ends, in UTC.
    """

    owner: str
    name: str
    until: datetime


def owner_of(issuer: str, subject: str) -> str:
    """Returns the owner of a provider's subject: the same on every server, and none of another provider's.

    An e-mail address has no part in it: it can be given to somebody else.

    Args:
        issuer: The provider's URL, with or without a slash at its end.
        subject: Its own id of the user.
    """
    said = json.dumps([issuer.rstrip("/"), subject])
    return f"oidc-{hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]}"


def identity_of(claims: Mapping[str, object], *, issuer: str, hours: float) -> Identity | None:
    """Returns who signed in by these claims of a verified token; None if they don't say it.

    Args:
        claims: Those of the ID token.
        issuer: The only provider that counts.
        hours: How long a sign-in lasts at most; the token may end before.
    """
    said, subject = claims.get("iss"), claims.get("sub")
    began, ends = _seconds(claims.get("iat")), _seconds(claims.get("exp"))
    if not (isinstance(said, str) and said.rstrip("/") == issuer.rstrip("/")):
        return None
    if not (isinstance(subject, str) and subject) or began is None or ends is None:
        return None
    until = min(ends, began + hours * 3600, _LATEST)
    return Identity(owner_of(said, subject), _name(claims), datetime.fromtimestamp(until, UTC))


def _seconds(claim: object) -> float | None:
    """Returns a time of a token in seconds since 1970, None if it is none."""
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        return None
    return float(claim) if 0 <= claim <= _LATEST else None


def _name(claims: Mapping[str, object]) -> str:
    """Returns the first name that can be seen, in one line."""
    for claim in _NAMES:
        said = claims.get(claim)
        seen = "".join(char if char.isprintable() else " " for char in said) if isinstance(said, str) else ""
        if name := " ".join(seen.split())[:_NAME_CHARS].strip():
            return name
    return ""
