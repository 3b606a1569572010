"""The server that is attacked, the model behind it, and what is asked of them."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.server import started
from tests.fake.openai_reply import Body, Reply, ScriptedCall, hang, text, tools
from tests.fake.openai_responder import answer_body, asked_in
from tests.fake.openai_server import FakeOpenAI
from tests.fake.port import free_port
from tests.fake.postgres import PostgresServer

ATTACKER = "token-of-an-attacker-0123456789"  # of these servers alone, as the next one
OTHER = "token-of-somebody-else-012345678"
LEASE_SECONDS = 6.0
# A question that begins so is answered at the pace of a model, for so many seconds, or not to the end.
TIMED = "ask-"
LONG = "long-"
HANGING = "hang-"
# To this one the tool of that name is called first.
TOOL = "tool-"
LONG_SECONDS = 8.0
_PIECES = 40
_numbers = itertools.count(1)
_WORDS = "The plan stays as it is, the budget is 1,200 euros, and the tests come first."


@dataclass
class Target:
    """A server, with the scripted model and the Postgres behind it; all that it writes is in its folder."""

    process: subprocess.Popen[bytes]
    port: int
    folder: Path
    settings: Mapping[str, str]
    endpoint: FakeOpenAI
    database: PostgresServer | None = None
    is_warm: bool = field(default=False, init=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def target(
    folder: Path,
    endpoint: FakeOpenAI,
    *,
    has_sign_in: bool = False,
    database: PostgresServer | None = None,
    servers_in: Callable[[Path], Path] | None = None,
) -> Iterator[Target]:
    """Runs a server in a new folder while the block runs; `servers_in` writes the file of its servers of tools."""
    port = free_port()
    for name in ("project", "tmp"):
        (folder / name).mkdir(parents=True)
    settings = {
        "OPENAI_BASE_URL": endpoint.url,
        "MODEL_SLOTS": "1000",
        "OPENAI_API_KEY": "sk-attacked",
        "CHAT_MODEL": "scripted-model",
        "MODEL_WINDOW_TOKENS": "1000000",
        "AUTO_TITLES": "false",
        "CHAT_API_TOKENS": f"attacker:mallory:{ATTACKER},other:bob:{OTHER}",
        "LEASE_SECONDS": f"{LEASE_SECONDS:g}",
        "HEARTBEAT_SECONDS": "2",
        "PROJECT_ROOTS": str(folder / "project"),
        "TMPDIR": str(folder / "tmp"),
    }
    if servers_in:
        settings |= {
            "MCP_SERVERS": str(servers_in(folder)),
            "CHAT_API_TOKENS": f"attacker:mallory:{ATTACKER}:wild__*,other:bob:{OTHER}:notes__*",
            "TURNS_PER_MINUTE": "100000",
        }
    if database:
        settings["CHAT_DATABASE_URL"] = database.make_database()
    if has_sign_in:
        settings |= {
            "OIDC_ISSUER": "http://127.0.0.1:9",
            "OIDC_CLIENT_ID": "turnfold",
            "OIDC_CLIENT_SECRET": "secret-of-the-client",
            "TURNFOLD_ORIGIN": f"http://127.0.0.1:{port}",
            "STREAMLIT_SERVER_COOKIE_SECRET": "secret-of-these-cookies-0123456789",
        }
    with started(folder, settings, port=port) as app:
        yield Target(app.process, port, folder, settings, endpoint, database)


@contextmanager
def model(turn_seconds: float) -> Iterator[FakeOpenAI]:
    """Serves the model behind the servers; `answer_to` says what it answers to a timed question."""

    def answer(body: Body) -> Reply:
        asked = asked_in(body)
        if asked.startswith(TOOL) and body["messages"][-1]["role"] != "tool":
            name = asked.split(maxsplit=1)[0].removeprefix(TOOL)
            return tools(ScriptedCall(name, '{"subject": "budget"}', f"call-{next(_numbers)}"))
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
