from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

import httpx2
import pytest

from tests.fake.proxy import held_bytes, proxied
from tests.fake.raw_client import connected, head
from tests.fake.scripted_completions import ScriptedCompletions
from tests.fake.served_api import ServedApi

pytestmark = pytest.mark.slow
NAMES: Final = ("first", "second")
COOKIE: Final = "turnfold_place"
# What a provider with long tokens makes of a sign-in: cookies as long as browsers keep them.
SIGNED_IN: Final = "/oauth2callback"
COOKIES: Final = ("_streamlit_user", "_streamlit_user_tokens", "_streamlit_user_tokens_1")
COOKIE_CHARS: Final = 4_000
OTHERS: Final = "token-that-nobody-gave-0123"
# An answer of 30 MB.
LARGE: Final = "/large"
LARGE_BYTES: Final = 30 * 2**20


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
                if self.path == LARGE:
                    self.send_response(200)
                    self.send_header("Content-Length", str(LARGE_BYTES))
                    self.end_headers()
                    with suppress(OSError):  # it left
                        self.wfile.write(bytes(LARGE_BYTES))
                    return
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


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, NamedServer]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(NamedServer(name)) for name in NAMES}


@pytest.fixture(scope="module")
def address(servers: dict[str, NamedServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proxy") / "nginx"
    with proxied(folder, [server.port for server in servers.values()]) as port:
        yield f"http://127.0.0.1:{port}"


def get_json(address: str, path: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401  # httpx2's own
    answer = httpx2.get(f"{address}{path}", **options)
    assert answer.status_code == 200
    said: dict[str, Any] = answer.json()
    return said


def test_a_browser_stays_with_the_server_that_it_was_given_first_and_they_are_shared_out(address: str) -> None:
    for _ in range(8):
        with httpx2.Client(base_url=address) as browser:
            first = browser.get("/").json()["server"]
            seen = {browser.get(f"/_stcore/{n}").json()["server"] for n in range(6)}
        assert seen == {first}
    assert set(Counter(get_json(address, "/")["server"] for _ in range(40))) == set(NAMES)


def test_a_place_is_given_once_and_no_script_can_read_it(address: str) -> None:
    with httpx2.Client(base_url=address) as browser:
        given = SimpleCookie(browser.get("/").headers["set-cookie"])[COOKIE]
        assert "set-cookie" not in browser.get("/").headers
    assert (given["httponly"], given["samesite"], given["path"], given["secure"]) == (True, "Lax", "/", "")
    for value in ("", "x", "0" * 33, "a b;c", "../" * 10):
        answer = httpx2.get(f"{address}/", headers={"Cookie": f"{COOKIE}={value}"})
        assert COOKIE in SimpleCookie(answer.headers["set-cookie"])


def test_a_sign_in_with_long_tokens_comes_through_and_is_sent_again(address: str) -> None:
    with httpx2.Client(base_url=address) as browser:
        answer = browser.get(SIGNED_IN)
        assert answer.status_code == 200
        assert {*COOKIES} <= answer.cookies.keys()
        heard = browser.get("/").json()["headers"]["cookie"]
    assert len(heard) > len(COOKIES) * COOKIE_CHARS


def test_a_program_is_answered_by_any_server_and_is_given_nothing_to_keep(address: str) -> None:
    with httpx2.Client(base_url=address) as program:
        for path in ("/v1/chat/completions", "/chat", "/chat/", "/sessions", "/sessions/a%20b/turns"):
            answers = [program.post(path, json={}) for _ in range(6)]
            assert {answer.json()["server"] for answer in answers} == set(NAMES)
            assert not any("set-cookie" in answer.headers for answer in answers)


def test_the_servers_are_told_who_was_asked_for_by_whom(address: str) -> None:
    sent = {"Host": "chat.example.com:8443", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    heard = get_json(address, "/", headers=sent)["headers"]
    assert heard["host"] == "chat.example.com:8443"
    assert heard["x-forwarded-for"] == "127.0.0.1"
    assert heard["x-forwarded-proto"] == "http"


def test_figures_are_not_shown_outside(address: str) -> None:
    plain = ("/metrics", "/metrics/", "/_stcore/metrics")
    for path in (*plain, "//metrics", "/x/../metrics", "/%6detrics", "/_stcore/./metrics/"):
        # The client itself would tidy the path up.
        assert httpx2.get(httpx2.URL(address).copy_with(raw_path=path.encode())).status_code == 404, path


MB: Final = 2**20


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/v1/chat/completions", 32 * MB),
        ("/v1/responses", 32 * MB),
        ("/v1/summarize/", 32 * MB),
        ("/chat", 4 * MB),
        ("/sessions/a/context", 4 * MB),
        ("/_stcore/upload_file/tab/file", 11 * MB),
        ("/", 64 * 1024),
        ("/v1x", 64 * 1024),
    ],
)
def test_a_body_as_large_as_a_server_takes_there_comes_through(address: str, path: str, most: int) -> None:
    answer = httpx2.post(f"{address}{path}", content=b"x" * most, timeout=60)
    assert answer.json()["bytes"] == most
    assert httpx2.post(f"{address}{path}", content=b"x" * (most + 1), timeout=60).status_code == 413


def test_bodies_of_strangers_are_refused_by_the_server_before_their_end_and_kept_nowhere(tmp_path: Path) -> None:
    size, answers = 31 * MB, []

    def send(connection: socket.socket) -> None:
        fields = f"Content-Length: {size + 1000}"
        with suppress(OSError):  # it needn't be read to its end
            connection.sendall(head("POST", "/v1/chat/completions", fields, token=OTHERS) + bytes(size))
        answers.append(connection.recv(65_536)[:12])

    folder = tmp_path / "nginx"
    with (
        ServedApi(lambda _: ScriptedCompletions()) as http_api,
        proxied(folder, [http_api.port]) as port,
        ExitStack() as stack,
    ):
        connections = [stack.enter_context(connected(port)) for _ in range(15)]
        threads = [threading.Thread(target=send, args=(connection,)) for connection in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert held_bytes(folder) == 0
    assert answers == [b"HTTP/1.1 401"] * 15


def test_an_answer_that_nobody_reads_is_kept_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "nginx"
    with NamedServer("first") as server, proxied(folder, [server.port]) as port, ExitStack() as stack:
        connections = [stack.enter_context(connected(port)) for _ in range(5)]
        for connection in connections:
            connection.sendall(head("GET", LARGE))
        for connection in connections:
            assert connection.recv(12) == b"HTTP/1.1 200"
        assert held_bytes(folder) == 0
        assert len(httpx2.get(f"http://127.0.0.1:{port}{LARGE}", timeout=60).content) == LARGE_BYTES


def statuses(address: str, path: str, count: int) -> Counter[int]:
    with httpx2.Client(base_url=address) as client:
        return Counter(client.get(path).status_code for _ in range(count))


def test_an_address_begins_only_so_many_sign_ins_and_pages_but_gets_all_files_of_a_page(tmp_path: Path) -> None:
    with NamedServer("first") as server, proxied(tmp_path / "nginx", [server.port]) as port:
        address = f"http://127.0.0.1:{port}"
        # Both ways of signing in share one bound.
        for path, at_once, a_second in (
            ("/oauth2callback", 100, 10),
            ("/auth/login", 0, 10),
            ("/_stcore/stream", 600, 20),
        ):
            started = time.monotonic()
            seen = statuses(address, path, at_once + 200)
            assert seen[429] > 0
            assert at_once <= seen[200] <= at_once + 2 + (time.monotonic() - started) * a_second
        assert statuses(address, "/static/js/a.js", 800) == {200: 800}
        assert statuses(address, "/v1/models", 800) == {200: 800}


def test_an_address_has_only_so_many_connections(tmp_path: Path) -> None:
    changes = {"limit_conn connections 1000;": "limit_conn connections 5;"}
    with (
        NamedServer("first") as server,
        proxied(tmp_path / "nginx", [server.port], changes=changes) as port,
        ExitStack() as stack,
    ):
        for _ in range(5):
            connection = stack.enter_context(connected(port))
            connection.sendall(head("POST", "/v1/chat/completions", "Content-Length: 1000") + b"x")
        address = f"http://127.0.0.1:{port}/"
        while httpx2.get(address).status_code != 429:
            time.sleep(0.01)
        stack.close()
        while httpx2.get(address).status_code != 200:
            time.sleep(0.01)


def test_what_a_stranger_asks_for_fills_no_log(tmp_path: Path) -> None:
    folder = tmp_path / "nginx"
    with NamedServer("first") as server, proxied(folder, [server.port]) as port:
        for method, path in (("GET", "/" + "a" * 30_000), ("A" * 30_000, "/"), ("GET", "/" + "%0a" * 10_000)):
            with connected(port) as connection:
                connection.sendall(head(method, path))
                assert connection.recv(12).startswith(b"HTTP/1.1 ")
    lines = (folder / "log").read_text().splitlines()
    told_of = [line.split()[1:4] for line in lines]  # each worker tells of a request when that has ended
    assert [found in told_of for found in (["GET", "/" + "a" * 199, "200"], ["-", "/", "501"])] == [True, True]
    assert max(map(len, lines)) < 1_000


def test_over_https_the_place_is_kept_from_http_and_the_servers_are_told(tmp_path: Path) -> None:
    with NamedServer("first") as server, proxied(tmp_path / "nginx", [server.port], listen="tls.conf") as port:
        context = ssl.create_default_context(cafile=str(tmp_path / "nginx/tls_certificate"))
        answer = httpx2.get(f"https://localhost:{port}/", verify=context)
    assert answer.json()["headers"]["x-forwarded-proto"] == "https"
    assert SimpleCookie(answer.headers["set-cookie"])[COOKIE]["secure"]


def test_what_one_server_had_goes_to_the_other_while_it_is_down_and_comes_back(tmp_path: Path) -> None:
    with NamedServer("first") as first, NamedServer("second") as second:
        ports = {"first": first.port, "second": second.port}
        with proxied(tmp_path / "nginx", list(ports.values())) as port, httpx2.Client() as browser:
            address = f"http://127.0.0.1:{port}/"
            mine = browser.get(address).json()["server"]
            other = next(name for name in NAMES if name != mine)
            {"first": first, "second": second}[mine].end()
            assert {browser.get(address).json()["server"] for _ in range(5)} == {other}
            assert {browser.post(f"{address}v1/models").json()["server"] for _ in range(5)} == {other}
            with NamedServer(mine, port=ports[mine]):
                seen = other
                while seen != mine:
                    seen = browser.get(address).json()["server"]
