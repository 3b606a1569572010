from __future__ import annotations

import pytest

from graph.error import InputError, NotFoundError
from graph.pin_view import PinView
from tests.fake.body import content_of, raw_turns, shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

EARLY = {
    "interval": {},
    "rolling": {"app_context_threshold": 500},
    "compaction": {"max_context_tokens": 1_000},
}


def pin(chat: Chat, turn: int) -> PinView:
    """Pins the question of a turn."""
    return chat.service.folds.pin(chat.session_id, chat.turns[turn - 1].user_message_id)


def unpin(chat: Chat, turn: int) -> PinView:
    return chat.service.folds.unpin(chat.session_id, chat.turns[turn - 1].user_message_id)


def told(body: Body) -> str:
    return "\n".join(content_of(message) for message in body["messages"])


def pinned_line(turn: int) -> str:
    return f"[{turn}턴 사용자 원문] {question(turn)}"


def newest(server: FakeOpenAI) -> Body:
    return server.bodies("chat")[-1]


def are_verified(chat: Chat, *turns: int) -> bool:
    return all(call.is_verified for turn in turns for call in chat.service.folds.inputs(chat.session_id, turn))


def test_a_pinned_message_stands_under_its_record_once_it_is_folded(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    view = pin(chat, 2)
    assert [(message.turn, message.tokens) for message in view.messages] == [(2, view.used_tokens)]
    assert 0 < view.used_tokens < view.budget_tokens
    chat.ask(3, 3)
    assert "원문]" not in told(newest(server))
    chat.ask(4, 7)
    system = content_of(newest(server)["messages"][0]).splitlines()
    place = system.index(pinned_line(2))
    assert system[place - 1].startswith(("[1-3턴] ", "  "))
    assert system[place + 1].startswith("[4-6턴] ")
    assert told(newest(server)).count(pinned_line(2)) == 1
    assert shape(newest(server)) == [(1, 3), (4, 6), 7]
    (call,) = chat.service.folds.inputs(chat.session_id, 7)
    assert [block.kind for block in call.blocks][:4] == ["system", "record", "pin", "record"]
    assert (call.blocks[2].text, call.blocks[2].role, call.blocks[2].tokens) == (question(2), "user", view.used_tokens)
    assert are_verified(chat, 3, 4, 7)
    assert unpin(chat, 2).messages == unpin(chat, 2).messages == ()
    chat.ask(8, 8)
    assert "원문]" not in told(newest(server))
    assert are_verified(chat, 7, 8)


@pytest.mark.parametrize("strategy", EARLY)
def test_a_pinned_message_is_sent_once_by_every_strategy_that_sends_records(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = open_chat(context_strategy=strategy, **EARLY[strategy])
    chat.ask(1, 2)
    pin(chat, 1)
    folds = chat.service.folds
    folds.pin(chat.session_id, chat.turns[1].answer_message_id)
    chat.ask(3, 12)
    assert folds.records(chat.session_id)
    assert told(newest(server)).count(pinned_line(1)) == 1
    assert told(newest(server)).count("[2턴 AI 원문] ") == 1
    assert are_verified(chat, *range(1, 13))
    folds.reset(chat.session_id)
    chat.ask(13, 13)
    assert "원문]" not in told(newest(server))
    chat.service.sessions.configure(chat.session_id, strategy="window")
    chat.ask(14, 14)
    assert "원문]" not in told(newest(server))


def test_pins_stay_under_a_merge_and_go_along_into_a_fork(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(records_budget_tokens=500, merged_together=4, newest_records=2, merged_tokens=300)
    chat.ask(1, 5)
    pin(chat, 2)
    pin(chat, 5)
    chat.ask(6, 26)
    system = content_of(newest(server)["messages"][0]).splitlines()
    places = [system.index(pinned_line(turn)) for turn in (2, 5)]
    assert places[1] == places[0] + 1
    assert shape(newest(server))[0] == (1, 12)
    assert are_verified(chat, 26)
    forked = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=4))
    assert [message.turn for message in forked.service.folds.pins(forked.session_id).messages] == [2]
    forked.ask(5, 5)
    assert told(newest(server)).count(pinned_line(2)) == 1
    unpin(forked, 2)
    assert [message.turn for message in chat.service.folds.pins(chat.session_id).messages] == [2, 5]


def test_a_message_is_pinned_while_a_turn_runs_for_the_turns_to_come(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), hang(), to=question(5))
    chat.start(question(5))
    server.wait_until(lambda fake: fake.hanging_count == 1)
    pin(chat, 1)
    chat.service.turns.stop(chat.session_id)
    chat.events()
    assert "원문]" not in told(newest(server))
    chat.ask(6, 6)
    assert told(newest(server)).count(pinned_line(1)) == 1


def test_a_full_budget_refuses_and_says_what_is_left(open_chat: OpenChat) -> None:
    chat = open_chat(model_window_tokens=4_000)
    chat.ask(1, 1)
    chat.say("가나다 " * 130)
    view = pin(chat, 1)
    assert view.budget_tokens == int(4_000 * chat.service.settings.guard_share) // 8
    with pytest.raises(InputError) as refused:
        pin(chat, 2)
    assert (refused.value.reason, refused.value.detail) == (
        "pin_budget",
        str(view.budget_tokens - view.used_tokens),
    )
    assert chat.service.folds.pins(chat.session_id) == view == pin(chat, 1)
    assert unpin(chat, 1).used_tokens == 0
    assert pin(chat, 2).used_tokens <= view.budget_tokens


def test_only_words_that_stand_in_the_chat_are_pinned(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("낮입니다."))
    chat.say(question(1))
    rows = chat.rows("SELECT role, message_id FROM message ORDER BY position")
    silent = [message_id for role, message_id in rows if role == "tool"] + [rows[1][1]]
    for message_id in silent:
        with pytest.raises(InputError, match="empty"):
            chat.service.folds.pin(chat.session_id, message_id)
    with pytest.raises(NotFoundError):
        chat.service.folds.pin(chat.session_id, "no-such-message")
    assert chat.service.folds.pins(chat.session_id).messages == ()


def test_a_pinned_answer_that_is_given_anew_is_pinned_no_more(chat: Chat) -> None:
    chat.ask(1, 1)
    answered = chat.last_turn.answer_message_id
    assert len(chat.service.folds.pin(chat.session_id, answered).messages) == 1
    chat.regenerate()
    assert chat.service.folds.pins(chat.session_id).messages == ()
    with pytest.raises(NotFoundError):
        chat.service.folds.pin(chat.session_id, answered)


def test_what_was_pinned_before_a_reset_is_sent_again_once_that_is_undone(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    pin(chat, 1)
    chat.service.folds.reset(chat.session_id)
    chat.service.folds.undo_reset(chat.session_id)
    chat.ask(5, 5)
    assert told(newest(server)).count(pinned_line(1)) == 1
    assert raw_turns(newest(server)) == [4, 5]


def test_what_a_reset_took_out_of_the_context_takes_no_room(open_chat: OpenChat) -> None:
    chat = open_chat(model_window_tokens=4_000)
    chat.ask(1, 1)
    chat.say("가나다 " * 130)
    pin(chat, 1)
    chat.service.folds.reset(chat.session_id)
    assert chat.service.folds.pins(chat.session_id).messages == ()
    assert chat.service.folds.pins(chat.session_id).used_tokens == 0
    with pytest.raises(InputError, match="before_reset"):
        pin(chat, 2)
    chat.service.folds.undo_reset(chat.session_id)
    assert [message.turn for message in chat.service.folds.pins(chat.session_id).messages] == [1]


@pytest.mark.parametrize("sends_all", [True, False])
def test_a_pinned_message_that_a_rolling_input_cuts_is_sent_whole_beside_it(
    open_chat: OpenChat, server: FakeOpenAI, *, sends_all: bool
) -> None:
    chat = open_chat(context_strategy="rolling", rolling_sends_unsummarised=sends_all)
    long = question(1) + " 자세히 적습니다." * 300 + " 끝말은 은하수입니다."
    chat.say(long)
    chat.ask(2, 3)
    assert "은하수" not in told(newest(server))
    pin(chat, 1)
    chat.ask(4, 4)
    assert told(newest(server)).count("[1턴 사용자 원문] ") == 1
    assert "은하수" in told(newest(server))
    assert are_verified(chat, 1, 2, 3, 4)
