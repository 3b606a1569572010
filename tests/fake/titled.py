"""Reads how the title of a chat came about, and waits for it."""

from __future__ import annotations

from graph.value.event import TurnFinished
from tests.fake.chat import Chat, question
from tests.fake.openai_server import FakeOpenAI


def tries(chat: Chat) -> list[tuple[int | None, str]]:
    """What was asked for a title of this session, in order: how many tokens came back, and the error."""
    query = "SELECT usage_output_tokens, error_code FROM model_call WHERE kind = 'title' AND session_id = ?"
    return [(row[0], row[1]) for row in chat.rows(f"{query} ORDER BY ordinal", chat.session_id)]


def wait_for_tries(chat: Chat, count: int) -> None:
    chat.wait_until(lambda: len(tries(chat)) == count)


def source_of(chat: Chat) -> str:
    return str(chat.rows("SELECT title_source FROM session WHERE session_id = ?", chat.session_id)[0][0])


def asked_count(server: FakeOpenAI, words: str = "") -> int:
    """How often a title was asked for, of turns with these words."""
    return len(server.bodies("title", to=words))


def wait_for_others(chat: Chat, owner: str = "local") -> None:
    """Waits until another chat, begun now, has its title, and nothing is being made for this one."""
    other = Chat(chat.service.for_owner(owner))
    for number in (501, 502):
        assert isinstance(other.say(question(number))[-1], TurnFinished)
    other.wait_until(lambda: source_of(other) == "model")
    wait_for_title(chat)


def wait_for_title(chat: Chat) -> None:
    """Waits until no title is being made for this chat, if any ever is."""
    if (titles := chat.service._engine.titles) is not None:  # noqa: SLF001  # nobody but a test has to know
        chat.wait_until(lambda: titles.is_idle(chat.session_id))
