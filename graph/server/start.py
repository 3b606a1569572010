"""What the terminal says of a server that starts, and the address of one that already runs over the same files."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO
from urllib.parse import urlsplit

from graph.server.settings import Settings

_FILE: Final = "address"
_PATIENCE_SECONDS: Final = 5.0


def address_of(settings: Settings, host: str, port: int) -> str:
    """Returns the address to open in a browser."""
    is_local = host in {"", "0.0.0.0", "::", "127.0.0.1", "::1", "localhost"}  # noqa: S104  # compared, not bound
    return settings.turnfold_origin or f"http://{'localhost' if is_local else host}:{port}"


def running_at(settings: Settings) -> str:
    """Returns the address of a server that answers and has the same data folder; "" if there is none.

    Several servers may share a Postgres, so with one there never is.
    """
    if settings.chat_database_url is not None:
        return ""
    with suppress(OSError, ValueError):
        address, port = (settings.turnfold_data_dir / _FILE).read_text(encoding="utf-8").split()
        without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with without_proxy.open(f"http://127.0.0.1:{int(port)}/health", timeout=_PATIENCE_SECONDS) as answer:
            return address if json.load(answer).get("status") else ""
    return ""


@contextmanager
def noted_address(settings: Settings, address: str, port: int) -> Iterator[None]:
    """Keeps the server's address in the data folder, for the next start, until the server ends."""
    noted = settings.turnfold_data_dir / _FILE
    with suppress(OSError):
        noted.write_text(f"{address} {port}\n", encoding="utf-8")
    try:
        yield
    finally:
        with suppress(OSError):
            if noted.read_text(encoding="utf-8").split()[1:] == [str(port)]:
                noted.unlink()


def say(text: str, stream: TextIO) -> None:
    """Writes a line; what the stream's encoding lacks, such as letters of a token's name, is written as escapes."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def welcome(settings: Settings, address: str, model: str, made: tuple[int, int]) -> str:
    """Returns the lines of a started server: address, model, HTTP API and data, and how to set what isn't.

    `made` are the counts of the tokens made on the page: one person's, and shared ones.
    """
    host = urlsplit(settings.openai_base_url or "https://api.openai.com").netloc.rpartition("@")[2]
    if settings.is_offline:
        answers = f"{model}, built in (no network). For another one: OPENAI_API_KEY or OPENAI_BASE_URL in .env"
    else:
        answers = f"{model or 'the one that is loaded'} at {host}. For another one: CHAT_MODEL in .env"
    has_files = settings.chat_database_url is None
    data = settings.turnfold_data_dir.resolve() if has_files else "in the Postgres of CHAT_DATABASE_URL"
    lines = {"Turnfold": address, "API": _api(settings, address, made), "Model": answers, "Data": data}
    lines["Stop"] = "Ctrl+C"
    return "\n".join(["", *(f"  {name:<10}{text}" for name, text in lines.items()), ""])


def _api(settings: Settings, address: str, made: tuple[int, int]) -> str:
    kinds = ("personal", "shared")
    tokens = [f"{token.name} ({kinds[not token.is_personal]})" for token in settings.api_tokens]
    tokens += [f"{count} made on the page ({kind})" for count, kind in zip(made, kinds, strict=True) if count]
    if not tokens:
        return 'off until there is a token: CHAT_API_TOKEN in .env, or "API access" on the page'
    return f"{address}/v1. Tokens: {', '.join(tokens)}"
