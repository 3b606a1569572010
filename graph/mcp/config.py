"""The servers of `MCP_SERVERS`: a file in the form of Claude Desktop and Cursor, its secrets, and `MCP_ALLOW`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit

from graph.value.error import SettingsError

_MASK: Final = "•••"
_SECRET_CHARS: Final = 6
_NAME_CHARS: Final = 64
_SECRET_NAME: Final = re.compile(r"auth|cookie|credential|dsn|key|pass|private|pwd|secret|session|token", re.IGNORECASE)
_PATH: Final = re.compile(r"(~|\.{0,2})/[^?#@]*|[A-Za-z]:\\.*")
_ORIGIN: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?/?")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_.-]{0,15}")
_VARIABLE: Final = re.compile(r"\$\{([^{}]*)(\}?)")
_SCHEME: Final = re.compile(r"\A[A-Za-z0-9_-]+ +(?=\S)")


class ServerConfig(NamedTuple):
    """One server: a `command` that is started, or a `url`; the other one is "".

    `variables` are those of the environment that its entry names, with their values.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"ServerConfig({self.name!r})"


def read_servers(path: Path) -> tuple[ServerConfig, ...]:
    """Reads the servers of a file, by name, without the disabled ones; keys that are unknown here are ignored.

    `${NAME}` in a value is that variable of the environment, `${NAME:-default}` the default where it is empty or unset.

    Raises `SettingsError`, whose detail quotes nothing of the file but names.
    """
    try:
        content = json.loads(path.expanduser().read_text("utf-8-sig"))
    except OSError as error:
        _refuse(f"{path} can't be read ({error.strerror or type(error).__name__})")
    except json.JSONDecodeError as error:
        _refuse(f"{path} isn't JSON: {error.msg} in line {error.lineno}, column {error.colno}")
    except (UnicodeDecodeError, RecursionError):
        _refuse(f"{path} isn't JSON")
    servers = content.get("mcpServers") if isinstance(content, Mapping) else None
    if not isinstance(servers, Mapping):
        _refuse(f'{path} has no object "mcpServers"')
    configs = [_server_of(name, entry) for name, entry in servers.items() if not _is_disabled(entry)]
    return tuple(sorted(configs))


def _is_disabled(entry: object) -> bool:
    return isinstance(entry, Mapping) and entry.get("disabled") is True


def _server_of(name: str, entry: object) -> ServerConfig:
    if not name.isprintable() or not name.strip() or len(name) > _NAME_CHARS or ":" in name:
        _refuse(f"a server's name has 1 to {_NAME_CHARS} characters, without colons, not {name[:80]!r}")
    if not isinstance(entry, Mapping):
        _refuse(f"server {name!r} must be an object")
    variables: dict[str, str] = {}
    entry = {key: _filled(entry.get(key), name, variables) for key in ("command", "url", "args", "env", "headers")}
    command, url = _text(name, entry, "command"), _text(name, entry, "url")
    if bool(command) == bool(url):
        _refuse(f'server {name!r} needs either "command" or "url"')
    if url and not url.startswith(("http://", "https://")):
        _refuse(f'the "url" of server {name!r} must begin with http:// or https://')
    args = entry.get("args") or []
    if not isinstance(args, Sequence) or isinstance(args, str) or not all(isinstance(item, str) for item in args):
        _refuse(f'the "args" of server {name!r} must be a list of texts')
    if any("\0" in item for item in (command, *args)):
        _refuse(f"server {name!r} has a NUL in its command")
    env, headers = _texts(name, entry, "env"), _texts(name, entry, "headers")
    return ServerConfig(name, command, tuple(args), env, url, headers, variables)


def _filled(value: Any, server: str, variables: dict[str, str]) -> Any:  # noqa: ANN401 - JSON of any shape, returned in its shape
    """Returns a value of an entry with its variables filled in; these are added to `variables`."""

    def fill(found: re.Match[str]) -> str:
        # Cursor's files have "env:" before the name, Claude's haven't.
        name, sign, default = found[1].removeprefix("env:").partition(":-")
        known = os.environ.get(name, "") or default if sign else os.environ.get(name)
        if known is None or not found[2] or not name.isidentifier():
            _refuse(f"server {server!r} needs the environment variable {name[:_NAME_CHARS]!r}, which isn't set")
        if known != default:
            variables[name] = known
        return known

    if isinstance(value, str):
        return _VARIABLE.sub(fill, value)
    if isinstance(value, list):
        return [_filled(each, server, variables) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, server, variables) for key, each in value.items()}
    return value


def _text(name: str, entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str):
        _refuse(f'the "{key}" of server {name!r} must be a text')
    return value.strip()


def _texts(name: str, entry: Mapping[str, Any], key: str) -> dict[str, str]:
    values = entry.get(key) or {}
    if not isinstance(values, Mapping) or not all(isinstance(value, str | int | float) for value in values.values()):
        _refuse(f'the "{key}" of server {name!r} must be an object of texts')
    return {str(item): value if isinstance(value, str) else json.dumps(value) for item, value in values.items()}


def _refuse(reason: str) -> NoReturn:
    msg = f"MCP_SERVERS: {reason}"
    raise SettingsError(msg) from None


def secrets_of(config: ServerConfig) -> tuple[str, ...]:
    """Returns the texts that must not be shown: values of `env` and `headers`, and passwords in `args` and the URL.

    Values that are plainly no secret (paths, a site's address, single words) aren't hidden unless their name says "key"
    or the like: they occur in results.
    """
    found = {secret.strip() for secret in _secrets(config)}
    return tuple(sorted((secret for secret in found if len(secret) >= _SECRET_CHARS), key=len, reverse=True))


def _secrets(config: ServerConfig) -> Iterator[str]:
    for name, value in (*config.env.items(), *config.headers.items(), *config.variables.items()):
        if _SECRET_NAME.search(name) or not any(kind.fullmatch(value) for kind in (_PATH, _ORIGIN, _WORD)):
            yield value
            # "Bearer ..." may be told without its first word.
            yield _SCHEME.sub("", value, count=1)
            yield from _secrets_of_url(value)
    before = ""
    for argument in config.args:
        flag, equals, value = argument.partition("=")
        if equals and _SECRET_NAME.search(flag):
            yield value
        elif before.startswith("-") and "=" not in before and _SECRET_NAME.search(before):
            yield argument
        yield from _secrets_of_url(value if equals and flag.startswith("-") else argument)
        before = argument
    yield from _secrets_of_url(config.url)


def _secrets_of_url(text: str) -> Iterator[str]:
    if "://" not in text:
        return
    try:
        url = urlsplit(text)
        password, values = url.password, parse_qsl(url.query)
    except ValueError:
        return
    if password:
        yield password
        yield unquote(password)
    for name, value in values:
        if _SECRET_NAME.search(name):
            yield value


def hide(text: str, secrets: Iterable[str]) -> str:
    """Replaces secrets in a text; `secrets` are those of `secrets_of`, longest first."""
    for secret in secrets:
        text = text.replace(secret, _MASK)
    return text


def asks_first(server: str, tool: str, *, is_read_only: bool, allow: Iterable[str]) -> bool:
    """Returns whether the user is asked before a tool runs.

    Args:
        is_read_only: The server's mark, which counts if no pattern names the tool.
        allow: Patterns of `MCP_ALLOW`: `server:tool` runs without asking, `!server:tool` asks; the last match counts.
    """
    asks = not is_read_only
    for pattern in allow:
        if fnmatchcase(f"{server}:{tool}", pattern.removeprefix("!")):
            asks = pattern.startswith("!")
    return asks
