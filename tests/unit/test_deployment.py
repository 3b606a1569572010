from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from api import middleware
from api.body import BODY_BYTES
from graph.server.settings import Settings
from graph.store.stores import open_database
from graph.value.error import SettingsError

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
SETTINGS: Final = {name.upper() for name in Settings.model_fields}
# Variables of Streamlit, uvicorn, Python and Postgres.
OUTSIDE: Final = {
    "STREAMLIT_SERVER_COOKIE_SECRET",
    "STREAMLIT_SERVER_ADDRESS",
    "STREAMLIT_SERVER_PORT",
    "STREAMLIT_SERVER_HEADLESS",
    "STREAMLIT_BROWSER_SERVER_ADDRESS",
    "FORWARDED_ALLOW_IPS",
    "PGPASSWORD",
    "PATH",
    "HOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
}


def read_yaml(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(ROOT / "compose.yaml")["services"]
    return found


@pytest.fixture(scope="module")
def image() -> str:
    return (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def nginx() -> str:
    return (DEPLOY / "nginx.conf").read_text(encoding="utf-8")


def test_two_servers_that_differ_in_their_address_alone_stand_behind_the_proxy(services: dict[str, Any]) -> None:
    named = re.findall(r"^server (\w+):8501 ", (DEPLOY / "servers.conf").read_text(), re.MULTILINE)
    assert named == [name for name, service in services.items() if service["image"] == "turnfold"] == ["app1", "app2"]
    one, two = services["app1"], services["app2"]
    assert {**one, "networks": None} == {**two, "networks": None}
    assert one["networks"]["servers"] != two["networks"]["servers"]
    # They believe the proxy alone, and nothing else is reached from outside.
    assert one["environment"]["FORWARDED_ALLOW_IPS"] == services["proxy"]["networks"]["servers"]["ipv4_address"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert read_yaml(ROOT / "compose.yaml")["networks"]["database"] == {"internal": True}
    assert services["database"]["networks"] == ["database"]


def test_no_service_is_root_or_writes_to_its_own_disk_or_gets_more_rights(services: dict[str, Any], image: str) -> None:
    for name in ("app1", "app2", "proxy", "database"):
        assert services[name]["read_only"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]
        if name != "database":
            assert services[name]["cap_drop"] == ["ALL"]
            user = services[name].get("user") or image.rpartition("\nUSER ")[2].split()[0]
            assert int(user.split(":")[0]) > 0


def test_no_service_takes_all_of_the_machine(services: dict[str, Any]) -> None:
    bounds = {name: (service["mem_limit"], service["pids_limit"]) for name, service in services.items()}
    assert all(re.fullmatch(r"\d+[mg]", memory) and 0 < pids <= 2048 for memory, pids in bounds.values()), bounds
    for service in services.values():
        # Each of them is memory, half of the machine's if nothing else is said.
        assert all(re.search(r":size=\d+m", folder) for folder in service["tmpfs"])
        assert {*service["logging"]["options"]} == {"max-size", "max-file"}


def test_every_variable_and_secret_is_a_setting(services: dict[str, Any], image: str) -> None:
    server = services["app1"]
    set_by_image = re.findall(r"^(?:ENV|   ) ([A-Z_]+)=", image, re.MULTILINE)
    named = {*server["environment"], *(secret.upper() for secret in server["secrets"]), *set_by_image}
    assert named <= SETTINGS | OUTSIDE
    assert "TURNFOLD_DATA_DIR" in set_by_image


def test_secrets_and_files_that_a_service_is_given_are_there() -> None:
    for name in ("compose.yaml", "deploy/tls.yaml"):
        composition = read_yaml(ROOT / name)
        used = [service.get("secrets", []) for service in composition["services"].values()]
        assert {secret for listed in used for secret in listed} == {*composition["secrets"]}
        mounted = [mount for service in composition["services"].values() for mount in service.get("volumes", [])]
        files = [mount.split(":")[0] for mount in mounted if mount.startswith("./")]
        assert files
        assert all((ROOT / file).is_file() for file in files)


def test_secrets_are_neither_committed_nor_sent_to_the_image() -> None:
    folders = {secret["file"].partition("/")[0] for secret in read_yaml(ROOT / "compose.yaml")["secrets"].values()}
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {f"/{folder}/" for folder in folders} < {*ignored}
    assert ".env" in ignored
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"


def test_the_image_has_all_that_the_server_is_made_of(image: str) -> None:
    build = image.rpartition("\nFROM ")[0]
    copied = {line.split()[1] for line in build.splitlines() if line.startswith("COPY ")}
    retained = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"api", "component", "graph", "prompt", "app.py", ".streamlit"} < copied
    assert {name.partition("/")[0] for name in copied} == {name.partition("/")[0] for name in retained}


def test_the_proxy_streams_at_the_paths_of_the_routes_and_takes_bodies_as_large_as_the_servers_do(nginx: str) -> None:
    (paths,) = re.findall(r"location ~ \^/\(([\w|]+)\)\(/\|\$\)", nginx)
    assert tuple(paths.split("|")) == middleware._OF_PROGRAMS  # noqa: SLF001  # the same paths
    assert f"client_max_body_size {BODY_BYTES // 2**20}m;" in nginx


def test_one_address_that_reads_slowly_does_not_fill_the_proxys_memory(services: dict[str, Any], nginx: str) -> None:
    (connections,) = re.findall(r"limit_conn connections (\d+);", nginx)
    (body,), (head,) = (
        re.findall(rf"{name} (\d+)k;", nginx) for name in ("client_body_buffer_size", "proxy_buffer_size")
    )
    ((count, size),) = re.findall(r"proxy_buffers (\d+) (\d+)k;", nginx)
    kibibytes = int(connections) * (int(body) + int(head) + int(count) * int(size))
    assert kibibytes <= int(services["proxy"]["mem_limit"].removesuffix("m")) * 1024 // 3


def run(command: str, folder: Path, **environment: str) -> str:
    ran = subprocess.run(
        [str(DEPLOY / "with-secrets"), "sh", "-c", command],
        env={"PATH": "/usr/bin:/bin", "SECRETS": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def test_secrets_become_variables_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "openai_api_key").write_text("sk-'1 $x\n")
    (tmp_path / "tls2_key").write_text("two\nlines\n")
    # What is set already stays, and an empty secret sets nothing.
    (tmp_path / "chat_model").write_text("of the file")
    (tmp_path / "oidc_client_secret").touch()
    told = run(
        'printf "%s|%s|%s|%s" "$OPENAI_API_KEY" "$TLS2_KEY" "$CHAT_MODEL" "${OIDC_CLIENT_SECRET-unset}"',
        tmp_path,
        CHAT_MODEL="of the variable",
    )
    assert told == "sk-'1 $x|two\nlines|of the variable|unset"
    for name in ("a-b", "1st", "a b", "a;id", ".hidden", "비밀", "$(id)"):
        (tmp_path / name).write_text("value-of-a-file")
    assert "value-of-a-file" not in run("env", tmp_path)
    ended = subprocess.run([str(DEPLOY / "with-secrets"), "sh", "-c", "exit 7"], check=False)
    assert ended.returncode == 7


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))


def test_a_server_is_pinned_to_what_the_tests_run_with_and_has_nothing_of_them() -> None:
    server, every = pins("requirements-server.lock"), pins("requirements.lock")
    assert server.items() <= every.items()
    assert {"streamlit", "langgraph", "psycopg", "authlib"} < {*server}
    assert not {"pytest", "playwright", "mypy"} & {*server}


def test_a_server_without_the_driver_of_postgres_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "graph.store.postgres.postgres_database", None)
    settings = Settings(_env_file=None, chat_database_url="postgresql://kim@db/chat")  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic makes the secret
    with pytest.raises(SettingsError, match=r"pip install -r ([a-z.-]+)$") as refused:
        open_database(settings)
    command = refused.value.args[0].partition(": ")[2].rpartition(": ")[2]
    assert command in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = {re.split(r"[\[><=]", requirement)[0] for requirement in wanted["postgres"]}
    assert names <= {*pins(command.split()[-1])}
