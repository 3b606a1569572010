"""The gauge before a call against that call's own count, within 5 %, in the states that a chat can be in."""

from __future__ import annotations

import pytest

from graph.core.attached import attachment_of, with_attachments
from graph.core.text import IMAGE_TOKENS
from graph.value.event import TurnFailed, TurnFinished
from graph.value.view import NamedImage, TurnOptions
from prompt.system.framing import Language
from tests.fake.body import tokens_of
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted, wait_for_notes

# Says nothing that could be looked up, and as little as a question can say.
SHORT = {"ko": "고마워", "en": "Thanks"}


def silent(body: Body) -> Reply:
    """Answers as the default responder does, and reports no usage."""
    return answer_body(body) if kind_of(body) == "summary" else text("알겠습니다. 그렇게 하겠습니다. " * 12, usage=None)


@pytest.fixture
def chat(open_chat: OpenChat, server: FakeOpenAI) -> Chat:
    server.respond_with(silent)
    return open_chat()


def check(chat: Chat, *, options: TurnOptions | None = None, language: Language = "ko") -> int:
    """Compares the gauge with the next call, whose question is the short one; returns the gauge's tokens."""
    is_new = not chat.rows("SELECT 1 FROM session WHERE session_id = ?", chat.session_id)
    folds = chat.service.folds
    gauge = folds.gauge(None if is_new else chat.session_id, options=options, language=language if is_new else None)
    assert isinstance(chat.say(SHORT[language], options=options)[-1], TurnFinished)
    assert gauge.sent_tokens == pytest.approx(sent_tokens(chat), rel=0.05)
    return gauge.sent_tokens


def sent_tokens(chat: Chat) -> int:
    query = "SELECT sent_tokens FROM model_call WHERE session_id = ? AND kind = 'answer' ORDER BY turn DESC LIMIT 1"
    ((tokens,),) = chat.rows(query, chat.session_id)
    return int(tokens)


def test_an_empty_page_counts_prompt_and_tools_in_its_language(chat: Chat, open_chat: OpenChat) -> None:
    korean = check(chat)
    english = check(open_chat(), language="en")
    assert korean != english


@pytest.mark.parametrize("language", ["ko", "en"])
def test_an_example_that_no_model_was_called_for(chat: Chat, language: Language) -> None:
    example = Chat(chat.service, chat.service.sessions.open_example(language))
    assert check(example, language=language) > 900


def test_a_branch_that_has_made_no_call(chat: Chat) -> None:
    chat.ask(1, 5)
    branch = chat.service.turns.fork(chat.session_id, after_turn=5)
    check(Chat(chat.service, branch))


def test_turns_that_failed(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(500), failure(500))
    assert isinstance(chat.say(question(1))[-1], TurnFailed)
    assert isinstance(chat.say(question(2))[-1], TurnFailed)
    check(chat)


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_project_with_rules_and_memory(
    project_folder: Rooted,
    server: FakeOpenAI,
    is_begun: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    server.respond_with(silent)
    project_folder.write("AGENTS.md", "커밋 글은 한국어로 씁니다.\n" * 20)
    chat = project_folder.open()
    project_folder.agree(chat)
    options = project_folder.options()
    chat.say(question(1), options=options)
    wait_for_notes(chat)
    if not is_begun:
        chat = Chat(chat.service)
    alone = chat.service.folds.gauge(None).sent_tokens
    assert check(chat, options=options) > alone + 300


def test_after_a_compaction_and_its_undo(chat: Chat) -> None:
    chat.ask(1, 9)
    folds = chat.service.folds
    before = folds.gauge(chat.session_id).sent_tokens
    record = folds.compact(chat.session_id)
    compacted = folds.gauge(chat.session_id).sent_tokens
    # The summary of turns 7 to 9, which the next question would have taken, is no longer needed.
    assert compacted != before
    folds.restore(chat.session_id, record.id)
    assert folds.gauge(chat.session_id).sent_tokens > compacted
    folds.compact(chat.session_id)
    check(chat)


def test_after_a_reset(chat: Chat) -> None:
    chat.ask(1, 5)
    before = chat.service.folds.gauge(chat.session_id).sent_tokens
    chat.service.folds.reset(chat.session_id)
    assert check(chat) < before - 300


def test_after_a_pin_and_a_fold_that_was_undone(chat: Chat) -> None:
    chat.ask(1, 5)
    folds = chat.service.folds
    before = folds.gauge(chat.session_id).sent_tokens
    folds.pin(chat.session_id, chat.turns[0].user_message_id)
    pinned = folds.gauge(chat.session_id).sent_tokens
    assert pinned > before + 50
    folds.undo(chat.session_id, folds.records(chat.session_id)[0].id)
    assert check(chat) > pinned


def test_after_another_answer_was_chosen(chat: Chat) -> None:
    chat.ask(1, 2)
    chat.regenerate()
    chat.wait_for_folds()
    chat.ask(3, 9)
    chat.service.sessions.choose_attempt(chat.session_id, 2, 1)
    chat.wait_for_folds()
    check(chat)
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]


def test_right_after_a_fold_is_ready(chat: Chat) -> None:
    chat.ask(1, 3)
    assert chat.covered == []  # adopted by the next turn alone
    whole = sum(count for (count,) in chat.rows("SELECT tokens FROM message WHERE session_id = ?", chat.session_id))
    assert check(chat) < chat.service.folds.gauge(None).sent_tokens + whole
    assert chat.covered == [(1, 2, 3)]


@pytest.mark.parametrize("strategy", ["window", "rolling", "compaction"])
def test_other_strategies(chat: Chat, strategy: str) -> None:
    options = TurnOptions(strategy=strategy)
    check(chat, options=options)
    chat.ask(2, 5)
    check(chat)
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.wait_for_folds()
    check(chat)


def test_a_model_without_tools_is_sent_none(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.respond_with(silent)
    server.models = [{"id": "scripted-model", "supported_parameters": ["temperature"]}]
    chat = open_chat()
    chat.service.sessions.model_options()
    with_tools = open_chat(chat_model="other").service.folds.gauge(None).sent_tokens
    assert check(chat) < with_tools - 200


def test_the_files_of_the_next_message_count(chat: Chat) -> None:
    chat.ask(1, 2)
    note = attachment_of("note.txt", "오늘 회의에서 예산 4,500만 원을 승인했습니다. " * 60)
    image = NamedImage("chart.png", "data:image/png;base64,iVBORw0K")
    folds = chat.service.folds
    before = folds.gauge(chat.session_id).sent_tokens
    gauge = folds.gauge(chat.session_id, files=(note, image))
    chat.service.turns.send(chat.session_id, with_attachments(SHORT["ko"], [note], "ko"), images=[image])
    assert isinstance(chat.events()[-1], TurnFinished)
    assert gauge.sent_tokens == pytest.approx(sent_tokens(chat), rel=0.05)
    assert gauge.sent_tokens > before + IMAGE_TOKENS + 500


def test_it_counts_as_the_provider_does_and_tells_its_report_apart(chat: Chat, server: FakeOpenAI) -> None:
    empty = chat.service.folds.gauge(None)
    assert (empty.window_tokens, empty.reported_tokens, empty.is_guess) == (100_000, None, False)

    def counting(body: Body) -> Reply:
        sent = round(1.4 * tokens_of(body))
        return text(
            "알겠습니다. " * 20, usage={"prompt_tokens": sent, "completion_tokens": 9, "total_tokens": sent + 9}
        )

    server.respond_with(lambda body: answer_body(body) if kind_of(body) == "summary" else counting(body))
    chat.ask(1, 2)
    before = chat.service.folds.gauge(chat.session_id)
    chat.say(SHORT["ko"])
    after = chat.service.folds.gauge(chat.session_id)
    assert before.sent_tokens == pytest.approx(after.reported_tokens, rel=0.05)
    # A report is of the last input, and stays that; what would be sent next is less now.
    chat.service.folds.reset(chat.session_id)
    assert chat.service.folds.gauge(chat.session_id).reported_tokens == after.reported_tokens
    assert chat.service.folds.gauge(chat.session_id).sent_tokens < after.sent_tokens


def test_to_look_changes_nothing(chat: Chat) -> None:
    chat.ask(1, 3)
    tables = ("session", "record", "context_block", "model_call", "message", "turn")
    before = [chat.rows(f"SELECT * FROM {table}") for table in tables]  # noqa: S608  # names of our own
    chat.service.folds.gauge(chat.session_id)
    chat.service.folds.gauge(None)
    assert [chat.rows(f"SELECT * FROM {table}") for table in tables] == before  # noqa: S608  # names of our own
