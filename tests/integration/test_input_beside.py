from __future__ import annotations

from graph.input_view import CallInput
from graph.view import TurnOptions
from tests.fake.body import tokens_of
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI

SEOUL = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")


def last_call(chat: Chat, turn: int) -> CallInput:
    return chat.service.folds.inputs(chat.session_id, turn)[-1]


def kept(call: CallInput) -> list[str]:
    return [block.kind for block in call.blocks if block.is_cacheable]


def test_the_first_call_has_nothing_before_it_and_the_next_one_all_but_what_is_new(chat: Chat) -> None:
    chat.ask(1, 2)
    first, second = last_call(chat, 1), last_call(chat, 2)
    assert (kept(first), first.cacheable_tokens) == ([], 0)
    assert kept(second) == ["system", "message", "tools"]
    new = sum(block.tokens for block in second.blocks[2:4])
    assert second.cacheable_tokens == second.sent_tokens - new


def test_a_fold_leaves_the_prompt_and_the_records_before_it(chat: Chat) -> None:
    chat.ask(1, 7)
    assert kept(last_call(chat, 4)) == ["system", "tools"]
    assert kept(last_call(chat, 7)) == ["system", "record", "tools"]


def test_a_call_that_failed_is_none_that_anything_was_kept_of(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(401), text("이제 됩니다."))
    chat.say(question(1))
    chat.retry()
    assert last_call(chat, 1).cacheable_tokens == 0
    chat.say(question(2))
    assert kept(last_call(chat, 2)) == ["system", "message", "tools"]


def test_another_model_has_kept_nothing(chat: Chat) -> None:
    chat.ask(1, 1)
    chat.say(question(2), options=TurnOptions(model="other-model"))
    assert last_call(chat, 2).cacheable_tokens == 0


def test_the_calls_of_one_turn_follow_each_other(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(SEOUL), text("낮입니다."), to=question(1))
    chat.say(question(1))
    first, second = chat.service.folds.inputs(chat.session_id, 1)
    assert second.cacheable_tokens == first.sent_tokens


def test_each_record_and_message_tells_its_turns(chat: Chat) -> None:
    chat.ask(1, 8)
    told = [(block.kind, block.turns) for block in last_call(chat, 8).blocks]
    assert told == [
        ("system", ()),
        ("record", (1, 2, 3)),
        ("record", (4, 5, 6)),
        *[("message", (7,))] * 2,
        ("message", (8,)),
        ("tools", ()),
    ]


def test_only_turns_that_a_model_was_called_in_are_named(chat: Chat) -> None:
    chat.ask(1, 3)
    assert chat.service.folds.called_turns(chat.session_id) == (1, 2, 3)
    fork = Chat(chat.service, chat.service.sessions.fork(chat.session_id, after_turn=2))
    assert fork.service.folds.called_turns(fork.session_id) == ()
    fork.say(question(3))
    assert fork.service.folds.called_turns(fork.session_id) == (3,)


def test_the_whole_history_is_what_the_full_tokens_count(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 5)
    call = last_call(chat, 5)
    history = chat.service.folds.history(chat.session_id, 5, last=30)
    assert [turn.number for turn in history] == [1, 2, 3, 4, 5]
    asked = sum(turn.tokens for turn in history[:4]) + history[4].messages[0].tokens
    beside = sum(block.tokens for block in call.blocks if block.kind == "tools")
    assert 0 <= call.full_tokens - asked - beside < tokens_of(server.bodies("chat")[0])
    assert [block.text for block in history[0].messages] == [chat.turns[0].user_text, chat.turns[0].answer_text]
    assert [turn.number for turn in chat.service.folds.history(chat.session_id, 5, last=2)] == [4, 5]


def test_the_history_begins_behind_the_last_reset_before_the_turn(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.ask(1, 4)
    before = last_call(chat, 4).full_tokens
    chat.service.folds.reset(chat.session_id)
    chat.ask(5, 6)
    begun = last_call(chat, 5)
    assert begun.full_tokens == begun.sent_tokens
    assert [turn.number for turn in chat.service.folds.history(chat.session_id, 6, last=30)] == [5, 6]
    assert last_call(chat, 4).full_tokens == before
    assert chat.service.folds.history(chat.session_id, 4, last=30)[0].number == 1
    assert [point.full_tokens for point in chat.service.folds.chart(chat.session_id)] == [
        last_call(chat, turn).full_tokens for turn in (5, 6)
    ]
