"""What ends a call is silence, not its length; whatever comes over the wire is a sign of life."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from graph.model.factory import open_models
from graph.model.loop import Phase
from graph.value.error import DeadlineError, SilenceError
from graph.value.event import InputRead, TokenDelta, TurnFinished, TurnStarted
from graph.worker.turn_log import TurnLog
from tests.fake.chat import question
from tests.fake.model_caller import Caller, settings_of
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Reply, bare, chunk, hang, raw, slowed, text
from tests.fake.openai_server import FakeOpenAI

SILENCE_SECONDS = 0.5
# A third of the silence that ends a call, so that the load of a machine doesn't.
PAUSE_SECONDS = 0.17
END = f"data: {chunk({}, finish_reason='stop')}\n\ndata: [DONE]\n\n"


@pytest.fixture
def call(server: FakeOpenAI) -> Iterator[Caller]:
    """A caller whose clock runs 240 times as fast: 120 s of silence are half a second."""
    settings = settings_of(server).model_copy(update={"model_silence_seconds": SILENCE_SECONDS})
    with open_models(settings) as models:
        yield Caller(server, models)


LIFE = {
    "words": text(*[f"w{number} " for number in range(9)], usage=None),
    "thoughts": raw(
        *[chunk({"reasoning_content": "hm"})] * 9, chunk({"content": "done"}), chunk({}, finish_reason="stop")
    ),
    "parts of a call": raw(
        chunk({"content": "calling"}),
        *[chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": " "}}]})] * 9,
        chunk({}, finish_reason="tool_calls"),
    ),
    "comments": bare(*[": ping\n\n"] * 9, f"data: {chunk({'content': 'done'})}\n\n", END),
    "half an event": bare(*"data: ", chunk({"content": "done"}), "\n\n", END),
    "progress": raw(
        *[json.dumps({"choices": [], "prompt_progress": {"total": 900, "processed": 100 * n}}) for n in range(9)],
        chunk({"content": "done"}),
        chunk({}, finish_reason="stop"),
    ),
}


@pytest.mark.parametrize("reply", LIFE.values(), ids=LIFE)
def test_an_answer_that_takes_three_times_the_longest_silence_is_whole(call: Caller, reply: Reply) -> None:
    call.server.script(slowed(reply, PAUSE_SECONDS))
    answer = call(deadline_seconds=None)
    assert answer.message.text.strip().endswith(("w8", "done", "calling"))


@pytest.mark.parametrize("reply", [hang(is_silent=True), hang(), hang("half of")])
def test_silence_ends_a_call_and_closes_its_connection(call: Caller, reply: Reply) -> None:
    call.server.script(reply)
    with pytest.raises(SilenceError) as raised:
        call(deadline_seconds=None, attempts=3)
    assert (raised.value.code, raised.value.detail) == ("silence", "0.5")
    call.server.wait_until(lambda server: server.exchanges[0].is_closed_early)
    assert len(call.server.exchanges) == 1


def test_a_cap_ends_a_call_that_is_not_silent(call: Caller) -> None:
    call.server.script(replace(LIFE["words"], pause_seconds=PAUSE_SECONDS))
    with pytest.raises(DeadlineError) as raised:
        call(deadline_seconds=0.7)
    assert (raised.value.code, raised.value.detail) == ("deadline", "0.7")
    assert call.heard


def test_phases_are_told_in_their_order_and_once_each(call: Caller) -> None:
    progress = LIFE["progress"].events[4:6]
    thoughts = [chunk({"reasoning": "hm"})] * 2
    call.server.script(raw(*progress, *thoughts, *text("a", "b", usage=None).events))
    phases: list[Phase] = []
    call.models.caller.call(
        call.models.chat("m"), call.input, stop=call.stop, deadline_seconds=None, attempts=1, on_phase=phases.append
    )
    assert phases == [
        Phase("waiting"),
        Phase("reading", 400, 900),
        Phase("reading", 500, 900),
        Phase("thinking"),
        Phase("answering"),
    ]


def test_turn_that_takes_longer_than_the_longest_silence_is_answered_whole(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.script(slowed(raw(*LIFE["progress"].events[4:6], *LIFE["thoughts"].events), PAUSE_SECONDS))
    chat = open_chat(model_silence_seconds=SILENCE_SECONDS, model_deadline_seconds=None)
    events = chat.say(question(1))
    assert [event for event in events if isinstance(event, InputRead)] == [InputRead(400, 900), InputRead(500, 900)]
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].text == "done"


def test_page_is_told_how_much_is_read_until_the_answer_begins() -> None:
    log = TurnLog(1, 1)
    seen = []
    for event in (TurnStarted("s", 1, 1), InputRead(400, 900), InputRead(900, 900), TokenDelta("a")):
        log.append(event)
        seen.append((log.view().phase, log.view().phase_percent))
    assert seen == [("waiting", 0), ("reading", 44), ("reading", 100), ("answering", 100)]
