from __future__ import annotations

import pytest

from graph.value.error import InputError
from graph.value.event import Folded, FoldWaiting
from tests.fake.body import content_of, faults
from tests.fake.chat import Chat, question
from tests.fake.compacting import COMPACTING, ask_until_compacted
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import holds

pytestmark = pytest.mark.usefixtures("true_usage")
OPENING = "암호는 은빛고래74입니다. 이 암호를 꼭 기억해 주세요."


def turns_sent(chat: Chat, body: Body) -> list[int]:
    """The turns before the open one that the input has, by their record's text or by their own question."""
    sent = "\n".join(content_of(message) for message in body["messages"])
    by_record = {
        turn for r in chat.service.folds.records(chat.session_id) if holds(body, r.summary) for turn in r.turns
    }
    return sorted(by_record | {turn.number for turn in chat.turns[:-1] if turn.user_text in sent})


def test_restoring_under_younger_records_leaves_no_turn_out(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="compaction", max_context_tokens=100_000)
    chat.say(OPENING)
    chat.ask(2, 4)
    record = chat.service.folds.compact(chat.session_id)
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.ask(5, 9)
    assert len(chat.service.folds.records(chat.session_id)) > 1
    chat.service.folds.restore(chat.session_id, record.id)
    chat.ask(10, 10)
    body = server.bodies("chat")[-1]
    assert turns_sent(chat, body) == list(range(1, 10))
    assert "은빛고래74" in "\n".join(content_of(message) for message in body["messages"])
    assert faults(body["messages"]) == []
    chat.ask(11, 16)
    body = server.bodies("chat")[-1]
    assert turns_sent(chat, body) == list(range(1, 16))
    covered = [turn for turns in chat.covered for turn in turns]
    assert covered == list(range(1, 16))


def test_restoring_keeps_the_summaries_behind_it_as_their_user_left_them(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(context_strategy="compaction", max_context_tokens=100_000)
    chat.ask(1, 4)
    folds, compaction = chat.service.folds, chat.service.folds.compact(chat.session_id)
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.ask(5, 10)
    assert chat.covered == [(1, 2), (3,), (4, 5, 6), (7, 8, 9)]
    _, third, block, last = folds.records(chat.session_id)
    short = folds.edit(chat.session_id, third.id, "고침-33")
    edited = folds.edit(chat.session_id, block.id, "고침-77: 서버 이전은 10월 4일.")
    folds.edit(chat.session_id, last.id, "고침-99")
    folds.use_version(chat.session_id, last.id)
    paid = len(server.bodies("summary"))
    folds.restore(chat.session_id, compaction.id)
    assert chat.covered == []
    chat.ask(11, 11)
    assert chat.covered == [(1, 2), (3,), (4, 5, 6), (7, 8, 9)]
    assert folds.records(chat.session_id)[1:] == (short, edited, last)
    assert len(server.bodies("summary")) == paid + 1  # of the turns that the compaction had
    assert turns_sent(chat, server.bodies("chat")[-1]) == list(range(1, 11))
    assert holds(server.bodies("chat")[-1], edited.summary)
    assert folds.versions(chat.session_id, edited.id) == (block, edited)
    assert folds.use_version(chat.session_id, block.id) == block
    chat.ask(12, 12)
    assert holds(server.bodies("chat")[-1], block.summary)
    assert all(call.is_verified for turn in range(5, 13) for call in chat.service.inputs.of_turn(chat.session_id, turn))


def test_a_summary_that_waits_behind_a_restored_compaction_goes_when_its_answer_is_given_anew(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(context_strategy="compaction", max_context_tokens=100_000)
    chat.ask(1, 4)
    folds, compaction = chat.service.folds, chat.service.folds.compact(chat.session_id)
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.ask(5, 7)
    folds.edit(chat.session_id, folds.records(chat.session_id)[-1].id, "고침-77")
    folds.restore(chat.session_id, compaction.id)
    branch = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=6))
    branch.regenerate()
    branch.wait_for_folds()
    branch.ask(7, 8)
    assert branch.covered == [(1, 2), (3,), (4, 5, 6)]
    assert not holds(server.bodies("chat")[-1], "고침-77")
    chat.ask(8, 8)
    assert holds(server.bodies("chat")[-1], "고침-77")


def test_a_restored_compaction_is_not_made_again_by_the_next_turn(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING)
    number = ask_until_compacted(chat)
    (record,) = chat.service.folds.compactions(chat.session_id)
    chat.service.folds.restore(chat.session_id, record.id)
    paid = len(server.bodies("summary"))
    events = chat.say("네, 그대로 두세요. 다음 항목으로 갑시다.")
    assert not [event for event in events if isinstance(event, Folded | FoldWaiting)]
    chat.wait_for_folds()
    assert len(server.bodies("summary")) == paid
    said = [content_of(message) for message in server.bodies("chat")[-1]["messages"]]
    assert question(1) in said
    assert question(number) in said
    assert chat.service.folds.compact(chat.session_id).kind == "compaction"


def test_a_restored_context_that_grew_by_a_tenth_is_compacted_again(open_chat: OpenChat) -> None:
    chat = open_chat(**COMPACTING)
    ask_until_compacted(chat)
    (record,) = chat.service.folds.compactions(chat.session_id)
    chat.service.folds.restore(chat.session_id, record.id)
    again = ask_until_compacted(chat)
    (made,) = chat.service.folds.compactions(chat.session_id)
    assert made.context_tokens > record.context_tokens * 1.1
    assert made.turns[-1] < again


def test_a_hole_that_an_older_version_left_costs_tokens_and_no_memory(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="interval")
    chat.say(OPENING)
    chat.ask(2, 10)
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    chat.change("UPDATE record SET superseded_by = 'withdrawn' WHERE turns = '[1, 2, 3]'")
    chat.say(question(11))
    body = server.bodies("chat")[-1]
    assert turns_sent(chat, body) == list(range(1, 11))
    assert faults(body["messages"]) == []
    chat.wait_for_folds()
    chat.ask(12, 16)
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12), (13, 14, 15)]
    assert turns_sent(chat, server.bodies("chat")[-1]) == list(range(1, 16))


def test_compacting_under_window_says_that_it_has_no_effect_and_costs_nothing(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(context_strategy="window", window_turns=5)
    chat.ask(1, 8)
    with pytest.raises(InputError, match="no_effect"):
        chat.service.folds.compact(chat.session_id)
    assert server.bodies("summary") == []
    assert chat.service.folds.records(chat.session_id) == ()
