from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit import config

from component import sign_in
from graph.error import SettingsError
from graph.settings import Settings
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
        sign_in.prepare(Settings(_env_file=None, **settings))  # type: ignore[call-arg]  # the base class's own argument


@pytest.mark.parametrize(("address", "is_open"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_without_a_sign_in_a_local_address_is_taken_and_another_if_that_is_wanted(
    address: str, *, is_open: bool
) -> None:
    config.set_option("server.address", address)
    sign_in.prepare(Settings(_env_file=None, open_without_sign_in=is_open))  # type: ignore[call-arg]  # the base class's own argument
