"""The real app in a process of its own: other sites' pages, tokens in its logs, and clients that mean it harm."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import socket
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from tests.fake.chat import question
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.raw_client import answer_of, close_code, connected, frame, head, websocket
from tests.fake.served_app import ask_health, served
from tests.fake.served_chat import read
from tests.fake.sign_in import PROVIDER

CONNECTIONS: Final = 1_000
GIGABYTE: Final = 2**30
PIECE: Final = bytes(2**20)
# A token may have 64 answers under way.
NAMES: Final = [f"program-{number}-0123456789abcdef" for number in range(16)]
CANARY: Final = "canary-token-0123456789"
WRONG: Final = "canary-wrong-0123456789"
SAID: Final = "canary said 카나리아가 말했습니다"
ORIGIN: Final = "https://notes.example"


class Server(NamedTuple):
    """The real app in a process of its own."""

    port: int
    pid: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def http(self, name: str = NAMES[0]) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {name}"}, timeout=60)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.folder / "data" / "turnfold.db")) as connection:
            return connection.execute(query).fetchall()

    @property
    def peak_bytes(self) -> int:
        """The most memory that the process has had."""
        told = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+)", told)[1]) * 1024  # type: ignore[index]  # it's always there

    def check_page(self) -> None:
        """Loads the page and runs it once, as a browser does."""
        answer = httpx2.get(self.url, timeout=60)
        assert (answer.status_code, "<html" in answer.text) == (200, True)
        with self.stream() as stream:
            asked = BackMsg()
            asked.rerun_script.query_string = ""
            stream.send(asked.SerializeToString())
            drawn = 0
            while True:
                told = ForwardMsg.FromString(stream.recv(60))
                drawn += told.WhichOneof("type") == "delta"
                if told.WhichOneof("type") == "script_finished":
                    break
            assert told.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
            assert drawn > 0

    def stream(self, host: str = "", origin: str = "") -> ClientConnection:
        """Opens the websocket of a page."""
        host = host or f"127.0.0.1:{self.port}"
        return connect(
            f"ws://{host}/_stcore/stream",
            sock=socket.create_connection(("127.0.0.1", self.port)),
            origin=Origin(origin or f"http://{host}"),
            subprotocols=[Subprotocol("streamlit")],
            max_size=None,
        )


def error_of(connection: socket.socket) -> bytes:
    """An error's answer, to its body's end."""
    answer = b""
    while not answer.endswith(b"}}") and (piece := connection.recv(65_536)):
        answer += piece
    return answer


@contextmanager
def few_files(most: int) -> Iterator[None]:
    """What is started meanwhile may open that few files, until it asks for more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture(scope="module")
def app(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hostile")
    settings = {
        "CHAT_API_TOKENS": ",".join(f"p{number}:local:{name}" for number, name in enumerate([*NAMES, CANARY])),
        "CHAT_API_ORIGINS": ORIGIN,
        "TURNFOLD_HOSTS": "chat.example.com",
        "TURNFOLD_LOG_LEVEL": "DEBUG",
    }
    with ExitStack() as stack:
        with few_files(1_024):
            starting = served("app.py", folder / "data", endpoint.url, folder / "log", **settings)
            process, port = stack.enter_context(starting)
        assert ask_health(port, process) == (200, "ok")
        yield Server(port, process.pid, folder)


def test_no_log_has_a_token_or_a_text_and_no_file_or_refusal_a_token(app: Server) -> None:
    body = {"model": "turnfold", "messages": [{"role": "user", "content": SAID}]}
    asked: list[tuple[str, str, dict[str, str], str | bytes]] = [
        ("/v1/chat/completions", CANARY, {}, json.dumps(body)),
        ("/v1/chat/completions", CANARY, {"Origin": ORIGIN}, json.dumps({"messages": SAID, SAID: CANARY})),
        ("/v1/chat/completions", WRONG, {"Origin": ORIGIN}, json.dumps(body)),
        ("/v1/chat/completions", CANARY, {"Host": "evil.example"}, json.dumps(body)),
        ("/v1/chat/completions", CANARY, {"Origin": "https://evil.example"}, json.dumps(body)),
        ("/v1/models", CANARY, {}, SAID.encode()),
        (f"/v1/{CANARY}", CANARY, {}, json.dumps(body)),
        (f"/v1/{CANARY}", WRONG, {}, SAID.encode()),
        (f"/v1/models?key={CANARY}", WRONG, {}, json.dumps(body)),
    ]
    with httpx2.Client(base_url=app.url, timeout=30) as client:
        told = [
            client.post(path, headers={"Authorization": f"Bearer {token}", **more}, content=content)
            for path, token, more, content in asked
        ]
    assert [answer.status_code for answer in told] == [200, 400, 401, 403, 403, 405, 404, 401, 401]
    assert not [answer.text for answer in told[1:] if "canary" in answer.text]
    written = (app.folder / "log").read_text()
    assert "TurnFinished" in written
    assert "canary" not in written
    assert "카나리아" not in written
    retained = b"".join(file.read_bytes() for file in (app.folder / "data").rglob("*") if file.is_file())
    assert CANARY.encode() not in retained
    assert WRONG.encode() not in retained


@pytest.mark.slow
def test_what_strangers_cause_to_be_logged_is_a_few_short_lines(endpoint: FakeOpenAI, tmp_path: Path) -> None:
    settings = {name.upper(): str(value) for name, value in PROVIDER.items()} | {"TURNFOLD_HOSTS": "chat.example.com"}
    settings["STREAMLIT_SERVER_COOKIE_SECRET"] = "0123456789abcdef" * 2
    with served("app.py", tmp_path / "data", endpoint.url, tmp_path / "log", **settings) as (process, port):
        assert ask_health(port, process) == (200, "ok")
        server = Server(port, process.pid, tmp_path)
        before = len((tmp_path / "log").read_bytes())
        frames: list[str | bytes] = ["a text", b"\xff\xff\xff"] * 40
        for frame in frames:
            with server.stream() as stream, suppress(ConnectionClosed):
                stream.send(frame)
                while True:
                    stream.recv(30)
        with httpx2.Client(base_url=server.url) as client:
            for _ in range(40):
                assert client.get(f"/oauth2callback?error={'A' * 60_000}").status_code == 302
        for _ in range(40):
            with connected(port) as connection:
                connection.sendall(b"GARBAGE\r\n\r\n")
                assert answer_of(connection)[0] == 400
        lines = (tmp_path / "log").read_bytes()[before:].splitlines()
    assert {line.split()[2] for line in lines} >= {
        b"uvicorn.error",
        b"streamlit.web.server.starlette.starlette_websocket",
    }
    assert max(map(len, lines)) < 1_000
    assert len(lines) <= 20 * len({line.split()[2] for line in lines})


def test_the_page_and_its_stream_are_reached_by_their_own_names_alone(app: Server) -> None:
    for name, scheme, site, is_let_in in (
        ("127.0.0.1:{port}", "http", "127.0.0.1:{port}", True),
        ("chat.example.com", "https", "chat.example.com", True),
        ("evil.example:{port}", "http", "evil.example:{port}", False),
        ("127.0.0.1:{port}", "http", "evil.example", False),
    ):
        host, origin = name.format(port=app.port), f"{scheme}://{site.format(port=app.port)}"
        answer = httpx2.get(app.url, headers={"Host": host, "Origin": origin})
        assert answer.status_code == (200 if is_let_in else 403)
        assert answer.headers["X-Frame-Options"] == "DENY"
        if is_let_in:
            with app.stream(host, origin):
                pass
        else:
            with pytest.raises(InvalidStatus) as refused:
                app.stream(host, origin)
            assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    ("path", "is_sized"),
    [
        ("/chat", True),
        pytest.param("/v1/chat/completions", False, marks=pytest.mark.slow),
        pytest.param("/v1/summarize", False, marks=pytest.mark.slow),
    ],
)
def test_a_body_of_a_gigabyte_is_refused_and_not_kept(app: Server, path: str, *, is_sized: bool) -> None:
    before, turns = app.peak_bytes, app.rows("SELECT count(*) FROM turn")
    field = f"Content-Length: {GIGABYTE}" if is_sized else "Transfer-Encoding: chunked"
    piece = PIECE if is_sized else b"%x\r\n%b\r\n" % (len(PIECE), PIECE)
    with connected(app.port) as connection:
        connection.sendall(head("POST", path, field, token=NAMES[0]))
        answers: list[bytes] = []
        reading = threading.Thread(target=lambda: answers.append(error_of(connection)))
        reading.start()
        for _ in range(GIGABYTE // len(PIECE)):
            connection.sendall(piece)
        reading.join(60)
    (answer,) = answers
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_too_large"
    assert app.peak_bytes - before < 300 * 2**20
    assert app.rows("SELECT count(*) FROM turn") == turns
    app.check_page()


def test_messages_that_are_large_once_decompressed_hold_no_more_than_their_part(app: Server) -> None:
    squeeze = zlib.compressobj(wbits=-12)
    bomb = squeeze.compress(bytes(19_900_000)) + squeeze.flush(zlib.Z_SYNC_FLUSH)
    before = app.peak_bytes
    with ExitStack() as stack:
        opened = [stack.enter_context(websocket(app.port, "/_stcore/stream", is_compressed=True)) for _ in range(12)]
        for connection in opened:
            connection.sendall(frame(bomb, is_last=False, is_compressed=True))
        assert [close_code(connection) for connection in opened[6:]] == [1013] * 6
        assert app.peak_bytes - before < 200 * 2**20
    app.check_page()


def test_bodies_of_millions_of_values_are_refused_and_not_kept(app: Server) -> None:
    before = app.peak_bytes
    body = b'{"model":"turnfold","messages":[],"x":[' + b"[]," * (32 * 2**20 // 3 - 20) + b"[]]}"
    with ThreadPoolExecutor(3) as pool, app.http() as http:
        asked = [pool.submit(http.post, "/v1/chat/completions", content=body) for _ in range(3)]
        refusals = [answer.result() for answer in asked]
    assert [answer.json()["error"]["code"] for answer in refusals] == ["request_too_large"] * 3
    assert app.peak_bytes - before < 200 * 2**20
    app.check_page()


def test_broken_json_is_refused(app: Server) -> None:
    with app.http() as http:
        for path in ("/chat", "/v1/chat/completions", "/v1/summarize"):
            for body in (b"{", b"\xff\xfe", b'{"message":NaN}', b"[" * 1_000_000, b'{"a":' * 100_000, b"\x00"):
                answer = http.post(path, content=body)
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_json"), path


async def _begin(port: int, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    await writer.drain()
    return reader, writer


@pytest.mark.slow
@pytest.mark.parametrize("start", [b"", b"POST /chat HTTP/1.1\r\nX-Name: "], ids=["silent", "half a head"])
def test_under_a_thousand_idle_connections_page_and_door_answer(app: Server, start: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(connected(app.port)).sendall(start)
        app.check_page()
        with app.http() as http:
            told = read(http.post("/chat", json={"message": question(1)}).content)
    assert told[-1].data == "[DONE]"


@pytest.mark.slow
def test_under_a_thousand_slow_bodies_page_and_door_answer(app: Server) -> None:
    turns = app.rows("SELECT count(*) FROM turn")
    with ExitStack() as stack:
        for number in range(CONNECTIONS):
            slow = head("POST", "/chat", "Content-Length: 1000", token=NAMES[1 + number % 15]) + b'{"mess'
            stack.enter_context(connected(app.port)).sendall(slow)
        app.check_page()
        with app.http() as http:
            told = read(http.post("/chat", json={"message": question(1)}).content)
    assert told[-1].data == "[DONE]"
    assert app.rows("SELECT count(*) FROM turn") == [(turns[0][0] + 1,)]  # type: ignore[operator]  # a number


@pytest.mark.slow
def test_a_thousand_streams_of_one_turn_all_end_with_it(app: Server, endpoint: FakeOpenAI) -> None:
    endpoint.script(hang("모두가 "), to="천 명이 듣습니다")
    with app.http() as http, http.stream("POST", "/chat", json={"message": "천 명이 듣습니다"}) as sent:
        session_id = sent.headers["x-turnfold-session"]

        async def follow() -> list[bytes]:
            path = f"/chat/{session_id}/events"
            opened = [
                await _begin(app.port, head("GET", path, "Connection: close", token=NAMES[number % 16]))
                for number in range(CONNECTIONS)
            ]
            started = [await reader.readuntil("모두가".encode()) for reader, _ in opened]
            await asyncio.to_thread(app.check_page)
            stopped = await asyncio.to_thread(http.post, f"/sessions/{session_id}/stop")
            assert stopped.status_code < 300
            rest = await asyncio.gather(*(reader.read() for reader, _ in opened))
            for _, writer in opened:
                writer.close()
            return [start + end for start, end in zip(started, rest, strict=True)]

        bodies = asyncio.run(follow())
    assert len(bodies) == CONNECTIONS
    assert all(b"event: turn_stopped" in body and b"data: [DONE]" in body for body in bodies)


def test_a_program_with_too_many_streams_is_told_so(app: Server, endpoint: FakeOpenAI) -> None:
    asked = endpoint.script(hang("많은 "), to="너무 많은 사람")
    with app.http() as http, http.stream("POST", "/chat", json={"message": "너무 많은 사람"}) as sent:
        path = f"/chat/{sent.headers['x-turnfold-session']}/events"
        with ExitStack() as stack:
            opened: list[socket.socket] = []
            for _ in range(64):
                opened.append(stack.enter_context(connected(app.port)))
                opened[-1].sendall(head("GET", path, token=NAMES[0]))
            starts = [connection.recv(12) for connection in opened]
        assert starts.count(b"HTTP/1.1 429") == 1
        assert starts.count(b"HTTP/1.1 200") == 63
        endpoint.wait_until(lambda _: asked.is_asked_for)
        http.post(f"/sessions/{sent.headers['x-turnfold-session']}/stop")
