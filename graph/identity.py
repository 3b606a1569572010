"""Who an identity provider says that somebody is, and by which sign-in: the owner of his sessions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_DIGITS: Final = 40
# As long as a sign-in can be made to last: `SIGN_IN_HOURS` is bounded by it.
LONGEST_SIGN_IN_HOURS: Final = 720
_NAME_CHARS: Final = 80
# What a provider may tell of a name, the best first.
_NAMES: Final = ("name", "preferred_username", "nickname", "sub")
_LATEST: Final = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class SignIn:
    """One sign-in of an owner, in one browser: all tabs that have its cookie, and all copies of that.

    Attributes:
        id: What tells it from the owner's other ones.
        began: When the provider's token was made, by the provider's clock, in UTC.
        until: When it ends by itself, in UTC.
    """

    id: str
    began: datetime
    until: datetime


@dataclass(frozen=True)
class Identity:
    """Somebody who signed in, as the provider's token tells of him.

    Attributes:
        owner: Whose sessions these are: `service.for_owner(identity.owner, sign_in=identity.sign_in)`.
        name: What the page calls him; never compared with anything.
        sign_in: By which sign-in.
    """

    owner: str
    name: str
    sign_in: SignIn


def owner_of(issuer: str, subject: str) -> str:
    """Returns the owner of a provider's subject: the same on every server, and none of another provider's.

    An e-mail address has no part in it: it can be given to somebody else.

    Args:
        issuer: The provider's URL, with or without a slash at its end.
        subject: Its own id of the user.
    """
    return f"oidc-{_digest(issuer.rstrip('/'), subject)}"


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
    # Each way to the provider has a nonce of its own, without which no token is taken.
    sign_in = SignIn(_digest(began, claims.get("nonce")), _moment(began), _moment(until))
    return Identity(owner_of(said, subject), _name(claims), sign_in)


def _digest(*said: object) -> str:
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:_DIGITS]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


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
