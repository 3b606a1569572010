"""A long chat in which one early turn, not drawn at first, says what is looked for later."""

from __future__ import annotations

from graph.service import ChatService
from tests.fake.chat import Chat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI


def told_chat(service: ChatService, endpoint: FakeOpenAI, turns: int) -> Chat:
    """The second turn names the parachute, and no other does."""
    chat = Chat(service)
    for number in range(1, turns + 1):
        told = "암호는 낙하산입니다." if number == 2 else f"{number}째 기억할 말입니다. " * 10
        endpoint.script(text(f"{number}째 기억할 답입니다. " * 10), to=told)
        chat.say(told)
        chat.wait_for_folds()
    return chat
