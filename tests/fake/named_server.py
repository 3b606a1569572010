"""A server on loopback that answers every request with its own name and what it was sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self

# What a provider with long tokens makes of a sign-in: cookies as long as browsers keep them.
SIGNED_IN: Final = "/oauth2callback"
COOKIES: Final = ("_streamlit_user", "_streamlit_user_tokens", "_streamlit_user_tokens_1")
COOKIE_CHARS: Final = 4_000


class NamedServer:
    """A context manager; the answer to a request is `{"server", "path", "headers", "bytes"}`.

    Args:
        name: What it calls itself.
        port: A fixed port, to start again where another one has been; 0 takes a free one.
    """

    def __init__(self, name: str, *, port: int = 0) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer()

            def do_POST(self) -> None:
                self._answer()

            def log_message(self, *_: object) -> None:
                pass

            def _answer(self) -> None:
                taken = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {key.lower(): value for key, value in self.headers.items()}
                said = {"server": name, "path": self.path, "headers": headers, "bytes": len(taken)}
                body = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                if self.path == SIGNED_IN:
                    for name_of_cookie in COOKIES:
                        self.send_header("Set-Cookie", f"{name_of_cookie}={'x' * COOKIE_CHARS}; Path=/; HttpOnly")
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
