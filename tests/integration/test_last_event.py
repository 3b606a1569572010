from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from graph.error import NotFoundError
from graph.event import TurnFinished
from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.model.summariser import Summariser
from graph.settings import Settings
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.scripted_model import ScriptedChat, ScriptedModels, ScriptedSummariser


class HeldModels(ScriptedModels):
    """Which model summarises is told only when the test lets it, as if an endpoint had to be asked for it."""

    def __init__(self, settings: Settings, caller: ModelCaller, gate: threading.Event) -> None:
        super().__init__(settings, caller, ScriptedChat(), ScriptedSummariser())
        self.gate = gate
        self.is_asked = threading.Event()

    def summariser(self, name: str) -> Summariser:
        self.is_asked.set()
        assert self.gate.wait(60)
        return super().summariser(name)


def test_an_answer_that_is_out_waits_for_no_look_at_the_folds(open_chat: OpenChat) -> None:
    gate, made = threading.Event(), list[HeldModels]()

    @contextmanager
    def held(settings: Settings) -> Iterator[ChatModels]:
        with ModelCaller() as caller:
            made.append(HeldModels(settings, caller, gate))
            yield made[0]

    chat = open_chat(concurrent_turns=1, models=held)
    other = Chat(chat.service)
    for number in (1, 2, 3):
        # The third answer makes a fold due: whoever is to make it can't be told now.
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
    assert made[0].is_asked.wait(30)
    assert chat.service.turns.live(chat.session_id) is None
    assert not chat.view.is_running
    assert isinstance(other.say(question(1))[-1], TurnFinished)
    gate.set()
    chat.wait_for_folds()
    assert chat.rows("SELECT turns FROM record WHERE status = 'COMPLETED'") == [("[1,2,3]",)]


def test_nothing_of_a_deleted_session_is_kept_in_memory(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    chat.service.sessions.delete(chat.session_id)
    with pytest.raises(NotFoundError):
        list(chat.service.turns.follow(chat.session_id, timeout_seconds=1))
    service = chat.service
    assert service._access.runner.log(chat.session_id) is None  # noqa: SLF001  # nobody else can see that it grows
    assert len(server.bodies("chat")) == 2
