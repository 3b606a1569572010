from __future__ import annotations

import pytest

from graph.value.client import ClientMessage
from graph.value.error import AuthenticationError, InputError, ServerBusyError, TurnRateError
from graph.value.event import ClientCall
from graph.value.record import Record
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


def made(chat: Chat, messages: tuple[ClientMessage, ...] = TALK, **asked: object) -> Record:
    return chat.service.summaries.make(messages, client=chat.session_id, **asked)  # type: ignore[arg-type]  # each test's own


def calls(chat: Chat) -> list[tuple[object, ...]]:
    """What was paid for the summaries of this test."""
    columns = "owner, model, usage_input_tokens, usage_output_tokens, error_code"
    return chat.rows(f"SELECT {columns} FROM aside_call WHERE client = ?", chat.session_id)  # noqa: S608  # names of our own


def test_a_summary_is_made_as_a_fold_is_and_leaves_nothing_but_its_cost(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    call = ClientCall("call-1", "look_up", '{"id": "A-17"}')
    done = made(
        chat,
        (
            *TALK,
            ClientMessage("assistant", "", calls=(call,)),
            ClientMessage("tool", "A-17: 재고 3개", call_id="call-1"),
        ),
        rate=0.3,
    )
    assert done.original_chars >= sum(len(message.text) for message in TALK)
    assert (done.target_chars, done.summary_chars) == (int(done.original_chars * 0.3), len(done.summary))
    assert (done.outcome, done.is_usage, done.model) == ("compressed", True, "scripted-model")
    assert 0.6 * done.target_chars <= done.summary_chars <= 1.3 * done.target_chars
    assert "120만 원" in done.kept_facts
    (body,) = server.bodies("summary")
    assert question(1) in str(body["messages"])
    assert "재고 3개" in str(body["messages"])
    assert calls(chat) == [("local", "scripted-model", done.input_tokens, done.output_tokens, "")]
    for table in ("session", "message", "record", "model_call"):
        assert chat.rows(f"SELECT * FROM {table}") == []  # noqa: S608  # names of our own


def test_a_draft_of_the_wrong_length_is_mended_and_both_are_paid_for(chat: Chat, server: FakeOpenAI) -> None:
    usage = {"prompt_tokens": 500, "completion_tokens": 90, "total_tokens": 590}
    server.script(text("짧다.", usage=usage), kind="summary")
    done = made(chat)
    assert len(server.bodies("summary")) == 2
    assert done.input_tokens > 500
    assert calls(chat)[0][2] == done.input_tokens


def test_a_summary_in_the_wrong_language_gives_way_to_sentences_of_the_source(chat: Chat, server: FakeOpenAI) -> None:
    foreign = text("Перенос сервера назначен на октябрь, ответственный выбран, бюджет утвержден полностью. " * 3)
    server.script(foreign, foreign, kind="summary")
    done = made(chat)
    assert (done.outcome, done.error_code) == ("picked", "summary_language")
    assert all(line in str(TALK) for line in done.summary.split(". ")[:1])
    assert done.summary_chars < done.original_chars


def test_a_failed_repair_leaves_the_draft_and_the_error_of_a_model_that_wrote_nothing_is_raised(
    chat: Chat, server: FakeOpenAI
) -> None:
    draft = "서버 이전은 10월에 하며 담당자는 김민수, 예산은 120만 원입니다. 빠진 점을 함께 확인합니다."
    server.script(text(draft), failure(401), failure(401), kind="summary")
    assert "김민수" in made(chat).summary
    assert calls(chat)[0][-1] == "authentication"
    with pytest.raises(AuthenticationError):
        made(chat)
    assert ("local", "scripted-model", None, None, "authentication") in calls(chat)


def test_a_short_text_is_summarised_too(chat: Chat, server: FakeOpenAI) -> None:
    done = made(chat, (ClientMessage("user", question(1)),), target_chars=40)
    assert len(server.bodies("summary")) == 1
    assert (bool(done.summary), done.target_chars) == (True, 40)


def test_an_answer_before_the_first_question_is_a_turn_of_its_own(chat: Chat, server: FakeOpenAI) -> None:
    made(chat, (ClientMessage("assistant", "안녕하세요. 무엇을 도와드릴까요?"), *TALK))
    (body,) = server.bodies("summary")
    asked = str(body["messages"])
    assert [f'turn="{number}" from="user"' in asked for number in range(1, 5)] == [False, True, True, True]


def test_without_an_endpoint_sentences_are_picked_and_nothing_is_paid(open_chat: OpenChat) -> None:
    chat = open_chat(openai_api_key=None, openai_base_url=None)
    done = made(chat, rate=0.2)
    assert (done.input_tokens, done.output_tokens) == (0, 0)
    assert done.summary_chars < done.original_chars
    assert calls(chat) == []
    # A sentence that nothing is shorter than stands as it is.
    done = made(chat, (ClientMessage("user", "네."),))
    assert (done.kind, done.outcome, done.summary) == ("verbatim", "inflated", "네.")


@pytest.mark.parametrize(("language", "words"), [("en", "Condense"), (None, "메모로 줄입니다")])
def test_the_language_is_that_of_the_request_or_of_its_first_message(
    chat: Chat, server: FakeOpenAI, language: str | None, words: str
) -> None:
    made(chat, language=language)
    assert words in server.bodies("summary")[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("sent", "rate", "reason"),
    [
        (" \u200b", 0.3, "empty"),
        ("\u3164", 0.3, "empty"),
        ("가" * 2_000_001, 0.3, "too_long"),
        ("네.", 0.9, "bad_rate"),
    ],
    ids=["blank", "filler", "long", "rate"],
)
def test_what_cannot_be_summarised_is_refused_with_its_reason(chat: Chat, sent: str, rate: float, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        made(chat, (ClientMessage("user", sent),), rate=rate)
    assert caught.value.reason == reason


def test_a_summary_takes_a_slot_of_the_turns_and_gives_it_back(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1, turns_per_minute=3)
    server.script(hang("음"), to="질문 9번")
    chat.start(question(9))
    with pytest.raises(ServerBusyError):
        made(chat)
    chat.stop_when(lambda live: bool(live.text))
    chat.wait_for_folds()
    assert made(chat).summary
    assert made(chat).summary
    # They count among the turns of a minute.
    with pytest.raises(TurnRateError):
        made(chat)
