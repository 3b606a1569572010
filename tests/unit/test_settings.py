from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from graph.error import SettingsError
from graph.settings import Settings, load_settings
from tests.fake.sign_in import PROVIDER


def settings_of(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values


@pytest.mark.parametrize(("lease_seconds", "heartbeat_seconds"), [(0.4, 5), (9.9, 5), (20, 10.5), (5, 5)])
def test_lease_shorter_than_two_heartbeats_is_refused_with_both_names(
    lease_seconds: float, heartbeat_seconds: float
) -> None:
    with pytest.raises(ValidationError) as caught:
        settings_of(lease_seconds=lease_seconds, heartbeat_seconds=heartbeat_seconds)
    (error,) = caught.value.errors()
    assert error["loc"] == ()
    assert "LEASE_SECONDS" in error["msg"]
    assert "HEARTBEAT_SECONDS" in error["msg"]


@pytest.mark.parametrize(("lease_seconds", "heartbeat_seconds"), [(10, 5), (0.4, 0.1), (20, 5)])
def test_lease_that_outlasts_a_missed_heartbeat_is_taken(lease_seconds: float, heartbeat_seconds: float) -> None:
    settings = settings_of(lease_seconds=lease_seconds, heartbeat_seconds=heartbeat_seconds)
    assert settings.lease_seconds == lease_seconds


def test_no_project_may_be_read_unless_somebody_names_it() -> None:
    assert settings_of().project_roots == ()


@pytest.mark.parametrize(
    ("value", "roots"),
    [
        ("/srv/app", ["/srv/app"]),
        (" /srv/app , /home/김민수/일,", ["/srv/app", "/home/김민수/일"]),
        (",", []),
        ("/not/there/yet", ["/not/there/yet"]),
    ],
)
def test_project_roots_are_absolute_paths_with_commas_between_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, roots: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROJECT_ROOTS", value)
    assert list(load_settings().project_roots) == [Path(root) for root in roots]


@pytest.mark.parametrize("value", ["app", "./app", "~/app", "/srv/app,app", '["/srv/app"]'])
def test_a_project_root_that_is_no_absolute_path_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROJECT_ROOTS", value)
    with pytest.raises(SettingsError, match="PROJECT_ROOTS: takes absolute paths"):
        load_settings()


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg"])
def test_a_database_is_named_by_either_url_and_its_password_never_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAT_DATABASE_URL", f" {scheme}://kim:pass-word@db.example:6432/chat?sslmode=require ")
    settings = load_settings()
    assert settings.chat_database_url is not None
    assert (
        settings.chat_database_url.get_secret_value()
        == "postgresql://kim:pass-word@db.example:6432/chat?sslmode=require"
    )
    assert "pass-word" not in f"{settings!r}{settings}{settings.model_dump()}{settings.model_dump_json()}"


@pytest.mark.parametrize(
    "value",
    [
        "pass-word",
        "mysql://kim:pass-word@db/chat",
        "postgresql+asyncpg://kim:pass-word@db/chat",
        "postgresql://kim:pass-word@db",
        "postgresql://kim:pass-word@db/",
        "postgresql://kim:pass-word@db/?sslmode=require",
        "postgresql:/db/pass-word",
    ],
)
def test_what_is_no_url_of_a_postgres_database_is_refused_without_being_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAT_DATABASE_URL", value)
    with pytest.raises(SettingsError, match="CHAT_DATABASE_URL: takes postgresql://") as caught:
        load_settings()
    assert "pass-word" not in str(caught.value)


def test_without_an_issuer_there_is_no_sign_in() -> None:
    assert not settings_of().has_sign_in
    assert not settings_of(turnfold_origin="http://localhost:8501").has_sign_in


def test_a_sign_in_is_whole() -> None:
    settings = settings_of(**PROVIDER)
    assert settings.has_sign_in
    assert settings.is_https
    assert "secret-of-the-client" not in repr(settings)


def test_with_a_sign_in_each_owner_but_the_servers_own_has_a_memory_of_his_own() -> None:
    owners = ("local", "phone", "oidc-1")
    assert [settings_of().memory_owner(owner) for owner in owners] == ["", "", ""]
    assert [settings_of(**PROVIDER).memory_owner(owner) for owner in owners] == ["", "phone", "oidc-1"]
    assert settings_of(turnfold_owner="phone", **PROVIDER).memory_owner("phone") == ""


@pytest.mark.parametrize("missing", ["oidc_issuer", "oidc_client_id", "oidc_client_secret", "turnfold_origin"])
def test_a_part_of_a_sign_in_is_refused_and_all_parts_are_named(missing: str) -> None:
    with pytest.raises(ValidationError, match="OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and TURNFOLD_ORIGIN"):
        settings_of(**{name: value for name, value in PROVIDER.items() if name != missing})


@pytest.mark.parametrize(
    ("origin", "hosts"),
    [
        ("https://chat.example.com", ()),
        ("https://chat.example.com:8443", ("chat.example.com:9000",)),
        ("https://chat.example.com", ("example.com",)),
    ],
)
def test_an_origin_that_is_no_trusted_host_is_refused(origin: str, hosts: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match=r"TURNFOLD_HOSTS must name chat\.example\.com"):
        settings_of(**{**PROVIDER, "turnfold_origin": origin, "turnfold_hosts": hosts})


@pytest.mark.parametrize(
    ("origin", "hosts"),
    [
        ("https://chat.example.com:8443", ("chat.example.com",)),
        ("https://chat.example.com:8443", ("chat.example.com:8443",)),
        ("http://localhost:8501", ()),
        ("http://[::1]:8501", ()),
    ],
)
def test_an_origin_of_a_trusted_host_is_taken(origin: str, hosts: tuple[str, ...]) -> None:
    assert settings_of(**{**PROVIDER, "turnfold_origin": origin, "turnfold_hosts": hosts}).turnfold_origin == origin


@pytest.mark.parametrize("hours", [0, -1, 721, float("nan")])
def test_the_hours_of_a_sign_in_have_bounds(hours: float) -> None:
    with pytest.raises(ValidationError, match="sign_in_hours"):
        settings_of(sign_in_hours=hours)
