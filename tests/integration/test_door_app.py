"""A chat of a real client through the whole server, which is killed between two requests."""

from __future__ import annotations

from pathlib import Path

from tests.fake.body import shape
from tests.fake.chat import question
from tests.fake.openai_server import FakeOpenAI
from tests.fake.real_client import OpenAIChat, Told
from tests.fake.served_app import ask_health, served

TOKEN = "token-of-an-editor-0123456789"  # noqa: S105  # of this test alone


def test_a_chat_goes_on_in_its_session_after_the_server_was_killed(server: FakeOpenAI, tmp_path: Path) -> None:
    messages: list[object] = []
    told: list[Told] = []
    for life in range(2):
        settings = {"CHAT_API_TOKENS": f"editor:kim:{TOKEN}", "MODEL_WINDOW_TOKENS": "100000"}
        with served("app.py", tmp_path / "data", server.url, tmp_path / f"log-{life}", **settings) as (process, port):
            assert ask_health(port, process) == (200, "ok")
            program = OpenAIChat(f"http://127.0.0.1:{port}/v1", token=TOKEN)
            program.messages = messages
            told += [program.ask(question(2 * life + number)) for number in (1, 2)]
    assert [(answer.turn, answer.matched) for answer in told] == [
        (1, "new"),
        (2, "history"),
        (3, "history"),
        (4, "history"),
    ]
    assert len({answer.session_id for answer in told}) == 1
    assert shape(server.bodies("chat")[-1])[-1] == 4
    assert len(server.bodies("chat")) == 4
