from __future__ import annotations

import pytest

from graph.client import ClientMessage
from graph.error import InputError, ServerBusyError, TurnRateError
from graph.event import ClientCall
from graph.model_error import AuthenticationError
from graph.record import Record
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, hang, text
from tests.fake.openai_server import FakeOpenAI

TALK = tuple(
    message
    for number in range(1, 4)
    for message in (
        ClientMessage("user", question(number)),
        ClientMessage("assistant", f"네, {number}일로 하겠습니다. " * 10),
    )
)
USAGE = {"prompt_tokens": 500, "completion_tokens": 90, "total_tokens": 590}
CALLS = "SELECT owner, client, model, usage_input_tokens, usage_output_tokens, error_code FROM aside_call"


def made(chat: Chat, messages: tuple[ClientMessage, ...] = TALK, **asked: object) -> Record:
    return chat.service.summaries.make(messages, client="tester", **asked)  # type: ignore[arg-type]  # each test's own


def test_a_summary_is_made_as_a_fold_is_and_leaves_nothing_but_its_cost(chat: Chat, server: FakeOpenAI) -> None:
    done = made(chat, rate=0.3)
    chars = sum(len(message.text) for message in TALK)
    assert (done.original_chars, done.target_chars, done.summary_chars) == (chars, int(chars * 0.3), len(done.summary))
    assert (done.outcome, done.is_usage, done.model) == ("compressed", True, "scripted-model")
    assert 0.6 * done.target_chars <= done.summary_chars <= 1.3 * done.target_chars
    assert "120만 원" in done.kept_facts
    (body,) = server.bodies("summary")
    assert question(1) in str(body["messages"])
    row = ("local", "tester", "scripted-model", done.input_tokens, done.output_tokens, "")
    assert chat.rows(CALLS) == [row]
    for table in ("session", "message", "record", "model_call"):
        assert chat.rows(f"SELECT * FROM {table}") == []  # noqa: S608  # names of our own


def test_a_length_may_be_asked_for_in_place_of_a_rate(chat: Chat) -> None:
    assert made(chat, target_chars=200).target_chars == 200


def test_a_draft_of_the_wrong_length_is_mended_and_both_are_paid_for(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("짧다.", usage=USAGE), kind="summary")
    done = made(chat)
    assert len(server.bodies("summary")) == 2
    assert done.input_tokens > 500
    assert chat.rows(CALLS)[0][3] == done.input_tokens


def test_a_summary_in_the_wrong_language_gives_way_to_sentences_of_the_source(chat: Chat, server: FakeOpenAI) -> None:
    foreign = text("Перенос сервера назначен на октябрь, ответственный выбран, бюджет утвержден полностью. " * 3)
    server.script(foreign, foreign, kind="summary")
    done = made(chat)
    assert (done.outcome, done.error_code) == ("picked", "summary_language")
    assert all(line in str(TALK) for line in done.summary.split(". ")[:1])
    assert done.summary_chars < done.original_chars


def test_a_failed_repair_leaves_the_draft(chat: Chat, server: FakeOpenAI) -> None:
    draft = "서버 이전은 10월에 하며 담당자는 김민수, 예산은 120만 원입니다. 빠진 점을 함께 확인합니다."
    server.script(text(draft), failure(401), kind="summary")
    done = made(chat)
    assert "김민수" in done.summary
    assert chat.rows(CALLS)[0][-1] == "authentication"


def test_the_error_of_a_model_that_wrote_nothing_is_raised(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(401), kind="summary")
    with pytest.raises(AuthenticationError):
        made(chat)
    assert chat.rows(CALLS) == [("local", "tester", "scripted-model", None, None, "authentication")]


def test_a_short_text_is_summarised_too(chat: Chat, server: FakeOpenAI) -> None:
    done = made(chat, (ClientMessage("user", question(1)),), target_chars=40)
    assert len(server.bodies("summary")) == 1
    assert done.summary


def test_one_sentence_that_nothing_is_shorter_than_stands_as_it_is(open_chat: OpenChat) -> None:
    chat = open_chat(openai_api_key=None, openai_base_url=None)
    done = made(chat, (ClientMessage("user", "네."),))
    assert (done.kind, done.outcome) == ("verbatim", "inflated")
    assert "네." in done.summary


def test_without_an_endpoint_sentences_are_picked_and_nothing_is_paid(open_chat: OpenChat) -> None:
    chat = open_chat(openai_api_key=None, openai_base_url=None)
    done = made(chat, rate=0.2)
    assert (done.input_tokens, done.output_tokens) == (0, 0)
    assert done.summary_chars < done.original_chars
    assert chat.rows(CALLS) == []


@pytest.mark.parametrize(("language", "words"), [("ko", "줄입니다"), ("en", "condense"), (None, "줄입니다")])
def test_the_language_is_that_of_the_request_or_of_its_first_message(
    chat: Chat, server: FakeOpenAI, language: str | None, words: str
) -> None:
    made(chat, language=language)
    assert words in server.bodies("summary")[0]["messages"][0]["content"]


def test_calls_and_results_of_tools_are_summarised_with_the_rest(chat: Chat, server: FakeOpenAI) -> None:
    call = ClientCall("call-1", "look_up", '{"id": "A-17"}')
    messages = (
        *TALK[:1],
        ClientMessage("assistant", "", calls=(call,)),
        ClientMessage("tool", "A-17: 재고 3개", call_id="call-1"),
        *TALK[1:],
    )
    made(chat, messages)
    assert "재고 3개" in str(server.bodies("summary")[0]["messages"])


@pytest.mark.parametrize("text_sent", ["", " \u200b", "\u3164"])
def test_nothing_is_refused(chat: Chat, text_sent: str) -> None:
    with pytest.raises(InputError) as caught:
        made(chat, (ClientMessage("user", text_sent),))
    assert caught.value.reason == "empty"


def test_what_no_window_holds_is_refused(chat: Chat) -> None:
    with pytest.raises(InputError) as caught:
        made(chat, (ClientMessage("user", "가" * 2_000_001),))
    assert caught.value.reason == "too_long"


def test_a_rate_outside_its_bounds_is_refused(chat: Chat) -> None:
    with pytest.raises(InputError) as caught:
        made(chat, rate=0.9)
    assert caught.value.reason == "bad_rate"


def test_a_summary_takes_a_slot_of_the_turns_and_gives_it_back(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1)
    server.script(hang("음"), to="질문 9번")
    chat.start(question(9))
    with pytest.raises(ServerBusyError):
        made(chat)
    chat.stop_when(lambda live: bool(live.text))
    chat.wait_for_folds()
    assert made(chat).summary
    assert made(chat).summary


def test_summaries_count_among_the_turns_of_a_minute(open_chat: OpenChat) -> None:
    chat = open_chat(turns_per_minute=1)
    made(chat)
    with pytest.raises(TurnRateError):
        made(chat)
