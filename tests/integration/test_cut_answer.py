from __future__ import annotations

from graph.event import TurnFinished
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI


def test_an_answer_cut_at_the_models_limit_is_kept_and_says_so(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("반쯤 한 답", finish_reason="length"), text("나머지 답"))
    assert isinstance(chat.say(question(1))[-1], TurnFinished)
    assert (chat.last_turn.answer_text, chat.last_turn.is_cut) == ("반쯤 한 답", True)
    chat.say("계속")
    assert [turn.is_cut for turn in chat.turns] == [True, False]


def test_a_new_attempt_that_is_whole_is_not_cut(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("반쯤 한 답", finish_reason="length"), text("다 한 답"))
    chat.say(question(1))
    chat.regenerate()
    assert (chat.last_turn.answer_text, chat.last_turn.is_cut) == ("다 한 답", False)


def test_the_final_answer_alone_counts_and_a_stopped_one_is_no_cut_one(chat: Chat, server: FakeOpenAI) -> None:
    call = ScriptedCall("get_current_time", "{}", "call-1")
    server.script(tools(call), text("지금은 낮이고", finish_reason="length"), hang("여기까지"))
    chat.say(question(1))
    assert chat.last_turn.is_cut
    chat.start(question(2))
    chat.stop_when(lambda live: live.text == "여기까지")
    assert not chat.last_turn.is_cut
