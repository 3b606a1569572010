from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.chat import ChatWriter, EventId, parse_event_id
from api.completion_stream import CompletionHead
from graph.value.client import ClientUsage, CompletionEnd
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    CallRetried,
    ClientCall,
    Event,
    Folded,
    FoldWaiting,
    InputRead,
    LeftOut,
    ThoughtDelta,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
)
from graph.value.view import LiveTurn, ToolStep
from tests.fake.served_chat import DONE, ReceivedEvent, read, text_of

HEAD = CompletionHead("chatcmpl-1", 1_800_000_000, "turnfold")
END = CompletionEnd("stop", ClientUsage(3, 2, None), {"turn": 3, "matched": "header"})
TEXTS = st.text(st.characters(exclude_categories=()) | st.sampled_from("\n\r\0\x85\u2028\u2029\ud800가👩‍👩‍👧\u202e"))
EVENTS = st.lists(
    st.one_of(
        st.builds(TokenDelta, TEXTS),
        st.just(AnswerRestarted()),
        st.builds(Folded, TEXTS, st.just((1, 2, 3)), st.just(900), st.just(300)),
        st.builds(FoldWaiting, st.just((1, 2, 3))),
        st.builds(InputRead, st.just(1), st.just(2)),
        st.just(CallRetried("rate_limit", 2, 3, 0.5)),
        st.just(LeftOut(("records", "turns"))),
        st.builds(ToolStarted, TEXTS, TEXTS, TEXTS),
        st.builds(ToolFinished, TEXTS, TEXTS, TEXTS, st.booleans(), st.just(0.5), st.none() | st.just((1,))),
    ),
    max_size=12,
)
ENDINGS = st.one_of(
    st.builds(TurnFinished, st.just(3), TEXTS, TEXTS),
    st.builds(TurnStopped, st.just(3), TEXTS),
    st.builds(TurnFailed, st.just(3), st.sampled_from(["cut_stream", "internal", "no such code"]), TEXTS),
    st.builds(ActionRequired, st.just(3), TEXTS, TEXTS, st.builds(lambda each: (ClientCall(each, each, each),), TEXTS)),
)


def written(
    events: Sequence[Event], ending: Event, *, cuts: Sequence[int] = (), first_position: int = 1
) -> list[ReceivedEvent]:
    """What a client reads of a whole attempt, whose events came in batches."""
    writer = ChatWriter(HEAD, 3, 1, first_position)
    lines, begin = b"", 0
    for end in (*sorted(cuts), len(events)):
        lines += b"".join(writer.events(events[begin:end], begin, lambda count: seen(events[:count])))
        begin = end
    return read(lines + b"".join(writer.end(ending, END, len(events) + 1)))


def seen(events: Sequence[Event]) -> LiveTurn:
    """As the page would show it, with all text that stands."""
    text = ""
    for event in events:
        text = "" if isinstance(event, AnswerRestarted) else text + getattr(event, "text", "")
    return LiveTurn(3, 1, "answering", (), text, (), stop_requested=False)


def plain(text: str) -> str:
    return "".join("\ufffd" if each == "\0" or "\ud800" <= each <= "\udfff" else each for each in text)


@given(EVENTS, ENDINGS, st.data())
def test_a_client_reads_the_same_however_the_events_came(
    events: list[Event], ending: Event, data: st.DataObject
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=5))
    whole, parts = written(events, ending), written(events, ending, cuts=cuts)
    for received in (whole, parts):
        positions = [int(each.id.removeprefix("3.1.")) for each in received if each.data != DONE]
        assert positions == sorted(set(positions))
        assert positions[-2:] == [len(events) + 1, len(events) + 2]
        assert received[-1].data == DONE
    assert [each for each in whole if each.name] == [each for each in parts if each.name]
    assert text_of(whole) == text_of(parts) == plain(seen(events).text)


@given(TEXTS)
def test_no_text_ends_a_line_or_an_event(text: str) -> None:
    writer = ChatWriter(HEAD, 3, 1, 1)
    step = ToolStep(text, text, text, text, "done", 0.1)
    live = LiveTurn(3, 1, "tool", (), text, (step,), stop_requested=True)
    for lines in (
        writer.start({"conversationId": text}),
        writer.snapshot(live, 0),
        b"".join(writer.events([ToolStarted(text, text, text)], 0, lambda _: live)),
    ):
        assert lines.endswith(b"\n\n")
        for block in lines.decode().removesuffix("\n\n").split("\n\n"):
            for line in block.splitlines():
                assert line.startswith(("id: ", "event: ", "data: ", "retry: "))
    [received] = read(writer.snapshot(live, 0))
    assert received.value["text"] == received.value["steps"][0]["result"] == plain(text)


def test_thoughts_are_chunks_with_their_own_field_and_stay_where_a_turn_is_told_anew() -> None:
    writer = ChatWriter(HEAD, 3, 1, 1)
    thinking = LiveTurn(3, 1, "thinking", (), "", (), stop_requested=False, thoughts="Hm")
    events: list[Event] = [ThoughtDelta("H"), ThoughtDelta("m"), AnswerRestarted()]
    thought, restarted = read(b"".join(writer.events(events, 0, lambda _: thinking)))
    assert (thought.id, thought.value["choices"][0]["delta"]) == ("3.1.2", {"reasoning_content": "Hm"})
    assert restarted.value == {"text": "", "thoughts": "Hm"}
    [received] = read(writer.snapshot(thinking, 0))
    assert (received.value["phase"], received.value["thoughts"]) == ("thinking", "Hm")


def test_each_event_has_its_name_and_fields() -> None:
    received = written(
        [TurnStarted("s1", 3, 1), FoldWaiting((1, 2, 3)), TokenDelta("안"), TokenDelta("녕")], TurnStopped(3, "안")
    )
    assert received[:2] == [
        ReceivedEvent("3.1.1", "turn_started", '{"session_id":"s1","turn":3,"attempt":1}'),
        ReceivedEvent("3.1.2", "fold_waiting", '{"turns":[1,2,3]}'),
    ]
    assert (received[2].id, received[2].value["choices"][0]["delta"]) == ("3.1.4", {"content": "안녕"})
    stopped: dict[str, Any] = {
        "turn": 3,
        "text": "안",
        "finish_reason": "stop",
        "usage": {"input_tokens": 3, "output_tokens": 2, "cached_tokens": None},
        "figures": {"turn": 3},
    }
    assert (received[3].id, received[3].name, received[3].value) == ("3.1.5", "turn_stopped", stopped)
    assert (received[4].id, received[4].value["choices"][0]["finish_reason"]) == ("3.1.6", "stop")


def test_a_failure_is_told_as_openais_clients_know_it_and_nothing_of_the_servers_own() -> None:
    failed, error, done = written([], TurnFailed(3, "internal", "/srv/secret"))
    assert failed.name == "turn_failed"
    assert error.value["error"] == failed.value["error"]
    assert "/srv/secret" not in json.dumps([failed.value, error.value])
    assert done.data == DONE


@pytest.mark.parametrize("text", ["3.1.7", "3.1.end", "0.0.0", "12.2.1000000000000001"])
def test_an_id_that_was_sent_is_read_again(text: str) -> None:
    assert str(parse_event_id(text)) == text


@given(st.text() | st.from_regex(r"[0-9.]{0,40}", fullmatch=True))
def test_no_other_text_is_an_id(text: str) -> None:
    found = parse_event_id(text)
    assert found is None or [int(part) for part in text.split(".") if part != "end"] == [
        part for part in found if part != "end"
    ]


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.integers(0, 10**16 - 1))
def test_every_id_survives_the_wire(turn: int, attempt: int, seq: int) -> None:
    assert parse_event_id(str(EventId(turn, attempt, seq))) == (turn, attempt, seq)
