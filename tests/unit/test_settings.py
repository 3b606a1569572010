from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graph.server.identity import check_issuer, check_origin, is_loopback, is_reachable
from graph.server.settings import Settings, load_settings
from graph.store.postgres.connection import with_patience
from graph.value.error import SettingsError
from tests.fake.sign_in import PROVIDER

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105  # of no server


def settings_of(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values


@pytest.fixture(autouse=True)
def _no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_lease_outlasts_a_missed_heartbeat_or_is_refused_with_both_names() -> None:
    for lease, heartbeat in ((10, 5), (0.4, 0.1), (20, 5)):
        assert settings_of(lease_seconds=lease, heartbeat_seconds=heartbeat).lease_seconds == lease
    for lease, heartbeat in ((0.4, 5), (9.9, 5), (20, 10.5), (5, 5)):
        with pytest.raises(ValidationError) as caught:
            settings_of(lease_seconds=lease, heartbeat_seconds=heartbeat)
        (error,) = caught.value.errors()
        assert error["loc"] == ()
        assert "LEASE_SECONDS" in error["msg"]
        assert "HEARTBEAT_SECONDS" in error["msg"]


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "EMBEDDING_API_KEY"])
def test_key_is_one_line_and_what_stands_round_it_goes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    for value in ("sk-one\n", " sk-one\r\n", "sk-one"):
        monkeypatch.setenv(name, value)
        key = getattr(load_settings(), name.lower())
        assert key.get_secret_value() == "sk-one"
    monkeypatch.setenv(name, "\n")
    assert getattr(load_settings(), name.lower()) is None
    for value in ("sk-one\nsk-two", "sk-\tone", "sk-키", "sk-“one”"):
        monkeypatch.setenv(name, value)
        with pytest.raises(SettingsError, match=f"{name}: takes one line") as caught:
            load_settings()
        assert "sk-" not in str(caught.value)


ROOTS = {
    "/srv/app": ["/srv/app"],
    " /srv/app , /home/김민수/일,": ["/srv/app", "/home/김민수/일"],
    ",": [],
    "/not/there/yet": ["/not/there/yet"],
}


def test_project_roots_are_absolute_paths_with_commas_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_of().project_roots == ()
    for value, roots in ROOTS.items():
        monkeypatch.setenv("PROJECT_ROOTS", value)
        assert list(load_settings().project_roots) == [Path(root) for root in roots]
    for value in ("app", "./app", "~/app", "/srv/app,app", '["/srv/app"]'):
        monkeypatch.setenv("PROJECT_ROOTS", value)
        with pytest.raises(SettingsError, match="PROJECT_ROOTS: takes absolute paths"):
            load_settings()


NO_DATABASE = [
    "pass-word",
    "mysql://kim:pass-word@db/chat",
    "postgresql+asyncpg://kim:pass-word@db/chat",
    "postgresql://kim:pass-word@db",
    "postgresql://kim:pass-word@db/",
    "postgresql://kim:pass-word@db/?sslmode=require",
    "postgresql:/db/pass-word",
]


def test_database_is_named_by_either_url_and_its_password_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("postgresql", "postgresql+psycopg"):
        monkeypatch.setenv("CHAT_DATABASE_URL", f" {scheme}://kim:pass-word@db.example:6432/chat?sslmode=require ")
        settings = load_settings()
        assert settings.chat_database_url is not None
        url = settings.chat_database_url.get_secret_value()
        assert url == "postgresql://kim:pass-word@db.example:6432/chat?sslmode=require"
        assert "pass-word" not in f"{settings!r}{settings}{settings.model_dump()}{settings.model_dump_json()}"
    for value in NO_DATABASE:
        monkeypatch.setenv("CHAT_DATABASE_URL", value)
        with pytest.raises(SettingsError, match="CHAT_DATABASE_URL: takes postgresql://") as caught:
            load_settings()
        assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("?pgbouncer=true", ""),
        ("?pgbouncer=true&connection_limit=1", ""),
        ("?sslmode=require&supa=base-pooler.x", "?sslmode=require"),
        (
            "?pool_timeout=0&sslmode=require&statement_cache_size=0&application_name=a",
            "?sslmode=require&application_name=a",
        ),
        (
            "?channel_binding=require&options=-c%20search_path%3Dx",
            "?channel_binding=require&options=-c%20search_path%3Dx",
        ),
    ],
)
def test_parameters_of_other_pools_are_left_out_of_a_database_url(
    monkeypatch: pytest.MonkeyPatch, query: str, kept: str
) -> None:
    monkeypatch.setenv("CHAT_DATABASE_URL", f"postgresql://kim:pass-word@db/chat{query}")
    settings = load_settings()
    assert settings.chat_database_url is not None
    assert settings.chat_database_url.get_secret_value() == f"postgresql://kim:pass-word@db/chat{kept}"
    assert "password=pass-word" in with_patience(settings.chat_database_url.get_secret_value())


@pytest.mark.parametrize("name", ["schema", "sslaccept", "useSSL", "currentSchema", "ssl_mode", "x-y", "pgbouncer2"])
def test_a_parameter_that_postgres_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CHAT_DATABASE_URL", f"postgresql://kim:pass-word@db/chat?{name}=pass-word")
    with pytest.raises(SettingsError, match=f"CHAT_DATABASE_URL: has the parameter {name}, ") as caught:
        load_settings()
    assert "pass-word" not in str(caught.value)
    monkeypatch.setenv("CHAT_DATABASE_URL", "postgresql://kim:pass%zz-word@db/chat")
    with pytest.raises(SettingsError, match="CHAT_DATABASE_URL: can't be read as a URL"):
        load_settings()


ALL_PARTS = "OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and TURNFOLD_ORIGIN"


def test_sign_in_is_whole_or_none() -> None:
    assert not settings_of().has_sign_in
    assert not settings_of(turnfold_origin="http://localhost:8501").has_sign_in
    settings = settings_of(**PROVIDER)
    assert settings.has_sign_in
    assert settings.is_https
    assert "secret-of-the-client" not in repr(settings)
    for missing in ("oidc_issuer", "oidc_client_id", "oidc_client_secret", "turnfold_origin"):
        with pytest.raises(ValidationError, match=ALL_PARTS):
            settings_of(**{name: value for name, value in PROVIDER.items() if name != missing})
    for hours in (0, -1, 721, float("nan")):
        with pytest.raises(ValidationError, match="sign_in_hours"):
            settings_of(sign_in_hours=hours)


@pytest.mark.parametrize(
    ("changes", "turns"),
    [
        ({}, 16),
        ({"chat_api_token": TOKEN}, 16),  # of the same owner as the page
        ({"chat_api_tokens": f"editor:local:{TOKEN}"}, 16),
        ({"chat_api_tokens": f"editor:ann:{TOKEN}"}, 8),
        ({"turnfold_owner": "ann", "chat_api_tokens": f"editor:ann:{TOKEN}"}, 16),
        (PROVIDER, 8),
        ({**PROVIDER, "concurrent_turns": 5}, 3),
        ({**PROVIDER, "concurrent_turns": 1}, 1),
        ({**PROVIDER, "user_concurrent_turns": 16}, 16),
        ({**PROVIDER, "user_concurrent_turns": 20}, 16),
        ({"user_concurrent_turns": 2}, 2),
    ],
)
def test_an_owner_has_half_of_the_turns_where_there_may_be_others(changes: dict[str, Any], turns: int) -> None:
    assert settings_of(**changes).owner_turns == turns


def test_with_a_sign_in_each_owner_but_the_servers_own_has_a_memory_of_his_own() -> None:
    owners = ("local", "phone", "oidc-1")
    assert [settings_of().memory_owner(owner) for owner in owners] == ["", "", ""]
    assert [settings_of(**PROVIDER).memory_owner(owner) for owner in owners] == ["", "phone", "oidc-1"]
    assert settings_of(turnfold_owner="phone", **PROVIDER).memory_owner("phone") == ""


def test_origin_is_one_of_a_trusted_host() -> None:
    port = "https://chat.example.com:8443"
    taken = [
        (port, "chat.example.com"),
        (port, "chat.example.com:8443"),
        ("http://localhost:8501",),
        ("http://[::1]:8501",),
    ]
    for origin, *hosts in taken:
        values = {**PROVIDER, "turnfold_origin": origin, "turnfold_hosts": hosts}
        assert settings_of(**values).turnfold_origin == origin
    refused = [
        ("https://chat.example.com",),
        (port, "chat.example.com:9000"),
        ("https://chat.example.com", "example.com"),
    ]
    for origin, *hosts in refused:
        with pytest.raises(ValidationError, match=r"TURNFOLD_HOSTS must name chat\.example\.com"):
            settings_of(**{**PROVIDER, "turnfold_origin": origin, "turnfold_hosts": hosts})


def test_this_computer_is_loopback_and_others_reach_the_rest() -> None:
    ours = ["localhost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"]
    others = ["", "0.0.0.0", "::", "192.168.0.2", "localhost.example.com", "127.0.0.1.nip.io"]
    assert [host for host in ours + others if is_loopback(host)] == ours
    addresses = ["192.0.2.7", "::", "127.0.0.1", "::1", "testserver", ""]
    assert [address for address in addresses if is_reachable(address)] == ["192.0.2.7", "::"]


ORIGINS = {
    "https://Chat.Example.com/": "https://chat.example.com",
    "https://chat.example.com:8443": "https://chat.example.com:8443",
    "http://127.0.0.1:8501": "http://127.0.0.1:8501",
    "http://[::1]:8501/": "http://[::1]:8501",
}
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


def test_origin_is_scheme_host_and_port_and_an_issuer_is_kept_as_it_is() -> None:
    assert {address: check_origin(address) for address in ORIGINS} == ORIGINS
    issuers = ["https://id.example.com/Realm/x/", "http://localhost:9400", "https://a"]
    assert [check_issuer(address) for address in issuers] == issuers


def test_origin_or_issuer_that_is_none_or_is_open_to_be_read_is_refused() -> None:
    for address in (*REFUSED, "https://chat.example.com/chat"):
        with pytest.raises(ValueError, match=r"https://chat\.example\.com"):
            check_origin(address)
    for address in REFUSED:
        with pytest.raises(ValueError, match=r"https://id\.example\.com"):
            check_issuer(address)


@given(st.text())
def test_any_text_is_taken_as_an_address_or_refused(text: str) -> None:
    for check in (check_issuer, check_origin):
        try:
            assert check(text).lower().startswith("http")
        except ValueError as error:
            assert "takes" in str(error)  # noqa: PT017  # most texts are refused


@pytest.mark.parametrize("url", ["localhost:11434", "ftp://models.example.com", ""])
def test_endpoint_has_a_url_of_http(url: str) -> None:
    with pytest.raises(ValidationError, match="takes a URL that begins with http:// or https://"):
        settings_of(openai_base_url=url)
    assert settings_of(openai_base_url="http://127.0.0.1:9/v1").openai_base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("url", "has_one_slot"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.0.20:1234/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://box.local:8000/v1", True),
        ("http://host.docker.internal:11434/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("https://models.example.com/v1", False),
        (None, False),
    ],
)
def test_server_in_the_own_network_has_one_slot_unless_its_user_says_more(
    url: str | None, *, has_one_slot: bool
) -> None:
    assert settings_of(openai_base_url=url, openai_api_key="k").has_one_slot is has_one_slot
    assert not settings_of(openai_base_url=url, openai_api_key="k", model_slots=4).has_one_slot
    assert settings_of(openai_base_url=url, openai_api_key="k", model_slots=1).has_one_slot


def test_an_embedding_model_needs_an_endpoint() -> None:
    assert settings_of().embedding_model is None
    for endpoint in (
        {"openai_api_key": TOKEN},
        {"openai_base_url": "http://127.0.0.1:1/v1"},
        {"embedding_base_url": "http://127.0.0.1:1/v1"},
        {"embedding_api_key": TOKEN},
    ):
        assert settings_of(embedding_model="e5", **endpoint).embedding_model == "e5"
    with pytest.raises(ValidationError, match="EMBEDDING_MODEL needs an endpoint: EMBEDDING_BASE_URL"):
        settings_of(embedding_model="e5")
    with pytest.raises(ValidationError, match="takes a URL that begins with http"):
        settings_of(embedding_model="e5", embedding_base_url="127.0.0.1:1/v1")
    assert TOKEN not in repr(settings_of(embedding_model="e5", embedding_api_key=TOKEN))
