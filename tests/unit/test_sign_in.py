from __future__ import annotations

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, cast

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit import config
from streamlit.auth_util import set_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from component.bridge import service_provider
from component.bridge.security import SignOut
from graph.server.identity import Identity
from graph.server.settings import Settings
from graph.service import ChatService
from graph.value.error import DatabaseBusyError, SettingsError
from tests.fake.identity_provider import COOKIE_SECRET
from tests.fake.sign_in import PROVIDER

COOKIE = "server.cookieSecret"


@pytest.fixture(autouse=True)
def _options_as_they_were() -> Iterator[None]:
    yield
    config.get_config_options(force_reparse=True)


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        ({}, {"server.address": "0.0.0.0"}, r"STREAMLIT_SERVER_ADDRESS \(0.0.0.0\) is one that others reach"),
        ({}, {"server.address": ""}, r"\(all addresses\) is one that others reach"),
        (PROVIDER, {}, "STREAMLIT_SERVER_COOKIE_SECRET takes at least 32 bytes"),
        (PROVIDER, {COOKIE: "s" * 31}, "takes at least 32 bytes"),
        (
            PROVIDER,
            {COOKIE: COOKIE_SECRET, "server.trustedUserHeaders": '{"X-Sub": "sub"}'},
            "STREAMLIT_SERVER_TRUSTED_USER_HEADERS can't be used with OIDC_ISSUER",
        ),
    ],
    ids=["address", "all addresses", "no secret", "short secret", "trusted headers"],
)
def test_what_would_let_strangers_in_is_refused(
    settings: dict[str, Any], options: dict[str, str], sentence: str
) -> None:
    for name, value in options.items():
        config.set_option(name, value)
    with pytest.raises(SettingsError, match=sentence):
        service_provider.prepare(Settings(_env_file=None, **settings))  # type: ignore[call-arg]  # the base class's own argument


@pytest.mark.parametrize(("address", "is_open"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_without_a_sign_in_a_local_address_is_taken_and_another_if_that_is_wanted(
    address: str, *, is_open: bool
) -> None:
    config.set_option("server.address", address)
    service_provider.prepare(Settings(_env_file=None, open_without_sign_in=is_open))  # type: ignore[call-arg]  # the base class's own argument


USER_COOKIE: Final = "_streamlit_user"
ORIGIN: Final = PROVIDER["turnfold_origin"]
ISSUER: Final = PROVIDER["oidc_issuer"]
CLAIMS: Final = {"iss": ISSUER, "sub": "minsu", "iat": 1_790_000_000, "exp": 1_790_003_600, "nonce": "n"}


class Leaving:
    """A service that only hears who signs out."""

    def __init__(self) -> None:
        self.gone: list[Identity] = []
        self.error: DatabaseBusyError | None = None

    def sign_out(self, visitor: Identity) -> None:
        if self.error is not None:
            raise self.error
        self.gone.append(visitor)


@pytest.fixture
def leaving() -> Iterator[Leaving]:
    config.set_option(COOKIE, COOKIE_SECRET)
    service = Leaving()
    service_provider.provide(cast("ChatService", service))
    yield service
    service_provider.provide(None)


def settings() -> Settings:
    return Settings(_env_file=None, **PROVIDER)  # type: ignore[call-arg]  # the base class's own argument


def cookies_of(claims: dict[str, object], *, origin: str = ORIGIN, secret: str = COOKIE_SECRET) -> dict[str, str]:
    """Returns the cookies that Streamlit makes of a token's claims."""
    made: dict[str, str] = {}

    def add(name: str, value: str) -> None:
        made[name] = create_signed_value(secret, name, value).decode()

    said = {**claims, "origin": origin, "is_logged_in": True, "provider": "default"}
    set_cookie_with_chunks(
        add, lambda name, value: create_signed_value(secret, name, value), USER_COOKIE, said, cookie_attr_size=64
    )
    return made


def passed(path: str, cookies: dict[str, str]) -> bool:
    """Asks for a path with these cookies, and returns whether the request came to Streamlit's own route."""

    def route(_: Request) -> PlainTextResponse:
        return PlainTextResponse("passed")

    app = Starlette(routes=[Route("/{path:path}", route)], middleware=[Middleware(SignOut, settings, str)])
    said = "; ".join(f"{name}={value}" for name, value in cookies.items())

    async def ask() -> str:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=ORIGIN) as client:
            return (await client.get(path, headers={"Cookie": said} if said else {})).text

    return asyncio.run(ask()) == "passed"


@pytest.mark.parametrize(("size", "is_begun"), [(1_000, True), (31_000, True), (33_000, False), (60_000, False)])
def test_a_sign_in_that_no_request_could_bring_back_is_not_begun_and_says_why(size: int, *, is_begun: bool) -> None:
    async def route(_: Request) -> PlainTextResponse:
        answer = PlainTextResponse("passed")
        for start in range(0, size, 1_000):
            answer.set_cookie(f"{USER_COOKIE}_{start}", "x" * min(950, size - start), httponly=True)
        return answer

    def too_large(languages: str | None) -> str:
        return f"{languages}: {{size}} of {{most}}"

    guard = Middleware(SignOut, settings, too_large)
    app = Starlette(routes=[Route("/oauth2callback", route)], middleware=[guard])

    async def ask() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=ORIGIN) as client:
            return await client.get("/oauth2callback", headers={"Accept-Language": "ko"})

    answer = asyncio.run(ask())
    assert (answer.status_code, bool(answer.cookies)) == ((200, True) if is_begun else (403, False))
    assert answer.text == "passed" or answer.text.startswith("ko: ")


LONG: Final = {**CLAIMS, "groups": "".join(sha256(bytes([number])).hexdigest() for number in range(200))}


@pytest.mark.parametrize(
    ("path", "cookies", "is_heard"),
    [
        ("/auth/logout", cookies_of(CLAIMS), True),
        ("/below/auth/logout", cookies_of(CLAIMS), True),
        ("/auth/logout", cookies_of(LONG), True),
        ("/auth/login", cookies_of(CLAIMS), False),
        ("/auth/logout", {}, False),
        ("/auth/logout", cookies_of(CLAIMS, secret="another" * 8), False),
        ("/auth/logout", cookies_of(CLAIMS, origin="https://chat.example.net"), False),
        ("/auth/logout", cookies_of({**CLAIMS, "iss": "https://id.example.net"}), False),
        ("/auth/logout", {USER_COOKIE: 'garbage"\\377;'}, False),
        ("/auth/logout", {name: cookies_of(LONG)[name] for name in (USER_COOKIE, f"{USER_COOKIE}_1")}, False),
    ],
    ids=[
        *("plain", "base path", "in pieces", "another route", "none", "another secret", "another origin"),
        *("another issuer", "garbage", "a piece is missing"),
    ],
)
def test_a_sign_out_is_heard_of_whom_the_cookie_names_and_goes_its_way(
    leaving: Leaving, path: str, cookies: dict[str, str], *, is_heard: bool
) -> None:
    assert passed(path, cookies)
    assert leaving.gone == [service_provider.identity_from(LONG if len(cookies) > 1 else CLAIMS, settings())] * is_heard


def test_a_sign_out_that_cannot_be_kept_goes_its_way_all_the_same(
    leaving: Leaving, caplog: pytest.LogCaptureFixture
) -> None:
    leaving.error = DatabaseBusyError("turnfold.db")
    assert passed("/auth/logout", cookies_of(CLAIMS))
    assert caplog.messages == ["a sign-out was not kept: database_busy"]
