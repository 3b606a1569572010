"""The events of /chat over a real service: their order, and how a client goes on that comes again."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest

from graph.service import ChatService
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_chat import DONE, Answer, ReceivedEvent, ServedChat, essence_of, read, text_of
from tests.fake.waiting_turn import FIRST, LOOK, required

ANSWER = "서버 이전은 10월 3일이며 담당자는 김민수입니다. " * 10


@pytest.fixture(scope="module")
def served(module_service: ChatService) -> Iterator[ServedChat]:
    with ServedChat(module_service) as opened:
        yield opened


def names(received: list[ReceivedEvent]) -> list[str]:
    """The events' names in order, each run of chunks as one."""
    found: list[str] = []
    for each in received:
        name = each.name or ("done" if each.data == DONE else "chunk")
        if not (name == "chunk" and found[-1:] == ["chunk"]):
            found.append(name)
    return found


def is_cut_after(length: int) -> Callable[[bytes], bool]:
    return lambda body: len(body) >= length


def check_once(received: list[ReceivedEvent]) -> None:
    ids = [each.id for each in received if each.data != DONE]
    assert all(ids)
    assert len(ids) == len(set(ids))
    assert [each.data for each in received].count(DONE) == 1


def without_preamble(received: list[ReceivedEvent]) -> list[ReceivedEvent]:
    return [each for each in received if each.id or each.data == DONE]


def test_a_stream_begins_as_the_seed_has_it_and_ends_with_figures(served: ServedChat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text(ANSWER))
    answer = served.send({"message": "몇 시인가요?"})
    session_id = answer.session_id
    assert answer.body.startswith(
        b'retry: 2000\ndata: {"metadata":{"conversationId":"' + session_id.encode() + b'"}}\n\n'
    )
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    address = f"/chat/{session_id}/events"
    assert answer.headers["location"] == address
    assert names(answer.received) == [
        "chunk", "turn_started", "tool_started", "tool_finished", "chunk", "turn_finished", "chunk", "done",
    ]  # fmt: skip
    ids = [each.id for each in answer.received if each.id]
    assert ids == sorted(set(ids), key=lambda each: int(each.split(".")[2]))
    assert all(each.startswith("1.1.") for each in ids)
    ending = answer.received[-3].value
    assert (ending["turn"], ending["text"], ending["finish_reason"]) == (1, ANSWER, "stop")
    assert ending["usage"] == {"input_tokens": 200, "output_tokens": 40, "cached_tokens": 0}
    assert ending["figures"]["turn"] == 1
    assert text_of(answer.received) == ANSWER
    # Who comes by the address alone is told the same, and who has all but the last lines these.
    behind = served.ask("GET", f"{address}?after={answer.received[3].id}").received
    assert essence_of(answer.received[:4] + behind) == essence_of(answer.received)
    assert served.ask("GET", f"{address}?after={answer.received[-2].id}").status == 204
    assert essence_of(served.ask("GET", address).received) == essence_of(answer.received)
    assert served.follow(session_id, answer.received[-3].id).received == answer.received[-2:]


def test_a_stream_that_is_cut_while_it_runs_gives_every_event_once(
    served: ServedChat, server: FakeOpenAI, chat: Chat
) -> None:
    """Each connection ends after a random number of bytes; a second client and the page watch the same turn."""
    server.script(
        tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="먼저 시각을 봅니다. " * 10),
        text(ANSWER * 2, pause_seconds=0.005),
        to="몇 시",
    )
    draw = random.Random(13)  # noqa: S311  # the same places in each run
    first = served.send({"message": "몇 시인가요?"}, until=is_cut_after(400))
    session_id, got = first.session_id, without_preamble(first.received)
    other: list[Answer] = []
    second = threading.Thread(target=lambda: other.append(served.follow(session_id)))
    second.start()
    connections, longest = 0, 600
    while names(got)[-1:] != ["done"]:
        length = draw.randrange(60, longest)
        part = served.follow(session_id, got[-1].id, until=is_cut_after(length)).body[:length]
        longest = 600 if (received := without_preamble(read(part))) else longest * 2
        got += received
        connections += 1
        assert connections < 5_000
    second.join()
    assert connections > 10
    whole = without_preamble(other[0].received)
    check_once(got)
    events = Chat(chat.service, session_id).events()
    streamed = "".join(getattr(event, "text", "") for event in events if type(event).__name__ == "TokenDelta")
    assert text_of(got) == text_of(whole) == streamed
    assert [each for each in got if each.name] == [each for each in whole if each.name]
    assert served.follow(session_id, got[-2].id).status == 204


def test_a_stream_that_is_cut_at_any_place_gives_every_event_once(served: ServedChat, server: FakeOpenAI) -> None:
    server.script(
        tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="먼저 시각을 봅니다."),
        text(*[f"{number}번째 말. " for number in range(60)]),
        to="몇 시",
    )
    whole = served.send({"message": "몇 시인가요?"})
    draw = random.Random(1)  # noqa: S311  # the same places in each run
    for end in draw.sample(range(len(whole.body)), 25):
        got = without_preamble(read(whole.body[:end]))
        rest = served.follow(whole.session_id, got[-1].id if got else "")
        received = got + (without_preamble(rest.received) if rest.status == 200 else whole.received[-1:])
        check_once(received)
        assert text_of(received) == text_of(whole.received)
        assert [each for each in received if each.name] == [each for each in whole.received if each.name]
        assert received[-2:] == whole.received[-2:]


def test_a_client_that_leaves_ends_no_turn_and_with_an_unknown_id_it_gets_one_snapshot(
    served: ServedChat, server: FakeOpenAI, chat: Chat
) -> None:
    server.script(text(ANSWER, pause_seconds=0.02))
    answer = served.send({"message": question(1)}, until=lambda body: body.count(b'"content":') > 4)
    session_id = answer.session_id
    assert "done" not in names(answer.received)
    for after in ("1.1.5000", "1.7.2", "9.1.1", "no id at all", "1.1.end"):
        received = served.follow(session_id, after, until=lambda body: body.count(b"data:") > 2).received
        assert received[0].name == "snapshot"
        assert received[0].value["status"] == "running"
        assert names(received).count("snapshot") == 1
    received = served.follow(session_id, "9.1.1").received
    assert text_of(received) == ANSWER
    assert names(received) == ["snapshot", "chunk", "turn_finished", "chunk", "done"]
    # The snapshot's own id is one to go on from.
    assert text_of(received[:1]) + text_of(served.follow(session_id, received[0].id).received) == ANSWER
    assert Chat(chat.service, session_id).last_turn.answer_text == ANSWER.strip()


def test_after_a_restart_a_turn_is_told_from_the_tables(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(tools(ScriptedCall("get_current_time", "{}", "clock"), FIRST, answer="Let me see."))
    asked = required(chat.say(question(1), options=LOOK))
    server.script(text(ANSWER))
    with ServedChat(chat.service) as served:
        answer = served.send({"message": question(1)})
    with ServedChat(open_chat().service) as again:
        received = again.follow(answer.session_id, answer.received[3].id).received
        assert names(received) == ["snapshot", "turn_finished", "chunk", "done"]
        assert (received[0].id, received[0].value["text"]) == ("1.1.0", ANSWER.strip())
        last = answer.received[-3].value
        assert received[1].value["text"] == last["text"]
        assert {**received[1].value, "figures": 0} == {**last, "figures": 0}
        assert received[2].id == "1.1.end"
        assert again.follow(answer.session_id, "1.1.end").status == 204
        waiting = again.follow(chat.session_id).received[-3]
    assert waiting.name == "action_required"
    assert [waiting.value[name] for name in ("turn", "message_id", "text")] == [1, asked.message_id, "Let me see."]
    assert waiting.value["calls"] == [asdict(call) for call in asked.calls]


def test_a_turn_of_another_server_is_told_from_where_it_is_until_its_end(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.script(text(ANSWER, pause_seconds=0.02))
    with ServedChat(open_chat().service) as served, ServedChat(open_chat().service) as other:
        answer = served.send({"message": question(1)}, until=lambda body: body.count(b'"content":') > 2)
        received = other.follow(answer.session_id, answer.received[-1].id).received
    assert names(received[:-3])[0] == "snapshot"
    assert set(names(received[1:-3])) <= {"chunk"}
    assert text_of(received).strip() == ANSWER.strip()
    assert names(received[-3:]) == ["turn_finished", "chunk", "done"]


def test_a_failed_turn_is_told_as_one(served: ServedChat, server: FakeOpenAI) -> None:
    server.script(failure(400))
    failed, error, done = served.send({"message": question(1)}).received[-3:]
    assert failed.name == "turn_failed"
    assert failed.value["error"] == error.value["error"]
    assert error.value["error"]["code"] == "invalid_request"
    assert done.data == DONE


def test_a_busy_session_is_refused_for_good_and_a_stopped_turn_keeps_what_was_said(
    served: ServedChat, server: FakeOpenAI, chat: Chat
) -> None:
    server.script(hang("부분 답변"))
    answer = served.send({"message": question(1)}, until=lambda body: "부분".encode() in body)
    another = {"message": question(2), "session_id": answer.session_id}
    refused = served.send(another)
    assert refused.code == (409, "session_busy")
    assert refused.headers["x-should-retry"] == "false"
    assert refused.headers["content-type"].startswith("application/json")
    chat.service.turns.stop(answer.session_id)
    received = served.follow(answer.session_id, answer.received[-1].id).received
    assert (received[-3].name, received[-3].value["text"]) == ("turn_stopped", "부분 답변")
    assert served.send(another).status == 200


def test_a_closing_server_ends_its_streams_with_an_error(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("기다리는 중"))
    with ServedChat(chat.service) as served:
        lines = b""
        with served.opened("POST", "/chat", json={"message": question(1)}) as answer:
            for piece in answer.iter_raw():
                lines += piece
                if "기다리는".encode() in lines:
                    served.end_streams()
        assert read(lines)[-1].value["error"]["code"] == "server_closing"
        assert served.follow(answer.headers["x-turnfold-session"]).status == 503
