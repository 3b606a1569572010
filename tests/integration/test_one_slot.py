"""A server that answers one request at a time: what a user says goes before folds, repairs and titles."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from graph.value.event import Folded, FoldWaiting, TurnFinished
from tests.fake.body import content_of, raw_turns, roles
from tests.fake.caching import CachingResponder
from tests.fake.chat import Chat, question, text_of
from tests.fake.one_slot import OneSlot
from tests.fake.open_chat import OpenChat
from tests.fake.openai_dialect import pages_of
from tests.fake.openai_reply import Body, Reply, hang, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.titled import tries, wait_for_tries

# The wait for a fold whose stream doesn't move, and how long it is quiet before a third try.
ONE_SLOT = {"model_slots": 1, "fold_wait_seconds": 0.5}
ENGLISH = "The user moves a server in October and Kim is in charge of it; the database is copied first. " * 3


@pytest.fixture
def slot(server: FakeOpenAI) -> Iterator[OneSlot]:
    server.slot = OneSlot()
    yield server.slot
    server.end_hanging()


def kinds(slot: OneSlot) -> list[tuple[str, bool]]:
    return [(served.kind, served.is_whole) for served in slot.served]


def wait_for_hanging(server: FakeOpenAI) -> None:
    server.wait_until(lambda fake: fake.hanging_count == 1)


def say_all(chat: Chat, first: int, last: int) -> None:
    for number in range(first, last + 1):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)


def test_a_fold_is_stopped_when_a_turn_begins_and_made_after_its_answer(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT)
    server.script(hang("서버"), kind="summary")
    say_all(chat, 1, 3)
    wait_for_hanging(server)
    events = chat.say(question(4))
    assert not any(isinstance(event, FoldWaiting | Folded) for event in events)
    chat.wait_for_folds()
    assert any(isinstance(event, Folded) for event in chat.say(question(5)))
    assert kinds(slot) == [
        *[("chat", True)] * 3,
        ("summary", False),
        ("chat", True),
        ("summary", True),
        ("chat", True),
    ]
    assert [raw_turns(body) for body in server.bodies("chat")[3:]] == [[1, 2, 3, 4], [4, 5]]
    # The prefix of the chat was in the slot all the time, but where the summary has changed it.
    third, fourth = slot.served[2], slot.served[4]
    assert fourth.evaluated < 1.5 * third.evaluated
    assert chat.covered == [(1, 2, 3)]


def test_no_fold_begins_while_messages_queue(open_chat: OpenChat, slot: OneSlot) -> None:
    chat = open_chat(model_slots=1, fold_wait_seconds=2)
    folds = chat.service.folds
    for number in range(1, 7):
        chat.start(question(number))
        folds.expect_message(chat.session_id)
        assert isinstance(chat.events()[-1], TurnFinished)
        time.sleep(0.5)  # a page that is late; otherwise a fold begins after a tenth of the two seconds
    assert folds.next_fold(chat.session_id, strategy="interval").is_held
    say_all(chat, 7, 7)
    chat.wait_for_folds()
    assert kinds(slot) == [*[("chat", True)] * 7, *[("summary", True)] * 2]
    assert not folds.next_fold(chat.session_id, strategy="interval").is_held


def test_what_is_stopped_is_no_failure_and_costs_what_was_said(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT)
    server.script(hang("서버 이전을 "), hang(), kind="summary")
    say_all(chat, 1, 3)
    fold_worker = chat.service._engine.fold_worker  # noqa: SLF001  # nobody else sees that its words have come
    chat.wait_until(lambda: len(fold_worker._moved) == 1)  # noqa: SLF001  # the same
    for number in (4, 5):
        wait_for_hanging(server)
        say_all(chat, number, number)
    chat.wait_for_folds()
    rows = chat.rows(
        "SELECT status, error_code, input_tokens > 0, output_tokens > 0, is_usage FROM record ORDER BY sequence"
    )
    assert rows == [("FAILED", "stopped", 1, 1, 0), ("FAILED", "stopped", 0, 0, 0), ("COMPLETED", "", 1, 1, 1)]
    assert len(slot.served) == 5 + 3


def test_a_repair_is_stopped_and_made_again_behind_the_same_draft(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT)
    chat.ask(1, 5)
    server.script(text(ENGLISH), hang("서버"), kind="summary")
    say_all(chat, 6, 6)
    wait_for_hanging(server)
    say_all(chat, 7, 7)
    chat.wait_for_folds()
    *_, stopped, mended = server.bodies("summary")
    assert roles(stopped)[-4:] == roles(mended)[-4:] == ["assistant", "user", "assistant", "user"]
    assert stopped["messages"][-2:] == mended["messages"][-2:]
    assert mended["messages"][:-4] == server.bodies("chat")[6]["messages"]
    assert kinds(slot)[-4:] == [("summary", True), ("summary", False), ("chat", True), ("summary", True)]
    say_all(chat, 8, 8)
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_the_third_try_is_finished_and_waited_for_while_its_stream_moves(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT)
    server.script(hang("서버"), hang("서버"), partial(answer_body, pause_seconds=0.05), kind="summary")
    say_all(chat, 1, 3)
    for number in (4, 5):
        wait_for_hanging(server)
        say_all(chat, number, number)
    server.wait_until(lambda fake: len(fake.bodies("summary")) == 3)
    events = chat.say(question(6))
    assert [type(event) for event in events[1:3]] == [FoldWaiting, Folded]
    assert kinds(slot)[-3:] == [("chat", True), ("summary", True), ("chat", True)]
    assert chat.covered == [(1, 2, 3)]


def test_a_third_try_whose_stream_stands_still_is_stopped(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT)
    server.script(*[hang("서버")] * 3, kind="summary")
    say_all(chat, 1, 3)
    for number in (4, 5, 6):
        wait_for_hanging(server)
        events = chat.say(question(number))
        assert isinstance(events[-1], TurnFinished)
    assert [isinstance(event, FoldWaiting) for event in events[1:2]] == [True]
    assert kinds(slot)[-3:] == [("summary", False), ("chat", True), ("summary", True)] or kinds(slot)[-2:] == [
        ("summary", False),
        ("chat", True),
    ]


def test_a_turn_of_another_session_goes_first_too(open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot) -> None:
    chat = open_chat(**ONE_SLOT)
    other = Chat(chat.service)
    server.script(hang("서버"), kind="summary")
    say_all(chat, 1, 3)
    wait_for_hanging(server)
    say_all(other, 1, 1)
    chat.wait_for_folds()
    assert kinds(slot)[3:] == [("summary", False), ("chat", True), ("summary", True)]
    say_all(chat, 4, 4)
    assert chat.covered == [(1, 2, 3)]


def test_the_guard_picks_sentences_and_leaves_no_call_in_the_slot(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT, model_window_tokens=3_000, context_strategy="compaction")
    server.script(*[hang()] * 9, kind="summary", may_stay=True)
    for number in range(1, 12):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
    assert "picked" in {record.outcome for record in chat.service.folds.records(chat.session_id)}
    for before, after in zip(slot.served, slot.served[1:], strict=False):
        assert before.is_whole or after.kind == "chat"


def test_a_request_is_read_bit_by_bit_so_that_a_turn_can_come_between(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    server.respond_with(CachingResponder(300))
    chat = open_chat(**ONE_SLOT)
    chat.ask(1, 3)
    *bits, whole = server.bodies("summary")
    assert len(bits) >= 3
    told = [content_of(body["messages"][-1]) for body in (*bits, whole)]
    assert all(after.startswith(before) for before, after in pairwise(told))
    assert {body["max_completion_tokens"] for body in bits} == {1}
    assert all(body["messages"][:-1] == whole["messages"][:-1] for body in bits)
    # The answer that was just given is in the slot already.
    read = [served.evaluated for served in slot.served if served.kind == "summary"]
    assert max(read) <= 64
    chat.ask(4, 4)
    assert chat.covered == [(1, 2, 3)]


def test_a_first_draft_that_is_none_is_mended_before_its_request_leaves_the_cache(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    first = iter([text(ENGLISH)])

    def reply(body: Body) -> Reply | None:
        is_draft = kind_of(body) == "summary" and body["max_completion_tokens"] > 1
        return next(first, None) if is_draft else None

    server.respond_with(CachingResponder(300, reply))
    chat = open_chat(**ONE_SLOT)
    chat.ask(1, 4)
    draft, mended = [body["messages"] for body in server.bodies("summary") if body["max_completion_tokens"] > 1]
    assert mended[:-2] == draft
    assert [kind for kind, _ in kinds(slot)][-3:] == ["summary", "summary", "chat"]
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize(("slots", "gives_way"), [(1, True), (2, False)])
def test_slots_that_the_server_tells_count_where_none_are_set(
    open_chat: OpenChat, server: FakeOpenAI, slots: int, *, gives_way: bool
) -> None:
    server.pages = dict(pages_of("llama.cpp", 100_000, slots=slots))
    chat = open_chat(**ONE_SLOT | {"model_slots": None})
    server.script(hang("서버"), kind="summary")
    say_all(chat, 1, 3)
    wait_for_hanging(server)
    events = chat.say(question(4))
    assert isinstance(events[-1], TurnFinished)
    # Stopped and made again, or waited for as long as a turn waits, and left to go on beside it.
    assert any(isinstance(event, FoldWaiting) for event in events) is not gives_way
    if gives_way:
        chat.wait_for_folds()
    assert len(server.bodies("summary")) == 1 + gives_way
    assert server.hanging_count == (not gives_way)
    server.end_hanging()


# Titles


def test_a_title_is_asked_for_behind_the_chat_and_gives_way(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT, auto_titles=True)
    server.script(hang("제"), text("서버 이전 계획"), kind="title")
    say_all(chat, 1, 2)
    wait_for_hanging(server)
    say_all(chat, 3, 3)
    wait_for_tries(chat, 1)
    assert chat.view.title == "서버 이전 계획"
    stopped, asked = server.bodies("title")
    for place, body in enumerate((stopped, asked)):
        sent = server.bodies("chat")[1 + place]
        assert body["messages"][: len(sent["messages"])] == sent["messages"]
        assert (body["tools"], body["tool_choice"]) == (sent["tools"], "none")
    assert kinds(slot)[:5] == [*[("chat", True)] * 2, ("title", False), ("chat", True), ("title", True)] or (
        kinds(slot)[4][0] == "summary"
    )
    assert len(tries(chat)) == 1
    assert slot.evaluated("title") < slot.served[0].evaluated


def test_a_title_of_another_model_is_asked_for_when_the_first_fold_is_made(
    open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot
) -> None:
    chat = open_chat(**ONE_SLOT, auto_titles=True, chat_summary_model="small")
    chat.ask(1, 2)
    chat.wait_for_folds()
    assert server.bodies("title") == []
    chat.ask(3, 3)
    wait_for_tries(chat, 1)
    (asked,) = server.bodies("title")
    assert (asked["model"], roles(asked)) == ("small", ["system", "user"])
    assert {served.kind for served in slot.served} == {"chat", "summary", "title"}


# What one slot has read


def evaluated_in_twenty_turns(chat: Chat, slot: OneSlot) -> int:
    chat.ask(1, 20)
    assert len(chat.covered) == 6
    return slot.evaluated()


def test_folds_in_place_are_the_default_and_have_the_server_read_half_as_much(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    evaluated = {}
    for mode in ("auto", "always", "never"):
        server.slot = OneSlot()
        with open_chat(**ONE_SLOT, fold_in_place=mode) as chat:
            evaluated[mode] = evaluated_in_twenty_turns(chat, server.slot)
    assert evaluated["auto"] == evaluated["always"] < evaluated["never"] / 1.8


# Limits


def test_each_answer_draft_and_title_has_a_limit_there_and_only_there(open_chat: OpenChat, server: FakeOpenAI) -> None:
    def limits(**settings: object) -> dict[str, list[int | None]]:
        with open_chat(auto_titles=True, model_window_tokens=8_192, **settings) as chat:
            chat.ask(1, 3)
            wait_for_tries(chat, 1)
            found: dict[str, list[int | None]] = {
                kind: [body.get("max_tokens", body.get("max_completion_tokens")) for body in server.bodies(kind, to="")]
                for kind in ("chat", "summary", "title")
            }
        server.exchanges.clear()
        return found

    limited, free = limits(**ONE_SLOT), limits()
    assert free == {"chat": [None] * 3, "summary": [None], "title": [1_000]}
    first, *_, last = (tokens or 0 for tokens in limited["chat"])
    assert 4_000 < last < first < 0.75 * 8_192
    assert (limited["summary"], limited["title"]) == ([4_096], [1_000])


def test_a_draft_or_title_that_never_ends_is_ended(open_chat: OpenChat, server: FakeOpenAI, slot: OneSlot) -> None:
    chat = open_chat(**ONE_SLOT, auto_titles=True)
    endless = hang(*[f"서버를 {number}번 옮깁니다. " for number in range(200)])
    server.script(endless, kind="title")
    server.script(endless, kind="summary")
    chat.ask(1, 4)
    wait_for_tries(chat, 2)
    chat.wait_for_folds()
    assert ("summary", False) in kinds(slot)
    assert ("title", False) in kinds(slot)
    assert chat.covered == [(1, 2, 3)]
    assert server.hanging_count == 0


def test_an_answer_that_repeats_itself_is_ended_kept_and_counted(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    said = "고객 지원 팀이 기꺼이 도와 드립니다. "
    server.script(hang("먼저 말씀드리면, ", *[said] * 400), to="질문 1번")
    events = chat.say(question(1))
    assert isinstance(events[-1], TurnFinished)
    turn = chat.last_turn
    assert turn.answer_text == text_of(events).rstrip() == events[-1].text.rstrip()
    assert turn.answer_text.startswith("먼저 말씀드리면, " + said)
    assert len(turn.answer_text) < 2_500
    assert (turn.status, turn.is_cut, turn.is_endless) == ("finished", True, True)
    server.wait_until(lambda fake: fake.open_count == 0)
    (call,) = chat.rows("SELECT usage_output_tokens, error_code FROM model_call")
    assert call == (None, "")
    assert isinstance(chat.say(question(2))[-1], TurnFinished)
    assert [turn.is_endless for turn in chat.turns] == [True, False]
