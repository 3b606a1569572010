"""The server that is attacked: the product as its users run it, in a process of its own on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.fake.openai_reply import Body, Reply, hang, text
from tests.fake.openai_responder import answer_body, asked_in
from tests.fake.openai_server import FakeOpenAI
from tests.fake.port import free_port
from tests.fake.postgres import PostgresServer
from tests.fake.served_app import ask_health

ROOT: Final = Path(__file__).parents[2]
ATTACKER: Final = "token-of-an-attacker-0123456789"  # of these servers alone, as the next one
OTHER: Final = "token-of-somebody-else-012345678"
COOKIE_SECRET: Final = "secret-of-these-cookies-0123456789"  # noqa: S105  # of these servers alone
ISSUER: Final = "http://127.0.0.1:9"  # of no provider: who signs in has a cookie made here
LEASE_SECONDS: Final = 6.0
# A question that begins so is answered at the pace of a model, for so many seconds, or not to the end.
TIMED: Final = "ask-"
LONG: Final = "long-"
HANGING: Final = "hang-"
LONG_SECONDS: Final = 8.0
_PIECES: Final = 40
_WORDS: Final = "The plan stays as it is, the budget is 1,200 euros, and the tests come first."


@dataclass
class Target:
    """A server, and what is known of it.

    Attributes:
        folder: All that it writes.
        settings: What it was started with.
        endpoint: The scripted model behind it.
        database: Its Postgres, if it has one.
    """

    process: subprocess.Popen[bytes]
    port: int
    folder: Path
    settings: Mapping[str, str]
    endpoint: FakeOpenAI
    database: PostgresServer | None = None
    is_warm: bool = field(default=False, init=False)

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def project(self) -> Path:
        """The project that its chats may choose."""
        return self.folder / "project"

    @property
    def log(self) -> Path:
        """What it has said."""
        return self.folder / "log"

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.process.poll() is None

    def kill(self) -> None:
        """Ends its process, by its id and at once."""
        self.process.kill()
        self.process.wait()


@contextmanager
def started(
    folder: Path, endpoint: FakeOpenAI, *, has_sign_in: bool = False, database: PostgresServer | None = None
) -> Iterator[Target]:
    """Runs a server in a new folder while the block runs, with no other settings than these."""
    port = free_port()
    url = {"CHAT_DATABASE_URL": database.make_database()} if database else {}
    settings = {
        "OPENAI_BASE_URL": endpoint.url,
        "OPENAI_API_KEY": "sk-attacked",
        "CHAT_MODEL": "scripted-model",
        "MODEL_WINDOW_TOKENS": "1000000",
        "AUTO_TITLES": "false",
        "CHAT_API_TOKENS": f"attacker:mallory:{ATTACKER},other:bob:{OTHER}",
        "LEASE_SECONDS": f"{LEASE_SECONDS:g}",
        "HEARTBEAT_SECONDS": "2",
        **url,
        **(sign_in_settings(f"http://127.0.0.1:{port}") if has_sign_in else {}),
    }
    with running(folder, settings, port) as process:
        yield Target(process, port, folder, settings, endpoint, database)


@contextmanager
def running(folder: Path, settings: Mapping[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server with these settings and waits until it answers."""
    for name in ("project", "tmp"):
        (folder / name).mkdir(parents=True)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    own = {
        "TURNFOLD_DATA_DIR": str(folder / "data"),
        "PROJECT_ROOTS": str(folder / "project"),
        "TMPDIR": str(folder / "tmp"),
    }
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    options = ["--server.headless=true", f"--server.port={port}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # the product itself
            [*command, *options], cwd=ROOT, env={**kept, **settings, **own}, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        ask_health(port, process)
        yield process
    finally:
        process.kill()
        process.wait()


def sign_in_settings(origin: str) -> dict[str, str]:
    """Returns what turns the sign-in of a server on."""
    return {
        "OIDC_ISSUER": ISSUER,
        "OIDC_CLIENT_ID": "turnfold",
        "OIDC_CLIENT_SECRET": "secret-of-the-client",
        "TURNFOLD_ORIGIN": origin,
        "STREAMLIT_SERVER_COOKIE_SECRET": COOKIE_SECRET,
    }


@contextmanager
def model(turn_seconds: float) -> Iterator[FakeOpenAI]:
    """Serves the model behind the servers; `answer_to` says what it answers to a timed question."""

    def answer(body: Body) -> Reply:
        asked = asked_in(body)
        if asked.startswith(HANGING):
            return hang("I begin, and ")
        if not asked.startswith((TIMED, LONG)):
            return answer_body(body)
        seconds = LONG_SECONDS if asked.startswith(LONG) else turn_seconds
        whole = answer_to(asked)
        size = -(-len(whole) // _PIECES)
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        return text(*pieces, pause_seconds=seconds / _PIECES)

    with FakeOpenAI() as endpoint:
        endpoint.respond_with(answer)
        yield endpoint


def answer_to(question: str) -> str:
    """Returns the whole answer to a timed question."""
    name = question.split(maxsplit=1)[0]
    return f"begin-{name} {' '.join([_WORDS] * 8)} end-{name}"


def bearer(token: str) -> dict[str, Any]:
    """Returns the header of a program with this token."""
    return {"Authorization": f"Bearer {token}"}
