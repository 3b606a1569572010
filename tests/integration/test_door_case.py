"""What the real clients meet that send their whole chat again, over the real routes and service."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fake.body import shape, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, text
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI
from tests.fake.real_client import REAL_CHATS, OpenAIChat, RealChat, Told
from tests.fake.resending import counts
from tests.fake.served_door import OTHER_OWNER, OTHER_TOKEN, OWNER, ServedDoor, serve

TITLE = "### Task:\nGenerate a concise title.\n<chat_history>\nUSER: Hi\n</chat_history>"
CHAT_ID = {"X-OpenWebUI-Chat-Id": "c0ffee"}


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedDoor]:
    with serve(chat.service) as door:
        yield door


def ask(program: RealChat, chat: Chat, number: int) -> Told:
    """Asks the question of that number and waits for the folds that its answer causes."""
    told = program.ask(question(number))
    Chat(chat.service.for_owner(OWNER), told.session_id).wait_for_folds()
    return told


def kept(chat: Chat) -> list[str]:
    """All rows of all tables but that of what answers without memory cost."""
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    names = [name for (name,) in chat.rows(tables) if name != "aside_call"]
    assert {"session", "turn", "message", "record", "model_call", "anchor"} <= set(names)
    return [repr(chat.rows(f"SELECT * FROM {name}")) for name in names]  # noqa: S608  # names of our own


@pytest.mark.parametrize("client", REAL_CHATS)
@pytest.mark.parametrize("greeting", ["Hi", "안녕"])
def test_two_chats_that_begin_alike_stay_two(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat], greeting: str
) -> None:
    one, two = client(served.url), client(served.url)
    one.fields = two.fields = {"user": "LibreChat has one for all chats of a user"}
    server.script(text("Hello!"), text("Hello!"))
    sessions = {one.ask(greeting).session_id, two.ask(greeting).session_id}
    assert len(sessions) == 2
    seconds = one.ask(question(1)), two.ask(question(2))
    assert [told.turn for told in seconds] == [2, 2]
    assert {told.session_id for told in seconds} == sessions
    thirds = one.ask(question(3)), two.ask(question(4))
    assert [told.session_id for told in thirds] == [told.session_id for told in seconds]
    assert shape(server.bodies("chat")[-2]) == [1, 3]
    assert shape(server.bodies("chat")[-1]) == [2, 4]
    assert counts(chat)[:2] == [2, 6]


@pytest.mark.parametrize("client", REAL_CHATS)
def test_two_owners_with_equal_histories_share_nothing(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    ours, theirs = client(served.url), client(served.url, token=OTHER_TOKEN)
    for program in (ours, theirs):
        program.fields = {"user": "the same"}
        program.headers = CHAT_ID
    first = ours.ask(question(1))
    assert theirs.ask(question(1)).session_id != first.session_id
    theirs.messages = list(ours.messages)
    assert ours.ask(question(2)).session_id == first.session_id
    last = theirs.ask(question(3))
    assert (last.session_id == first.session_id, last.turn) == (False, 2)
    owners = chat.service.for_owner(OWNER), chat.service.for_owner(OTHER_OWNER)
    assert [[item.session_id for item in owner.sessions.list()] for owner in owners] == [
        [first.session_id],
        [last.session_id],
    ]
    assert shape(server.bodies("chat")[-1]) == [1, 3]


@pytest.mark.parametrize("client", REAL_CHATS)
@pytest.mark.parametrize("task", [{}, {"X-Turnfold-Task": "title_generation"}], ids=["template", "header"])
def test_a_title_request_leaves_archive_folds_and_figures_as_they_were(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat], task: Mapping[str, str]
) -> None:
    program, titles = client(served.url), client(served.url)
    program.headers, titles.headers = CHAT_ID, {**CHAT_ID, **task}
    first = ask(program, chat, 1)
    service = chat.service.for_owner(OWNER)
    before = kept(chat), service.folds.statistics(first.session_id)
    server.script(text("Moving a server"))
    assert titles.ask(TITLE if not task else "Name this chat.") == Told("Moving a server", "", 0, "aside")
    assert len(server.bodies("chat")[-1]["messages"]) == 1
    assert (kept(chat), service.folds.statistics(first.session_id)) == before
    assert ask(program, chat, 2)[1:4] == (first.session_id, 2, "hint")


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_title_request_before_the_chats_first_answer_begins_no_session(
    chat: Chat, served: ServedDoor, client: type[RealChat]
) -> None:
    program, titles = client(served.url), client(served.url)
    program.headers = titles.headers = CHAT_ID
    assert titles.ask(TITLE).matched == "aside"
    assert counts(chat) == [0, 0, 0, 0]
    assert ask(program, chat, 1)[2:4] == (1, "new")


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_title_is_given_while_the_chats_turn_runs(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program, titles = client(served.url), client(served.url)
    program.headers = titles.headers = CHAT_ID
    first, titled = ask(program, chat, 1), threading.Event()
    server.script(lambda body: answer_body(body) if titled.wait(60) else failure(500), to=question(2))
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(program.ask, question(2))
        server.wait_until(lambda _: len(server.bodies("chat", to=question(2))) == 1)
        assert titles.ask(TITLE).matched == "aside"
        titled.set()
        assert asking.result(60)[1:3] == (first.session_id, 2)


@pytest.mark.parametrize("client", REAL_CHATS)
def test_documents_around_the_last_question_make_no_fork(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url)
    first = ask(program, chat, 1)
    for number in (2, 3):
        kept = list(program.messages)
        wrapped = f"Use the context.\n<context>\n문서 {number}\n</context>\n{question(number)}"
        assert program.ask(wrapped)[1:3] == (first.session_id, number)
        assert f"문서 {number}" in str(server.bodies("chat")[-1]["messages"][-1])
        program.messages = [*kept, {"role": "user", "content": question(number)}, program.messages[-1]]
    assert ask(program, chat, 4)[1:3] == (first.session_id, 4)
    assert counts(chat)[:3] == [1, 4, 8]


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_history_cut_to_six_messages_lands_in_its_session_with_its_summaries(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url)
    whole = [ask(program, chat, number) for number in range(1, 10)]
    program.messages = program.messages[-6:]
    for number in (10, 11):
        cut = ask(program, chat, number)
        assert cut[1:4] == (whole[0].session_id, number, "tail")
        program.messages = program.messages[-6:]
    assert shape(server.bodies("chat")[-2]) == [(1, 3), (4, 6), (7, 9), 10]
    assert counts(chat)[:3] == [1, 11, 22]


@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_system_prompt_with_the_time_in_it_makes_no_fork(
    chat: Chat, served: ServedDoor, server: FakeOpenAI, client: type[RealChat]
) -> None:
    program = client(served.url)
    for number in range(1, 6):
        said = {"role": "system", "content": f"Answer briefly. It is 12:0{number}."}
        program.messages = [said, *program.messages[number > 1 :]]
        assert ask(program, chat, number).turn == number
        assert f"It is 12:0{number}." in system_prompt(server.bodies("chat")[-1])
        assert f"It is 12:0{number - 1}." not in system_prompt(server.bodies("chat")[-1])
    assert counts(chat)[:3] == [1, 5, 10]
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]


def test_a_restart_between_any_two_requests_changes_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    with open_chat() as chat, serve(chat.service) as served:
        steady = OpenAIChat(served.url)
        for number in range(1, 8):
            ask(steady, chat, number)
    bodies = server.bodies("chat")
    programs: list[RealChat] = [client("http://127.0.0.1") for client in REAL_CHATS]
    for program in programs:
        program.headers = {"X-Session-Id": type(program).__name__}
    sessions = set()
    for number in range(1, 8):
        for index, program in enumerate(programs):
            with open_chat() as chat, serve(chat.service) as served:
                restarted = type(program)(served.url)
                restarted.messages, restarted.headers = program.messages, program.headers
                sessions.add((index, ask(restarted, chat, number).session_id))
    assert len(sessions) == 2
    after = server.bodies("chat")[len(bodies) :]
    for index in range(2):
        assert [body["messages"] for body in after[index::2]] == [body["messages"] for body in bodies]


def test_an_edit_at_turn_10_of_50_forks_once_and_going_back_returns_to_the_first_branch(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(turns_per_minute=10_000)
    with serve(chat.service) as served:
        program = OpenAIChat(served.url)
        first, *_ = (ask(program, chat, number) for number in range(1, 51))
        sent, before = list(program.messages), server.bodies("chat")
        program.messages = sent[:18]
        fork = program.ask("Something else instead.")
        assert (fork.turn, fork.matched, fork.session_id == first.session_id) == (10, "fork", False)
        assert server.bodies("chat")[-1]["messages"][:-1] == before[9]["messages"][:-1]
        assert ask(program, chat, 11)[1:4] == (fork.session_id, 11, "history")
        assert ask(program, chat, 12)[1:4] == (fork.session_id, 12, "history")
        program.messages = sent
        back = ask(program, chat, 51)
        assert back[1:4] == (first.session_id, 51, "history")
        assert shape(server.bodies("chat")[-1]) == [*((start, start + 2) for start in range(1, 48, 3)), 49, 50, 51]
        assert counts(chat)[:2] == [2, 51 + 12]
