from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

import pytest

from prompt.system.framing import Language
from tests.fake.chat import Chat
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.open_chat import OpenChat
from tests.fake.served_programs import TOKEN, ServedPrograms

pytestmark = pytest.mark.slow
DOCS: Final = Path(__file__).parents[2] / "docs"
GUIDES: Final[dict[Language, tuple[str, str]]] = {
    "ko": ("api.ko.md", "api-clients.ko.md"),
    "en": ("api.md", "api-clients.md"),
}
READMES: Final[dict[Language, str]] = {"ko": "README.ko.md", "en": "README.md"}
BUDGET: Final[dict[Language, str]] = {"ko": "120만", "en": "1200"}
CLIENTS: Final = ("openai", "Responses", "LangChain")
SERVER: Final = "http://localhost:8501"
LANGUAGES: Final = pytest.mark.parametrize("language", get_args(Language))
_CURL: Final = 'curl() { command curl --fail --silent --show-error "$@"; }\n'


@pytest.fixture
def chat(open_chat: OpenChat) -> Chat:
    return open_chat(**KEYLESS, models=models_without_pauses)


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedPrograms]:
    with ServedPrograms(chat.service) as served:
        yield served


def guide(language: Language) -> str:
    return "".join((DOCS / name).read_text(encoding="utf-8") for name in GUIDES[language])


def pasted_from(text: str) -> list[tuple[str, str]]:
    """The lines to paste, each with its language."""
    return re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)


def programs(language: Language) -> dict[str, str]:
    """The Python of each section that has some."""
    parts = {part.partition("\n")[0]: pasted_from(part) for part in guide(language).split("\n## ")}
    found = {title: [text for name, text in blocks if name == "python"] for title, blocks in parts.items()}
    return {title: "\n".join(texts) for title, texts in found.items() if texts}


def pasted(command: list[str], text: str, served: ServedPrograms, session_id: str = "") -> str:
    """Runs lines of the guide against this server; returns what they print."""
    environment = {**os.environ, "CHAT_API_TOKEN": TOKEN, "SESSION": session_id, "PYTHONIOENCODING": "utf-8"}
    lines = [*command, text.replace(SERVER, served.url)]
    said = subprocess.run(lines, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 0, said.stderr
    return said.stdout


@LANGUAGES
def test_the_guide_s_programs_get_their_answers_from_memory(
    chat: Chat, served: ServedPrograms, language: Language
) -> None:
    found = programs(language)
    assert len(found) == len(CLIENTS)
    for client in CLIENTS:
        (text,) = [text for title, text in found.items() if client in title]
        printed = pasted([sys.executable, "-c"], text, served)
        assert BUDGET[language] in printed
        if client == "openai":
            assert "history {'session': " in printed
            assert [session.turn_count for session in chat.service.sessions.list()] == [4]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this computer")
@LANGUAGES
def test_the_guide_s_lines_for_the_shell_are_answered(chat: Chat, served: ServedPrograms, language: Language) -> None:
    session_id = ""
    blocks = [text for name, text in pasted_from(guide(language)) if name in ("sh", "bash")]
    for text in [block for block in blocks if block.startswith("curl")]:
        assert pasted(["bash", "-c"], _CURL + text, served, session_id)
        session_id = session_id or chat.service.sessions.list()[0].session_id
    (session,) = chat.service.sessions.list()
    assert session.turn_count == 3
    assert BUDGET[language] in chat.service.turns.transcript(session_id, last=2).turns[0].answer_text
    # Each figure of an answer is named.
    body = {"model": "turnfold", "messages": [{"role": "user", "content": "My budget is 1200 euros."}]}
    with served.client() as client:
        answer = client.post("/v1/chat/completions", json=body).json()
    assert [name for name in answer["turnfold"] if f"`{name}`" not in guide(language)] == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl on this computer")
@LANGUAGES
def test_the_first_lines_show_the_token_that_the_server_gets(language: Language) -> None:
    readme = (DOCS.parent / READMES[language]).read_text(encoding="utf-8")
    blocks = [text for name, text in pasted_from(guide(language) + readme) if name == "sh" and "make run" in text]
    blocks = [text for text in blocks if "CHAT_API_TOKEN" in text]
    assert len(blocks) == len(("guide", "README"))
    for text in blocks:
        lines = ["bash", "-c", f"make() {{ printenv CHAT_API_TOKEN; }}\n{text}"]
        shown, received = subprocess.run(lines, capture_output=True, text=True, timeout=60, check=True).stdout.split()
        assert shown == received
