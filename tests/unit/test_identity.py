from __future__ import annotations

import json
import math
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from graph.server.identity import OWNER_CHARS, Identity, identity_of, owner_of

ISSUER = "https://id.example.com/realm"
BEGAN = 1_790_000_000
CLAIMS = {"iss": ISSUER, "sub": "248289761001", "iat": BEGAN, "exp": BEGAN + 3600, "name": "김민수", "email": "a@b.kr"}
TEXTS = st.text(min_size=1, max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def identity_with(**changes: object) -> Identity | None:
    return identity_of({**CLAIMS, **changes}, issuer=ISSUER, hours=12)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_owner_is_made_of_issuer_and_subject_alone() -> None:
    identity = identity_with()
    assert identity is not None
    assert (identity.owner, identity.name) == (owner_of(ISSUER, "248289761001"), "김민수")
    assert identity_with(iss=f"{ISSUER}/") == identity
    changed = identity_with(email="c@d.kr", name="이영희", aud="other", nonce="n")
    assert changed is not None
    assert changed.owner == owner_of(ISSUER, "248289761001")


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_others_have_another_owner_however_their_texts_are_cut(issuer: str, subject: str, other: str, sub: str) -> None:
    is_same = (issuer.rstrip("/"), subject) == (other.rstrip("/"), sub)
    assert (owner_of(issuer, subject) == owner_of(other, sub)) == is_same


@given(st.text(), st.text())
def test_an_owner_can_be_named_in_the_settings(issuer: str, subject: str) -> None:
    owner = owner_of(issuer, subject)
    assert len(owner) <= OWNER_CHARS
    assert owner.isascii()
    assert not {*owner} & {*":,\n "}


def test_sign_in_ends_with_the_token_and_after_the_hours_at_the_latest() -> None:
    for lasts, until in ((600, 600), (30 * 24 * 3600, 12 * 3600)):
        identity = identity_with(exp=BEGAN + lasts)
        assert identity is not None
        assert (identity.sign_in.began, identity.sign_in.until) == (moment(BEGAN), moment(BEGAN + until))
    last = datetime.max.replace(microsecond=0, tzinfo=UTC)
    identity = identity_with(iat=last.timestamp(), exp=last.timestamp())
    assert identity is not None
    assert identity.sign_in.until == last


def id_of(**changes: object) -> str:
    identity = identity_with(**changes)
    assert identity is not None
    return identity.sign_in.id


def test_each_sign_in_has_an_id_of_its_own() -> None:
    one = id_of(nonce="n1")
    assert id_of(nonce="n1", name="이름이 바뀌었다", iss=f"{ISSUER}/", exp=BEGAN + 60) == one
    others = [id_of(nonce="n2"), id_of(), id_of(nonce="n1", iat=BEGAN + 1), id_of(nonce=["n1"])]
    assert len({one, *others}) == 1 + len(others)


WRONG: list[dict[str, object]] = [
    {"iss": "https://id.example.com"},
    {"iss": "https://id.example.com/realm/other"},
    {"iss": ["https://id.example.com/realm"]},
    {"sub": ""},
    {"sub": 1001},
    {"exp": "1790003600"},
    {"exp": True},
    {"exp": math.nan},
    {"exp": math.inf},
    {"iat": -1},
    {"iat": 10**400},
    {"exp": 1e300},
]


def test_without_a_claim_or_with_one_of_another_kind_nobody_is_signed_in() -> None:
    for missing in ("iss", "sub", "iat", "exp"):
        claims = {name: value for name, value in CLAIMS.items() if name != missing}
        assert identity_of(claims, issuer=ISSUER, hours=12) is None
    assert [wrong for wrong in WRONG if identity_with(**wrong) is not None] == []


CLAIMED = ("iss", "sub", "iat", "exp", "name", "nickname", "nonce")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(CLAIMED, JSON)))
def test_whatever_a_token_claims_breaks_nothing(drawn: dict[str, object]) -> None:
    identity = identity_of({**CLAIMS, **drawn}, issuer=ISSUER, hours=12)
    if identity is not None:
        assert identity.sign_in.until.tzinfo is UTC
        assert identity.name == "".join(char for char in identity.name if char.isprintable())
        assert len(identity.name) <= 80
        json.dumps(identity.name)


def test_name_is_one_line_of_what_can_be_seen() -> None:
    claims: list[tuple[dict[str, object], str]] = [
        ({"name": "  Kim\n\tMin-su \u202e"}, "Kim Min-su"),
        ({"name": "\u200b\u2066", "preferred_username": "minsu"}, "minsu"),
        ({"name": 7, "nickname": "ms"}, "ms"),
        ({"name": ""}, "248289761001"),
        ({"name": "가" * 500}, "가" * 80),
    ]
    for changes, name in claims:
        identity = identity_with(**changes)
        assert identity is not None
        assert identity.name == name
