from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.mcp.config import ServerConfig, asks_first, hide, read_servers, secrets_of
from graph.server.settings import load_settings
from graph.value.error import SettingsError


def written(folder: Path, content: object) -> Path:
    path = folder / "mcp.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_servers_are_read_by_name_as_other_programs_have_them(tmp_path: Path) -> None:
    servers = {
        "git": {"command": "uvx", "args": ["mcp-server-git"], "type": "stdio", "autoApprove": []},
        "문서": {"url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer abc"}},
        "off": {"command": "npx", "disabled": True},
        "db": {"command": "db", "env": {"PORT": 5432, "URL": "x"}, "disabled": False},
    }
    read = read_servers(written(tmp_path, {"mcpServers": servers, "other": 1}))
    assert read == (
        ServerConfig("db", "db", env={"PORT": "5432", "URL": "x"}),
        ServerConfig("git", "uvx", ("mcp-server-git",)),
        ServerConfig("문서", url="https://docs.example.com/mcp", headers={"Authorization": "Bearer abc"}),
    )
    assert read_servers(written(tmp_path, {"mcpServers": {}})) == ()
    assert read_servers(written(tmp_path, "\ufeff" + json.dumps({"mcpServers": {}}))) == ()


BAD = {
    "is no JSON, hush-1234": "isn't JSON",
    '{"mcpServers": ["hush-1234"]}': 'no object "mcpServers"',
    '{"servers": {}}': 'no object "mcpServers"',
    '["mcpServers"]': 'no object "mcpServers"',
    "[" * 100_000: "isn't JSON",
}
BAD_SERVERS = [
    {"a": {}},
    {"a": "hush-1234"},
    {"a": {"command": "x", "url": "https://hush-1234.example.com"}},
    {"a": {"url": "ftp://hush-1234.example.com"}},
    {"a": {"command": 7}},
    {"a": {"command": "x", "args": "hush-1234"}},
    {"a": {"command": "x", "args": [1]}},
    {"a": {"command": "x", "args": ["nul\0"]}},
    {"a": {"command": "x", "env": ["hush-1234"]}},
    {"a": {"command": "x", "env": {"KEY": ["hush-1234"]}}},
    {"a" * 65: {"command": "x"}},
    {"a:b": {"command": "x"}},
    {" ": {"command": "x"}},
]


def test_a_file_that_cant_be_read_is_named_and_not_quoted(tmp_path: Path) -> None:
    for content, reason in BAD.items():
        with pytest.raises(SettingsError, match=reason) as caught:
            read_servers(written(tmp_path, content))
        assert "mcp.json" in caught.value.detail
        assert "hush" not in str(caught.value)
    for servers in BAD_SERVERS:
        with pytest.raises(SettingsError, match=r"MCP_SERVERS: .*server") as caught:
            read_servers(written(tmp_path, {"mcpServers": servers}))
        assert "hush" not in str(caught.value)
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(SettingsError, match="can't be read"):
            read_servers(path)


def test_variables_of_the_environment_are_filled_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (("MY_KEY", "sk-4711${HOME}"), ("HOST", "docs.example.com"), ("EMPTY", "")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNSET", raising=False)
    servers = {
        "docs": {"url": "https://${HOST}/${UNSET:-mcp}", "headers": {"Authorization": "Bearer ${env:MY_KEY}"}},
        "files": {
            "command": "${UNSET:-npx}",
            "args": ["serve", "${MY_KEY}", "$HOME $${EMPTY:-x} ${EMPTY}"],
            "env": {"A": "${EMPTY:-}${HOST:-other}", "B": 7},
            "other": "${UNSET}",
        },
        "off": {"command": "${UNSET}", "disabled": True},
    }
    docs, files = read_servers(written(tmp_path, {"mcpServers": servers}))
    assert (docs.url, docs.headers) == ("https://docs.example.com/mcp", {"Authorization": "Bearer sk-4711${HOME}"})
    assert (files.command, files.args) == ("npx", ("serve", "sk-4711${HOME}", "$HOME $x "))
    assert files.env == {"A": "docs.example.com", "B": "7"}
    assert hide("sk-4711${HOME} at docs.example.com", secrets_of(files)) == "••• at docs.example.com"


@pytest.mark.parametrize("value", ["a ${UNSET}", "${env:UNSET}", "${UNSET", "${UNSET:-${HOME}}", "${UNSET:-{}}"])
def test_a_variable_that_isnt_there_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    monkeypatch.delenv("UNSET", raising=False)
    for key, filled in (("args", [value]), ("env", {"K": value}), ("headers", {"K": value}), ("command", value)):
        path = written(tmp_path, {"mcpServers": {"docs": {"command": "x", key: filled}}})
        with pytest.raises(SettingsError, match=r"MCP_SERVERS: server 'docs' needs the environment variable 'UNSET'"):
            read_servers(path)


@pytest.mark.parametrize(
    ("value", "named"), [("${input:api key}", "'input:api key'"), ("${}", "''"), ("${a-b:-c}", "'a-b'")]
)
def test_what_names_no_variable_is_refused_too(tmp_path: Path, value: str, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        read_servers(written(tmp_path, {"mcpServers": {"docs": {"command": "x", "args": [value]}}}))


def test_secrets_are_hidden_and_paths_are_not() -> None:
    config = ServerConfig(
        "db",
        "npx",
        (
            "postgres://me:p%40ssw0rd@db:5432/shop",
            "--api-key",
            "cli-key-123",
            "--token=tok-4567",
            "--root",
            "/srv/data",
        ),
        {
            "API_KEY": "sk-0123456789",
            "SESSION": "plain",
            "MY_SECRET": "/in/a/path",
            "LOG_LEVEL": "WARNING",
            "ROOT": "/srv/data",
            "SITE": "https://jira.example.com",
            "HOOK": "https://hooks.example.com/services/T0/B0",
            "PIN": "12345",
            "OTHER": "x9x9x9",
        },
    )
    secrets = secrets_of(config)
    assert hide(" ".join((*config.args, *config.env.values())), secrets) == (
        "postgres://me:•••@db:5432/shop --api-key ••• --token=••• --root /srv/data "
        "••• plain ••• WARNING /srv/data https://jira.example.com ••• 12345 •••"
    )
    assert hide("with p@ssw0rd", secrets) == "with •••"
    remote = ServerConfig(
        "r", url="https://a.example.com/mcp?token=in-the-url&v=2", headers={"Authorization": "Bearer abcdef-1"}
    )
    told = "sent Authorization: Bearer abcdef-1, abcdef-1 to https://a.example.com/mcp?token=in-the-url&v=2"
    assert hide(told, secrets_of(remote)) == ("sent Authorization: •••, ••• to https://a.example.com/mcp?token=•••&v=2")
    assert "abcdef-1" not in repr(remote)
    assert "in-the-url" not in f"{remote} {[remote]}"


@pytest.mark.parametrize(
    ("allow", "asked"),
    [
        ((), ["files:write"]),
        (("files:*",), []),
        (("!files:*",), ["files:read", "files:write"]),
        (("files:*", "!files:write"), ["files:write"]),
        (("!files:write", "files:*"), []),
        (("other:*", "file:*", "FILES:*", "files:writ"), ["files:write"]),
        (("*:*",), []),
        (("files:wri:*",), ["files:write"]),
    ],
)
def test_the_operator_decides_over_the_servers_mark(allow: tuple[str, ...], asked: list[str]) -> None:
    marks = {"read": True, "write": False}
    assert asked == [
        f"files:{tool}" for tool, mark in marks.items() if asks_first("files", tool, is_read_only=mark, allow=allow)
    ]


def test_patterns_are_checked_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCP_ALLOW", " files:read_* , !git:*,")
    monkeypatch.setenv("MCP_SERVERS", "")
    assert (load_settings().mcp_allow, load_settings().mcp_servers) == (("files:read_*", "!git:*"), None)
    for value in ("files", "files:", ":read", "!", "!!a:b"):
        monkeypatch.setenv("MCP_ALLOW", value)
        with pytest.raises(SettingsError, match="MCP_ALLOW: takes patterns"):
            load_settings()
