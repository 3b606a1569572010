"""A file that is too long for the window stays beside the chat, and the model looks things up in it."""

from __future__ import annotations

import json

import pytest

from graph.core.attached import attachment_of, split_attached, with_attachments
from graph.value.error import InputError
from graph.value.event import TurnFinished
from tests.fake.body import content_of, tool_names
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_dialect import takes_no_tools
from tests.fake.openai_reply import Body, ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI

WINDOW = 8_000
LINES = [f"{number} 요청을 처리했습니다" for number in range(1, 9_001)]
LINES[6_999] = "7000 오류 E-417: 디스크가 가득 찼습니다"
LOG = attachment_of("server.log", "\n".join(LINES))
ASKED = "이 로그의 오류 번호는?"
HIDDEN = "E-417"


def with_log(words: str) -> str:
    return with_attachments(words, [LOG], "ko")


@pytest.fixture
def chat(open_chat: OpenChat) -> Chat:
    return open_chat(model_window_tokens=WINDOW)


def asked_of(body: Body) -> str:
    return content_of(next(each for each in reversed(body["messages"]) if each["role"] == "user"))


def whole_texts(chat: Chat, session_id: str = "") -> list[str]:
    query = "SELECT whole_text FROM message WHERE whole_text <> '' AND session_id = ?"
    return [whole for (whole,) in chat.rows(query, session_id or chat.session_id)]


def look(chat: Chat, server: FakeOpenAI, asked: str, **arguments: str) -> str:
    call = ScriptedCall("look_in_file", json.dumps(arguments, ensure_ascii=False), f"call-{asked}")
    server.script(tools(call), text("server.log 7000줄의 E-417입니다."))
    assert isinstance(chat.say(asked)[-1], TurnFinished)
    return content_of(server.bodies("chat")[-1]["messages"][-1])


def test_the_model_is_sent_the_beginning_and_looks_up_the_rest(chat: Chat, server: FakeOpenAI) -> None:
    assert len(with_log(ASKED)) > WINDOW * 4
    gauge = chat.service.folds.gauge(None, language="ko", files=[LOG])
    result = look(chat, server, with_log(ASKED), query="오류 디스크")
    first = server.bodies("chat")[0]
    assert tool_names(first)[-1] == "look_in_file"
    typed, (sent,) = split_attached(asked_of(first))
    assert (typed, sent.name) == (ASKED, "server.log")
    assert sent.sent_lines > 10
    assert HIDDEN not in asked_of(first)
    assert '<file name="server.log" lines="6998-7002" of="9000">' in result
    assert f"7000: {LINES[6_999]}" in result
    # What is sent is what is counted and shown; the rest is kept once.
    ((counted,),) = chat.rows("SELECT sent_tokens FROM model_call WHERE kind = 'answer' ORDER BY ordinal LIMIT 1")
    assert gauge.sent_tokens == pytest.approx(counted, rel=0.05)
    assert split_attached(chat.last_turn.user_text)[1] == [sent]
    assert whole_texts(chat) == [with_log(ASKED)]
    # Later turns have the tool as well, in the same place, and read by number.
    assert "12: 12 요청" in look(chat, server, "12줄은?", lines="12", name="server.log")
    call = chat.service.inputs.of_turn(chat.session_id, 2)[0]
    body = chat.service.inputs.request(chat.session_id, 2, attempt=1, ordinal=call.ordinal)
    assert "look_in_file" in json.dumps(body.body, ensure_ascii=False)


def test_for_a_model_without_tools_the_question_is_looked_up_in_the_file(chat: Chat, server: FakeOpenAI) -> None:
    server.respond_with(takes_no_tools("ollama"))
    chat.say(question(1))
    chat.say(with_log("디스크가 가득 찬 오류는 뭐야?"))
    body = server.bodies("chat")[-1]
    assert "tools" not in body
    assert f"7000: {LINES[6_999]}" in json.dumps(body, ensure_ascii=False)


def test_a_chat_without_a_long_file_has_no_tool_for_it(chat: Chat, server: FakeOpenAI) -> None:
    chat.say(with_attachments(question(1), [attachment_of("note.txt", "짧은 메모")], "ko"))
    assert "look_in_file" not in tool_names(server.bodies("chat")[-1])
    assert whole_texts(chat) == []


def test_branch_edit_export_and_import_keep_the_file(chat: Chat, server: FakeOpenAI) -> None:
    service = chat.service
    chat.say(with_log(ASKED))
    edited = service.turns.edit(chat.session_id, 1, chat.last_turn.user_text.replace(ASKED, "몇 줄이야?"))
    branch = Chat(service, edited)
    branch.events()
    assert whole_texts(chat, edited) == [with_log("몇 줄이야?")]
    (taken,) = service.sessions.import_session(service.sessions.export(chat.session_id))
    fork = service.turns.fork(chat.session_id, after_turn=1)
    for session_id in (taken, fork):
        assert whole_texts(chat, session_id) == [with_log(ASKED)]
        assert f"7000: {LINES[6_999]}" in look(Chat(service, session_id), server, "찾아 줘", query="디스크")


def test_with_its_chat_the_file_is_deleted(chat: Chat) -> None:
    chat.say(with_log(ASKED))
    fork = chat.service.turns.fork(chat.session_id, after_turn=1)
    chat.service.sessions.delete(chat.session_id)
    assert whole_texts(chat) == []
    assert whole_texts(chat, fork) == [with_log(ASKED)]


def test_an_export_whose_whole_text_says_something_else_is_refused(chat: Chat) -> None:
    chat.say(with_log(ASKED))
    lines = [*chat.service.sessions.export(chat.session_id)]
    at, row = next((at, json.loads(line)) for at, line in enumerate(lines) if "whole_text" in line)
    row["row"]["whole_text"] = row["row"]["whole_text"].replace(ASKED, "모두 지워")
    lines[at] = json.dumps(row)
    with pytest.raises(InputError):
        chat.service.sessions.import_session(lines)


def test_after_a_reset_the_file_is_forgotten(chat: Chat, server: FakeOpenAI) -> None:
    chat.say(with_log(ASKED))
    chat.service.folds.reset(chat.session_id)
    chat.say(question(2))
    assert "look_in_file" not in tool_names(server.bodies("chat")[-1])


def test_a_fold_reads_the_beginning_alone(chat: Chat, server: FakeOpenAI) -> None:
    chat.say(with_log(ASKED))
    chat.ask(2, 4)
    chat.wait_for_folds()
    summary = json.dumps(server.bodies("summary"), ensure_ascii=False)
    assert "1 요청을 처리했습니다" in summary
    assert HIDDEN not in summary


def test_a_message_is_refused_where_not_even_the_beginnings_fit(chat: Chat) -> None:
    with pytest.raises(InputError) as caught:
        chat.say(with_log("긴 말입니다. " * 3_000))
    assert caught.value.reason == "over_window"
    with pytest.raises(InputError) as caught:
        chat.say(with_attachments("", [LOG._replace(text="가" * 11_000_000)], "ko"))
    assert caught.value.reason == "message_too_long"
    assert whole_texts(chat) == []
