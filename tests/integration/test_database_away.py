"""What becomes of a turn whose database is away for a while, or whose lease runs out meanwhile."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio.to_thread
import pytest
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import StructuredTool
from pydantic import PrivateAttr

from graph.value.event import Event, TurnFailed, TurnFinished, TurnStopped
from tests.fake.chat import Chat, question, text_of
from tests.fake.open_chat import OpenChat
from tests.fake.outage import Outage
from tests.fake.scripted_model import ScriptedAnswer, ScriptedChat, ScriptedSummariser, scripted_models

pytestmark = pytest.mark.both_engines

HEARD, MORE = "먼저 복제하고, ", "그다음에 옮깁니다."
PIECES = [HEARD, MORE]
EXPIRED = "UPDATE lease SET expires_at = NULL"


class GatedChat(ScriptedChat):
    """Goes on behind the first words of an answer once it may."""

    _gate: threading.Event = PrivateAttr(default_factory=threading.Event)

    def go_on(self) -> None:
        self._gate.set()

    async def _astream(self, *sent: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:  # noqa: ANN401  # handed on as they came
        async for chunk in super()._astream(*sent, **kwargs):
            yield chunk
            await anyio.to_thread.run_sync(self._gate.wait, abandon_on_cancel=True)


@pytest.fixture
def model() -> Iterator[GatedChat]:
    model = GatedChat()
    yield model
    model.go_on()  # or a test that fails waits for it


@pytest.fixture
def outage() -> Iterator[Outage]:
    outage = Outage()
    yield outage
    outage.end()


@pytest.fixture
def open_gated(open_chat: OpenChat, model: GatedChat, outage: Outage) -> Callable[..., Chat]:
    def look_up() -> str:
        return "120만 원"

    def open_gated(session_id: str = "") -> Chat:
        return open_chat(
            session_id,
            models=scripted_models(model, ScriptedSummariser()),
            stores=outage.stores,
            tools=[StructuredTool.from_function(look_up, name="look_up", description="Looks something up.")],
        )

    return open_gated


def begin(chat: Chat) -> Iterator[Event]:
    """Sends a question and returns the events of its turn, which has said its first words."""
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == HEARD)
    return chat.service.turns.follow(chat.session_id, timeout_seconds=60)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([ScriptedAnswer(PIECES)], ""),
        ([ScriptedAnswer(PIECES, tool="look_up"), ScriptedAnswer(["모두 120만 원입니다."])], ""),
        ([ScriptedAnswer(PIECES, ending="fail")], "provider"),
    ],
    ids=["answer", "tool", "failure"],
)
def test_what_was_said_while_the_database_was_away_is_kept_and_the_turn_ends_as_it_would_have(
    open_gated: Callable[..., Chat], model: GatedChat, outage: Outage, said: list[ScriptedAnswer], code: str
) -> None:
    model.script(*said)
    chat = open_gated()
    events = begin(chat)
    outage.begin()
    model.go_on()
    outage.wait_for(5)  # more than a turn asks for that doesn't wait
    outage.end()
    told = list(events)
    assert isinstance(told[-1], TurnFailed if code else TurnFinished), told[-1]
    assert (chat.last_turn.status, chat.last_turn.error_code) == ("failed" if code else "finished", code)
    assert chat.last_turn.answer_text == text_of(told)
    assert text_of(told).startswith("".join(PIECES))
    assert isinstance(chat.say(question(2))[-1], TurnFinished)


def test_what_was_committed_though_nobody_heard_of_it_is_written_once(
    open_gated: Callable[..., Chat], model: GatedChat, outage: Outage
) -> None:
    model.script(ScriptedAnswer(PIECES, tool="look_up"), ScriptedAnswer(["모두 120만 원입니다."]))
    chat = open_gated()
    events = begin(chat)
    outage.begin(is_mute=True)
    model.go_on()
    outage.wait_for(5)
    outage.end()
    assert isinstance(list(events)[-1], TurnFinished)
    assert chat.rows("SELECT ordinal FROM model_call ORDER BY ordinal") == [(1,), (2,)]
    assert [step.name for step in chat.last_turn.steps] == ["look_up"]
    assert len(model.inputs) == 2


def test_server_that_ends_while_its_database_is_away_keeps_what_its_turns_have_said(
    open_gated: Callable[..., Chat], model: GatedChat, outage: Outage
) -> None:
    model.script(ScriptedAnswer(PIECES, ending="hang"))
    chat = open_gated()
    events = begin(chat)
    outage.begin()
    model.go_on()
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(chat.close)
        outage.wait_for(5)
        outage.end()
        told = list(events)
        closing.result(60)
    assert isinstance(told[-1], TurnStopped), told[-1]
    later = open_gated(chat.session_id)
    assert (later.last_turn.status, later.last_turn.answer_text) == ("stopped", text_of(told).strip())


def test_turn_that_has_said_nothing_does_not_wait_for_a_database_that_is_away(
    open_gated: Callable[..., Chat], model: GatedChat, outage: Outage
) -> None:
    model.script(ScriptedAnswer(ending="hang"))
    chat = open_gated()
    chat.start(question(1))
    chat.wait_until(lambda: bool(model.inputs))
    events = chat.service.turns.follow(chat.session_id, timeout_seconds=60)
    outage.begin()
    chat.close()
    assert list(events)[-1] == TurnFailed(1, "database_unreachable", "Outage")


@pytest.mark.parametrize("is_taken", [False, True])
def test_turn_whose_lease_ran_out_ends_as_lost_only_if_another_server_took_its_session(
    open_gated: Callable[..., Chat], model: GatedChat, *, is_taken: bool
) -> None:
    model.script(ScriptedAnswer(PIECES), ScriptedAnswer(["다른 서버의 답."]))
    chat = open_gated()
    events = begin(chat)
    chat.change(EXPIRED)
    if is_taken:
        there = open_gated(chat.session_id)
        there.start(question(2))
    model.go_on()
    ending = list(events)[-1]
    if is_taken:
        assert ending == TurnFailed(1, "lease_lost", "")
        assert isinstance(there.events()[-1], TurnFinished)
        assert [(turn.status, turn.error_code) for turn in chat.turns] == [("failed", "interrupted"), ("finished", "")]
        assert chat.turns[0].answer_text in ("", HEARD.strip())
    else:
        assert isinstance(ending, TurnFinished)
        assert chat.last_turn.answer_text == "".join(PIECES)
