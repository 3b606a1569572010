from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from sqlalchemy import Engine, event

from graph.service import ChatService
from graph.value.error import BusyError
from graph.value.event import TurnFinished, TurnStopped
from graph.value.view import LiveTurn
from tests.fake.chat import Chat, question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.postgres import PostgresServer
from tests.fake.program import tool
from tests.fake.resending import Program, Reading, assistant, result, user

LOOK = tool("look")
ANSWER = "먼저 복제하고, 그다음에 옮기고, 마지막에 확인합니다."
LONG_SECONDS = 30.0


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow])]
)
def servers(
    request: pytest.FixtureRequest, endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ChatService, ChatService]]:
    """Two servers over one file, or over one Postgres and no folder in common."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        own: list[dict[str, object]] = [{}, {}]
        if request.param == "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            url = server.make_database(request.getfixturevalue("postgres_template"))
            stack.callback(server.drop_database, url)
            own = [{"chat_database_url": url, "turnfold_data_dir": folder / name} for name in ("here", "there")]
        open_chat = stack.enter_context(chat_opener(settings_maker(folder / "data", endpoint.url)))
        yield open_chat(**own[0]).service, open_chat(**own[1]).service


@pytest.fixture
def here(servers: tuple[ChatService, ChatService], server: FakeOpenAI) -> Iterator[Chat]:
    chat = Chat(servers[0])
    yield chat
    server.end_hanging()
    chat.wait_for_folds()


@pytest.fixture
def there(servers: tuple[ChatService, ChatService], here: Chat) -> Chat:
    """The same session at the other server."""
    return Chat(servers[1], here.session_id)


def followed(chat: Chat) -> list[LiveTurn]:
    """Everything that a page shows of a running turn, until its end."""
    seen = [chat.service.turns.live(chat.session_id)]
    while seen[-1] is not None:
        seen.append(chat.service.turns.live(chat.session_id, seen=seen[-1], wait_seconds=LONG_SECONDS))
    return [live for live in seen if live is not None]


def program_of(chat: Chat, **options: object) -> Program:
    """A program of a user of its own, whose chats are no other test's."""
    return Program(chat.service, fields={"user": chat.session_id}, options=options)


def other_of(program: Program, chat: Chat) -> Program:
    """The same program at another server."""
    return Program(chat.service, program.name, [*program.messages], program.fields, program.options)


def test_a_turn_is_listed_shown_and_stopped_by_a_server_that_does_not_run_it(
    here: Chat, there: Chat, server: FakeOpenAI
) -> None:
    server.script(hang("부분"))
    here.start(question(1))
    there.wait_until_live(lambda live: live.text == "부분")
    assert [item.session_id for item in there.service.sessions.list() if item.is_running] == [here.session_id]
    assert there.view.is_running
    with pytest.raises(BusyError):
        there.start(question(2))
    there.service.turns.stop(there.session_id)
    assert here.events()[-1] == TurnStopped(1, "부분")
    assert there.last_turn.status == "stopped"
    assert there.last_turn.answer_text == "부분"


def test_while_only_the_text_of_a_turn_elsewhere_grows_its_messages_are_not_read_again(
    here: Chat, there: Chat, server: FakeOpenAI
) -> None:
    reads: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if threading.current_thread().name == "turn-poll" and "message.content" in statement:
            reads.append(statement)

    server.script(text(*f"{ANSWER} " * 3, pause_seconds=0.03))
    here.start(question(1))
    there.wait_until_live(lambda live: bool(live.text))
    event.listen(Engine, "before_cursor_execute", note)
    try:
        texts = {live.text for live in followed(there)}
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(texts) > 2
    assert len(reads) <= 1  # the answer, once it is archived


def test_what_is_shown_elsewhere_looks_as_it_does_where_it_runs(here: Chat, there: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="잠시만요."), hang("지금은"))
    here.start(question(1))
    here.wait_until_live(lambda live: live.text == "잠시만요.\n\n지금은")
    there.wait_until_live(lambda live: live.text == "잠시만요.\n\n지금은")
    shown, told = (chat.service.turns.live(chat.session_id) for chat in (here, there))
    assert shown is not None
    steps = tuple(replace(step, seconds=round(step.seconds or 0, 3)) for step in shown.steps)
    assert told == replace(shown, steps=steps, phase_since=0.0)  # of the other process's clock
    there.service.turns.stop(there.session_id)
    here.events()


def test_many_followers_elsewhere_are_told_the_same(here: Chat, there: Chat, server: FakeOpenAI) -> None:
    server.script(hang("부분"))
    here.start(question(1))
    there.wait_until_live(lambda live: live.text == "부분")
    started, told = threading.Barrier(6), list[LiveTurn]()

    def follow() -> None:
        seen = there.service.turns.live(there.session_id)
        started.wait(LONG_SECONDS)
        while seen is not None:
            last = seen
            seen = there.service.turns.live(there.session_id, seen=last, wait_seconds=LONG_SECONDS)
        told.append(last)

    threads = [threading.Thread(target=follow) for _ in range(5)]
    for thread in threads:
        thread.start()
    started.wait(LONG_SECONDS)
    here.service.turns.stop(here.session_id)
    for thread in threads:
        thread.join()
    assert [live.text for live in told] == ["부분"] * 5
    assert here.events()


def test_a_turn_that_failed_on_one_server_is_retried_on_the_other(here: Chat, there: Chat, server: FakeOpenAI) -> None:
    server.script(failure(400), text(ANSWER))
    here.say(question(1))
    assert isinstance(there.retry()[-1], TurnFinished)
    assert [(turn.status, turn.attempt) for turn in here.turns] == [("finished", 2)]


def test_folds_of_two_servers_are_made_once(here: Chat, there: Chat, server: FakeOpenAI) -> None:
    for number in range(1, 5):
        chat = (here, there)[number % 2]
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
        here.wait_for_folds()
        there.wait_for_folds()
    assert here.covered == there.covered == [(1, 2, 3)]
    assert here.rows("SELECT status FROM record WHERE session_id = ?", here.session_id) == [("COMPLETED",)]
    assert len(server.bodies("summary")) == 1


@pytest.mark.parametrize("fields", [{"idempotency_key": "once"}, {"is_retry": True}], ids=["key", "library"])
def test_a_request_that_comes_again_at_another_server_is_given_the_running_answer(
    here: Chat, there: Chat, server: FakeOpenAI, fields: dict[str, object]
) -> None:
    server.script(text(ANSWER, pause_seconds=0.1))
    program = program_of(here)
    program.messages.append(user(question(1)))
    first = program.begin(**({} if "is_retry" in fields else fields))
    first.wait_for_text()
    again = other_of(program, there).begin(**fields)
    assert again.completion.id == first.completion.id
    assert isinstance(again.last, TurnFinished)
    assert (again.text, again.end.usage) == (first.text, first.end.usage)
    assert again.last == first.last
    assert len(server.bodies("chat")) == 1


def test_what_a_program_is_told_again_elsewhere_begins_behind_the_calls_that_it_answered(
    here: Chat, there: Chat, server: FakeOpenAI
) -> None:
    server.script(
        tools(ScriptedCall("look", "{}", "call-1"), answer="살펴보겠습니다."), text(ANSWER, pause_seconds=0.1)
    )
    program = program_of(here, tools=(LOOK,))
    program.ask(question(1))
    program.messages.append(result("call-1", "초록"))
    first = program.begin(idempotency_key="once")
    first.wait_for_text()
    again = other_of(program, there).begin(idempotency_key="once")
    assert again.last
    assert (again.completion.id, again.text) == (first.completion.id, first.text)
    assert again.text == ANSWER


def test_a_program_that_leaves_one_server_stops_the_turn_that_the_other_runs(
    here: Chat, there: Chat, server: FakeOpenAI
) -> None:
    server.script(hang("반쯤"))
    program = program_of(here)
    program.messages.append(user(question(1)))
    first = program.begin(idempotency_key="once")
    first.wait_for_text()
    again = other_of(program, there).begin(idempotency_key="once")
    again.wait_for_text()
    again.completion.stop()
    assert first.last == TurnStopped(1, "반쯤")
    assert again.last == TurnStopped(1, "반쯤")


def test_the_next_question_at_another_server_waits_for_the_turn_that_its_program_left(
    here: Chat, there: Chat, server: FakeOpenAI
) -> None:
    program = program_of(here)
    program.ask(question(1))
    server.script(hang("반쯤"))
    program.messages.append(user(question(2)))
    left = program.begin()
    left.wait_for_text()
    left.completion.stop()
    other = other_of(program, there)
    other.messages[-1] = user(question(3))
    reading = other.begin()
    assert isinstance(reading.last, TurnFinished)
    assert left.last


FIRST = "a first message"
ONCE = {
    FIRST: [],
    "a history from elsewhere": [user("Where?"), assistant("There, says another server.")],
    "an edited question": [],
    "a next question": [],
}


@pytest.mark.parametrize("case", ONCE)
def test_whoever_runs_it_a_turn_is_asked_for_once(here: Chat, there: Chat, server: FakeOpenAI, case: str) -> None:
    program = program_of(here)
    if case in {"an edited question", "a next question"}:
        program.ask(question(1))
        program.ask(question(2))
    before = len(server.bodies("chat"))
    program.messages = [*(program.messages[:2] if case == "an edited question" else program.messages), *ONCE[case]]
    program.messages.append(user(f"{question(3)} ({case} of {here.session_id})"))
    readings: list[Reading | BusyError] = []
    programs = [each for each in (program, other_of(program, there)) for _ in "12"]
    gate = threading.Barrier(len(programs))

    def ask(asking: Program) -> None:
        gate.wait()
        try:
            readings.append(asking.begin(idempotency_key="once"))
        except BusyError as error:
            readings.append(error)

    threads = [threading.Thread(target=ask, args=(each,)) for each in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answered = [reading for reading in readings if isinstance(reading, Reading)]
    assert len(answered) == len(programs) or case == "a next question"
    assert len({reading.last for reading in answered}) == 1
    assert len({reading.completion.session_id for reading in answered}) == 1
    assert len(server.bodies("chat")) == before + 1
