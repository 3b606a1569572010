"""A server of tools behind a URL of loopback that misuses streamable HTTP; it speaks the protocol's version of 2025."""

from __future__ import annotations

import gzip
import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from graph.mcp.config import ServerConfig
from tests.fake.mcp_tools import SECRET

TOOLS: Final = ("calm", "forgetful", "huge", "huge_event", "newer", "parts", "parts_event", "redirecting", "zipped")
_HUGE: Final = "z" * 9_000_000


class MisusedWeb:
    """What the server saw; `elsewhere` counts what came to the address that it redirects to."""

    def __init__(self, url: str) -> None:
        self.config = ServerConfig(
            "web", url=f"{url}/mcp?token={SECRET}", headers={"Authorization": f"Bearer {SECRET}-2"}
        )
        self.authorizations: set[str] = set()
        self.calls: list[str] = []
        self.sessions: list[str] = []
        self.elsewhere: list[str] = []


@contextmanager
def misused_web() -> Iterator[MisusedWeb]:
    server, other = (_Server(("127.0.0.1", 0), _Handler) for _ in range(2))
    web = MisusedWeb(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = type(
        "Handler", (_Handler,), {"web": web, "other": f"http://127.0.0.1:{other.server_port}"}
    )
    other.RequestHandlerClass = type("Other", (_Elsewhere,), {"web": web})
    threads = [threading.Thread(target=each.serve_forever, daemon=True) for each in (server, other)]
    for thread in threads:
        thread.start()
    try:
        yield web
    finally:
        for each in (server, other):
            each.shutdown()
            each.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that closes its connection is none."""


class _Quiet(BaseHTTPRequestHandler):
    web: MisusedWeb
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
        pass


class _Elsewhere(_Quiet):
    def do_POST(self) -> None:
        self.web.elsewhere.append(self.headers.get("Authorization", ""))
        self.send_error(404)


class _Handler(_Quiet):
    other: str

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.send_error(405)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.web.authorizations.add(self.headers.get("Authorization", ""))
        if "id" not in message:
            self._answer(b"", status=202)
        elif message["method"] == "initialize":
            self.web.sessions.append(uuid.uuid4().hex)
            info = {"name": "web", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            self._reply(message, result, {"Mcp-Session-Id": self.web.sessions[-1]})
        elif message["method"] == "server/discover":
            error = {"code": -32601, "message": "Method not found"}
            self._answer(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        elif self.headers.get("Mcp-Session-Id") not in self.web.sessions:
            self._answer(b"", status=404)
        elif message["method"] == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            self._reply(message, {"tools": tools})
        else:
            self._call(message)

    def _call(self, message: Mapping[str, Any]) -> None:
        name = message["params"]["name"]
        self.web.calls.append(name)
        if name == "forgetful":
            self.web.sessions.clear()
        if name == "redirecting":
            self._answer(b"", status=307, headers={"Location": f"{self.other}/mcp"})
        elif name == "huge_event":
            body = json.dumps(_said(message, _text(_HUGE)))
            self._answer(f"data: {body}\n\n".encode(), headers={"Content-Type": "text/event-stream"})
        elif name == "parts_event":  # in an encoding whose quotation marks aren't where they seem to be
            body = f"data: {json.dumps(_said(message, _parts()))}\n\n"
            self._answer(body.encode(), headers={"Content-Type": "text/event-stream; charset=utf-16"})
        elif name in ("newer", "parts"):
            self._reply(message, _parts() if name == "parts" else {"structuredContent": {"rows": 3}, "isError": None})
        elif name == "zipped":
            body = json.dumps(_said(message, _text(_HUGE)))
            self._answer(gzip.compress(body.encode()), headers={"Content-Encoding": "gzip"})
        else:
            self._reply(message, _text(_HUGE if name == "huge" else name))

    def _reply(self, message: Mapping[str, Any], result: object, headers: Mapping[str, str] | None = None) -> None:
        self._answer(json.dumps(_said(message, result)).encode(), headers=headers)

    def _answer(self, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | dict(headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _said(message: Mapping[str, Any], result: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _parts() -> dict[str, Any]:
    return {"content": _text("a")["content"] * 100_000}


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
