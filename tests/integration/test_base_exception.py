from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import PrivateAttr

from graph.event import TurnFailed, TurnFinished, TurnStopped
from graph.record import ArchivedMessage
from graph.settings import Settings
from graph.store.archive import Archive
from graph.store.database import Lease
from graph.store.stores import Stores, open_stores
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.scripted_model import ScriptedChat, ScriptedSummariser, scripted_models

# What ends a thread, a loop or a task wherever nobody looks for it.
ENDINGS = [SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()]


class EndingChat(ScriptedChat):
    """Raises once, in the middle of its first answer."""

    _ending: BaseException | None = PrivateAttr()

    def __init__(self, ending: BaseException) -> None:
        super().__init__()
        self._ending = ending

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401  # the base class's signature
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
            yield chunk
            ending, self._ending = self._ending, None
            if ending is not None:
                raise ending


class EndingArchive(Archive):
    """Raises at the appends that a test names, by their number."""

    endings: deque[BaseException | None]

    def append(
        self,
        lease: Lease,
        *,
        owner: str,
        turn: int,
        attempt: int,
        messages: Sequence[AnyMessage],
    ) -> list[ArchivedMessage]:
        ending = self.endings.popleft() if self.endings else None
        if ending is not None:
            raise ending
        return super().append(lease, owner=owner, turn=turn, attempt=attempt, messages=messages)


def ending_stores(*endings: BaseException | None) -> Callable[[Settings, Callable[[], datetime]], Any]:
    @contextmanager
    def opened(settings: Settings, clock: Callable[[], datetime]) -> Iterator[Stores]:
        with open_stores(settings, clock) as stores:
            archive = EndingArchive(stores.database, clock=clock)
            archive.endings = deque(endings)
            yield replace(stores, archive=archive)

    return opened


def ending_tool(ending: BaseException) -> BaseTool:
    def look_up() -> str:
        raise ending

    return StructuredTool.from_function(look_up, name="look_up", description="Looks something up.")


def check_goes_on(chat: Chat, caplog: pytest.LogCaptureFixture, code: str = "internal") -> None:
    """The one place of the server and the session are free at once, and the turn is told as failed."""
    assert (chat.last_turn.status, chat.last_turn.error_code) == ("failed", code)
    assert chat.service.turns.live(chat.session_id) is None
    assert "ended by a defect" in caplog.text
    assert isinstance(chat.retry()[-1], TurnFinished)
    assert isinstance(chat.say(question(2))[-1], TurnFinished)
    assert isinstance(Chat(chat.service).say(question(1))[-1], TurnFinished)
    chat.service.sessions.delete(chat.session_id)


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_a_model_that_ends_its_thread_ends_its_turn_alone(
    open_chat: OpenChat, caplog: pytest.LogCaptureFixture, ending: BaseException
) -> None:
    models = scripted_models(EndingChat(ending), ScriptedSummariser())
    chat = open_chat(concurrent_turns=1, models=models)
    assert isinstance(chat.say(question(1))[-1], TurnFailed)
    check_goes_on(chat, caplog)


def test_a_model_that_cancels_itself_ends_its_turn_alone(open_chat: OpenChat) -> None:
    models = scripted_models(EndingChat(asyncio.CancelledError()), ScriptedSummariser())
    chat = open_chat(concurrent_turns=1, models=models)
    assert isinstance(chat.say(question(1))[-1], TurnFailed | TurnStopped)
    assert isinstance(chat.say(question(2))[-1], TurnFinished)


@pytest.mark.parametrize("ending", ENDINGS, ids=repr)
def test_a_tool_that_ends_its_thread_ends_no_turn(
    open_chat: OpenChat, server: FakeOpenAI, ending: BaseException
) -> None:
    server.script(tools(ScriptedCall("look_up", "{}", "call-1")))
    chat = open_chat(concurrent_turns=1, tools=[ending_tool(ending)])
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert [step.status for step in chat.last_turn.steps] == ["error"]
    assert isinstance(chat.say(question(2))[-1], TurnFinished)


@pytest.mark.parametrize("ending", ENDINGS, ids=repr)
def test_a_node_that_ends_its_thread_ends_its_turn_alone(
    open_chat: OpenChat, caplog: pytest.LogCaptureFixture, ending: BaseException
) -> None:
    chat = open_chat(concurrent_turns=1, stores=ending_stores(ending))
    assert chat.say(question(1))[-1] == TurnFailed(1, "internal", "")
    check_goes_on(chat, caplog)


def test_a_turn_that_cannot_even_be_closed_frees_its_session(
    open_chat: OpenChat, caplog: pytest.LogCaptureFixture
) -> None:
    stores = ending_stores(SystemExit(1), SystemExit(2))
    chat = open_chat(concurrent_turns=1, stores=stores)
    assert chat.say(question(1))[-1] == TurnFailed(1, "internal", "")
    assert "could not be closed" in caplog.text
    check_goes_on(chat, caplog, "interrupted")
