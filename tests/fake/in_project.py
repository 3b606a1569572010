"""Chats in a project whose context blocks a test scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graph.value.event import TurnFinished
from graph.value.view import TurnOptions
from tests.fake.body import HEADING, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.context_source import ScriptedContext
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI


def opened(open_chat: OpenChat, source: ScriptedContext, root: Path, session_id: str = "", **settings: Any) -> Chat:  # noqa: ANN401  # settings
    return open_chat(session_id, context=source, project_roots=(root.parent,), **settings)


def in_file(number: int, root: Path | None = None) -> TurnOptions:
    context = {"currentFile": f"/srv/file-{number}.py", "selection": f"{number}행"}
    return TurnOptions(context=context, project_root=None if root is None else str(root))


def ask(chat: Chat, first: int, last: int, root: Path | None = None) -> None:
    """Has turns of which each names another file; the first one chooses the project."""
    for number in range(first, last + 1):
        ending = chat.say(question(number), options=in_file(number, root if number == first else None))[-1]
        assert isinstance(ending, TurnFinished), ending
        chat.wait_for_folds()


def stable_part(body: Body) -> str:
    return HEADING.split(system_prompt(body), maxsplit=1)[0].rstrip("\n")


def answer_without_repeating(server: FakeOpenAI) -> None:
    """Has the endpoint answer with nothing of what it was sent, so that a block is only where the product put it."""
    server.respond_with(
        lambda body: text(f"{len(str(body))}자를 읽고 답합니다. " * 20) if is_chat(body) else answer_body(body)
    )


def is_chat(body: Body) -> bool:
    return kind_of(body) == "chat"
