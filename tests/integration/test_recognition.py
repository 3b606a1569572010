"""Which session and turn a program's request goes on with, over real stores; drawn chats at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event
from sqlalchemy import Engine as DatabaseEngine

from graph.value.client import ClientMessage, ClientOptions, Hint
from graph.value.error import NotFoundError
from graph.value.event import ClientCall
from tests.fake.drawn import at_most
from tests.fake.http_api import HttpApi, assistant, dialogue, engine_of, user, with_access
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker

LONG = "한 문장이 열 자를 넘는다. " * 20
OPEN_WEBUI = "x-openwebui-chat-id"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenChat]:
    """Opens servers over one folder, of which none calls a model."""
    with chat_opener(settings_maker(tmp_path_factory.mktemp("api") / "data", "http://127.0.0.1:9/v1")) as opened:
        yield opened


@pytest.fixture(scope="module")
def opened(servers: OpenChat) -> HttpApi:
    return HttpApi(engine_of(servers().service))


@pytest.fixture
def http_api(opened: HttpApi) -> HttpApi:
    return HttpApi(opened.engine)


def test_chat_that_resends_everything_stays_in_one_session(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(12)
    decision = http_api.decide([*history, user("and then?")])
    assert (decision.kind, decision.matched, decision.session_id) == ("append", "history", session_id)
    assert (decision.imported, decision.preamble, decision.stop_first) == ((), (), False)
    assert http_api.texts(session_id) == [message.text for message in history]


@contextmanager
def counted_reads() -> Iterator[Callable[[], tuple[int, int]]]:
    """Yields what counts the statements so far, and the steps of SQLite's machine that they took, in tens."""
    counts = [0, 0]

    def before(connection: Connection, *_: Any) -> None:  # noqa: ANN401  # SQLAlchemy's signature
        counts[0] += 1
        driver: Any = connection.connection.dbapi_connection
        driver.set_progress_handler(step, 10)

    def step() -> int:
        counts[1] += 1
        return 0

    event.listen(DatabaseEngine, "before_cursor_execute", before)
    try:
        yield lambda: (counts[0], counts[1])
    finally:
        event.remove(DatabaseEngine, "before_cursor_execute", before)


def test_a_history_of_500_messages_is_recognised_by_few_reads(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(250)
    other = [replace(message, text=f"other {message.text}") for message in history]
    for messages, kind, most_statements, most_tens in (
        (history, "append", 4, 200),
        (history[-20:], "append", 10, 900),
        (history[:250], "fork", 7, 500),
        (other, "new", 6, 600),
    ):
        with counted_reads() as count:
            decision = http_api.decide([*messages, user("and then?")])
        statements, tens = count()
        assert (decision.kind, decision.session_id) == (kind, "" if kind == "new" else session_id)
        assert statements <= most_statements
        assert 0 < tens <= most_tens


def test_hundreds_of_questions_in_a_row_are_looked_for_at_once(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(1)
    asked = [*history, *(user(f"question {number} of many") for number in range(300))]
    with counted_reads() as count:
        decision = http_api.decide(asked)
    assert (decision.kind, decision.session_id) == ("append", session_id)
    assert count()[0] <= 6


def test_chats_that_begin_alike_stay_two(http_api: HttpApi) -> None:
    greeting = "안녕"
    first, second = http_api.ask([user(greeting)], "Hello!"), http_api.ask([user(greeting)], "Hello!")
    assert (first.decision.kind, second.decision.kind) == ("new", "new")
    one = http_api.ask([*dialogue(greeting, "Hello!"), user("About cats")], "Cats purr.")
    other = http_api.ask([*dialogue(greeting, "Hello!"), user("About dogs")], "Dogs bark.")
    assert {one.session_id, other.session_id} == {first.session_id, second.session_id}
    cats = http_api.decide([*dialogue(greeting, "Hello!", "About cats", "Cats purr."), user("more")])
    dogs = http_api.decide([*dialogue(greeting, "Hello!", "About dogs", "Dogs bark."), user("more")])
    assert (cats.session_id, dogs.session_id) == (one.session_id, other.session_id)


def test_two_end_users_with_equal_histories_share_nothing(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(3)
    assert http_api.decide([*history, user("?")]).session_id == session_id
    for elsewhere in (replace(http_api, scope="somebody else"), replace(http_api, scope="")):
        decision = elsewhere.decide([*history, user("?")])
        assert (decision.kind, decision.session_id, decision.imported) == ("new", "", tuple(history))
        with pytest.raises(NotFoundError):
            replace(http_api, scope="somebody else").decide([user("?")], session=session_id)


def test_two_owners_with_equal_histories_share_nothing(opened: HttpApi) -> None:
    mine, theirs = HttpApi(opened.engine, "same"), HttpApi(with_access(opened.engine, owner="bob"), "same")
    history, session_id = mine.chat(3)
    assert theirs.decide([*history, user("?")]).kind == "new"
    with pytest.raises(NotFoundError):
        theirs.decide([*history, user("?")], session=session_id)


def test_restart_between_two_requests_changes_nothing(opened: HttpApi, servers: OpenChat) -> None:
    before = HttpApi(opened.engine)
    history, session_id = before.chat(2)
    after = HttpApi(engine_of(servers().service), before.scope)
    assert after.decide([*history, user("?")]).session_id == session_id


def test_shortened_history_lands_in_its_session(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(12)
    for messages in (6, 7, 20):
        decision = http_api.decide([*history, user("?")][-messages:])
        assert (decision.kind, decision.matched, decision.session_id) == ("append", "tail", session_id)
        assert (decision.preamble, decision.imported) == ((), ())
    # Some programs keep the first and the newest messages.
    ends = http_api.decide([*history[:2], *history[-6:], user("?")])
    assert (ends.kind, ends.session_id, ends.preamble) == ("append", session_id, ())


def test_what_a_program_puts_in_front_is_its_own_context_in_every_turn(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(5)
    front = dialogue("the files are: a.py, b.py", "Ok.")
    cut = [*front, *history[-4:]]
    for number in range(3):
        asked = [*cut, user(f"change {number}")]
        done = http_api.ask(asked, f"changed {number}")
        assert (done.decision.kind, done.session_id, done.decision.preamble) == ("append", session_id, front)
        cut = [*asked, assistant(f"changed {number}")]


def test_one_short_answer_is_no_proof(http_api: HttpApi) -> None:
    http_api.ask([user("documents\n\nHi")], "Hello!")
    decision = http_api.decide([*dialogue("Hi", "Hello!"), user("?")])
    assert (decision.kind, decision.imported) == ("new", dialogue("Hi", "Hello!"))


@pytest.mark.parametrize("talk", [("Continue", "Ok.", "Go on", "Ok."), ("계속해 줘", "네.", "다음 것", "네.")])
@pytest.mark.parametrize("front", [(), ("Hello, I am Bob.", "Hi Bob, nice to meet you today!")])
def test_small_talk_at_the_end_of_a_history_is_no_proof(
    http_api: HttpApi, talk: tuple[str, ...], front: tuple[str, ...]
) -> None:
    history = list(dialogue("My PIN is 4711, keep it for me.", "I keep it for you: 4711."))
    http_api.ask(history[:1], history[1].text)
    for question, answer in (talk[:2], talk[2:]):
        http_api.ask([*history, user(question)], answer)
        history += dialogue(question, answer)
    assert http_api.decide([*dialogue(*front, *talk), user("What is my PIN?")]).kind == "new"


def test_one_exchange_is_enough_at_the_end_of_a_shortened_history_and_two_are_anywhere(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(3)
    own = dialogue("an example", "Ok.")
    for known, is_found in ((history[-2:], True), ([*history[-2:], *own], False), ([*history[-4:], *own], True)):
        assert http_api.decide([*known, user("and then?")]).session_id == (session_id if is_found else "")


def test_a_chat_that_began_otherwise_is_another_one(http_api: HttpApi) -> None:
    asked = ("When do you open on Mondays?", "At nine.", "And when do you close then?", "At six in the evening.")
    history = list(dialogue("My PIN is 4711, keep it for me.", "I keep it for you: 4711."))
    http_api.ask(history[:1], history[1].text)
    for question, answer in (asked[:2], asked[2:]):
        session_id = http_api.ask([*history, user(question)], answer).session_id
        history += dialogue(question, answer)
    front = dialogue("Hello, I am Bob and new here.", "Hi Bob, nice to meet you today!")
    assert http_api.decide([*front, *dialogue(*asked), user("What is my PIN?")]).kind == "new"
    for cut in ((), dialogue("The files of the shop are a.py and b.py", "Ok.")):
        assert http_api.decide([*cut, *dialogue(*asked), user("And on Tuesdays?")]).session_id == session_id


def test_two_sessions_with_as_much_of_a_shortened_history_are_no_proof(http_api: HttpApi) -> None:
    for number in range(2):
        http_api.ask([*dialogue(f"front {number}", "foreign"), user("same")], LONG)
    assert http_api.decide([*dialogue("same", LONG), user("?")]).kind == "new"


@pytest.mark.parametrize("asks_as", ["bob", "nobody"])
def test_the_end_of_a_history_never_leads_into_the_chat_of_another_id(http_api: HttpApi, asks_as: str) -> None:
    """Ann and Bob talk behind one token; a front end sends the id of each chat."""
    ann, bob = Hint(OPEN_WEBUI, "ann-1"), Hint(OPEN_WEBUI, "bob-9")
    small_talk = dialogue("Hello", "Hello! How can I help you today?", "Thanks", "You're welcome!")
    hers = http_api.ask([user("My PIN is 4711."), assistant("Noted."), *small_talk[:1]], small_talk[1].text, hint=ann)
    history = [user("My PIN is 4711."), assistant("Noted."), *small_talk]
    assert http_api.ask(history[:-1], small_talk[3].text, hint=ann).session_id == hers.session_id
    asked = [*small_talk, user("What is my PIN?")]
    decision = http_api.decide(asked, hint=bob if asks_as == "bob" else None)
    assert (decision.kind, decision.imported) == ("new", small_talk)
    assert http_api.decide(asked, hint=ann).session_id == hers.session_id
    long = http_api.ask([*history, user("A poem?")], LONG, hint=ann)
    assert http_api.decide([assistant(LONG), user("Whose?")], hint=bob).kind == "new"
    # Who names the session means it.
    assert http_api.decide(asked, session=hers.session_id, hint=bob).session_id == long.session_id


def test_documents_around_a_question_fork_nothing(http_api: HttpApi) -> None:
    history: list[ClientMessage] = []
    sessions = set()
    for number in range(6):
        question = user(f"question {number}?")
        wrapped = user(f"### Context\n{LONG}\n### Question\n{question.text}")
        sessions.add(http_api.ask([*history, wrapped], f"{LONG} {number}").session_id)
        history += [question, assistant(f"{LONG} {number}")]
    assert len(sessions) == 1
    assert len(http_api.texts(sessions.pop())) == len(history)


def test_turns_of_the_page_in_between_make_no_history_old(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(3)
    http_api.page_says(session_id, "from the page", "to the page")
    on = http_api.ask([*history, user("on")], "and on")
    assert (on.decision.kind, on.session_id, on.turn, on.decision.preamble) == ("append", session_id, 5, ())
    cut = http_api.decide([*history[-4:], user("on"), assistant("and on"), user("?")])
    assert (cut.kind, cut.session_id, cut.preamble) == ("append", session_id, ())


def test_another_program_of_the_same_owner_goes_on_with_the_session(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(2)
    other = replace(http_api, options=ClientOptions("script"))
    assert other.ask([*history, user("on")], "and on").session_id == session_id


def test_several_models_in_one_chat_keep_their_answers(http_api: HttpApi) -> None:
    hint = Hint(OPEN_WEBUI, "chat-1")
    first = http_api.ask([user("Which?")], "one", hint=hint, model="one")
    second = http_api.ask([user("Which?")], "two", hint=hint, model="two")
    assert (second.decision.kind, second.decision.after_turn) == ("fork", 0)
    for done, answer in ((first, "one"), (second, "two")):
        decision = http_api.decide([*dialogue("Which?", answer), user("?")], hint=hint)
        assert (decision.kind, decision.matched, decision.session_id) == ("append", "hint", done.session_id)


def test_models_that_answer_with_the_same_words_go_on_each_in_its_session(http_api: HttpApi) -> None:
    hint = Hint(OPEN_WEBUI, "chat-8")
    started = [http_api.ask([user("Which?")], "same", hint=hint, model=model) for model in ("one", "two")]
    on = [
        http_api.ask([*dialogue("Which?", "same"), user("On")], name, hint=hint, model=name) for name in ("one", "two")
    ]
    assert [each.decision.kind for each in on] == ["append", "append"]
    assert {each.session_id for each in on} == {each.session_id for each in started}


def test_named_session_needs_no_history(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(2)
    decision = http_api.decide([user("on")], session=session_id)
    assert (decision.kind, decision.matched, decision.session_id) == ("append", "header", session_id)
    with_history = http_api.decide([*history, user("on")], session=session_id)
    assert (with_history.kind, with_history.matched, with_history.preamble) == ("append", "header", ())
    unknown = http_api.decide([*dialogue("never", "said"), user("on")], session=session_id)
    assert (unknown.kind, unknown.session_id, unknown.context) == ("append", session_id, dialogue("never", "said"))
    with pytest.raises(NotFoundError):
        http_api.decide([user("on")], session="absent")


def test_the_same_question_in_a_named_session_is_asked_once_more(http_api: HttpApi) -> None:
    session_id = http_api.ask([user("What time is it?")], "Noon.").session_id
    again = http_api.ask([user("What time is it?")], "One.", session=session_id)
    assert (again.decision.kind, again.session_id, again.turn) == ("append", session_id, 2)
    third = http_api.decide([user("What time is it?")], session=session_id)
    assert (third.kind, third.session_id) == ("append", session_id)


def test_named_session_is_the_only_one_that_counts(http_api: HttpApi) -> None:
    history, _ = http_api.chat(2)
    other = http_api.ask([user("another")], "chat")
    assert http_api.decide([*history, user("on")], session=other.session_id).session_id == other.session_id


def test_hint_names_a_group_and_the_history_its_branch(http_api: HttpApi) -> None:
    hint = Hint(OPEN_WEBUI, "chat-2")
    first = http_api.ask([user("Hi")], "Hello!", hint=hint)
    again = http_api.ask([user("Hi")], "Good day!", hint=hint)
    assert (again.decision.kind, again.session_id) == ("regenerate", first.session_id)
    edited = http_api.ask([user("Hi there")], "Hey!", hint=hint)
    assert (edited.decision.kind, edited.decision.group) == ("new", first.decision.group)
    other_chat = http_api.ask([user("Hi")], "Hello!", hint=Hint(OPEN_WEBUI, "chat-3"))
    assert other_chat.decision.kind == "new"
    assert http_api.decide([*dialogue("Hi", "Good day!"), user("?")], hint=hint).session_id == first.session_id
    assert http_api.decide([*dialogue("Hi there", "Hey!"), user("?")], hint=hint).session_id == edited.session_id


def test_one_pair_is_enough_with_a_hint(http_api: HttpApi) -> None:
    hint = Hint(OPEN_WEBUI, "chat-4")
    history, session_id = http_api.chat(3, hint=hint)
    decision = http_api.decide([*history[-2:], user("?")], hint=hint)
    assert (decision.kind, decision.session_id) == ("append", session_id)
    assert http_api.decide([*history[-2:], user("?")]).kind == "new"  # without the id, which its chat has


def test_what_is_the_same_for_all_chats_is_no_hint(http_api: HttpApi) -> None:
    for hint in (Hint(OPEN_WEBUI, "local:abc"), Hint("user", "ann"), Hint("x-session-id", "")):
        assert http_api.ask([user("Hi")], "Hello!", hint=hint).decision.group == ""
        assert http_api.decide([user("Hi")], hint=hint).kind == "new"


def test_history_wins_over_a_hint(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(3, hint=Hint(OPEN_WEBUI, "chat-5"))
    decision = http_api.decide([*history, user("?")], hint=Hint(OPEN_WEBUI, "chat-6"))
    assert (decision.kind, decision.matched, decision.session_id) == ("append", "history", session_id)


def test_requests_of_a_front_end_itself_are_aside(http_api: HttpApi) -> None:
    hint = Hint(OPEN_WEBUI, "chat-7")
    title = user("### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: Hi\n</chat_history>")
    assert http_api.decide([title], hint=hint).kind == "aside"
    http_api.ask([user("Hi")], "Hello!", hint=hint)
    assert http_api.decide([title], hint=hint).kind == "aside"
    assert http_api.decide([title]).kind == "aside"
    assert http_api.decide([user("Hi")], is_plain=True).kind == "aside"
    assert http_api.decide([user("Hi")], task="title_generation").kind == "aside"
    assert http_api.decide([*dialogue("Hi", "Hello!"), title], hint=hint).kind == "append"


def test_answers_of_its_tools_in_a_named_session(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(1)
    calls = (ClientCall("call-1", "clock", "{}"),)
    http_api.ask([*history, user("What time is it?")], "", status="requires_action", calls=calls)
    result = ClientMessage("tool", "noon", call_id="call-1")
    decision = http_api.decide(
        [user("unknown"), ClientMessage("assistant", "", calls=calls), result], session=session_id
    )
    assert (decision.kind, decision.matched, decision.session_id) == ("resume", "header", session_id)


def test_edit_forks_once_and_going_back_returns_to_the_first_branch(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(12)
    for turn in (1, 5, 11):
        edited = [*history[: 2 * turn - 2], user("edited")]
        fork = http_api.ask(edited, "another answer")
        expected = ("new", "", 0) if turn == 1 else ("fork", session_id, turn - 1)
        assert (fork.decision.kind, fork.decision.session_id, fork.decision.after_turn) == expected
        on = http_api.ask([*edited, assistant("another answer"), user("on")], "and on")
        assert (on.decision.kind, on.session_id, on.decision.preamble) == ("append", fork.session_id, ())
        back = http_api.decide([*history, user("back")])
        assert (back.kind, back.session_id) == ("append", session_id)


def test_edit_of_an_answer_forks_there_and_brings_the_rest(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(6)
    edited = [*history[:5], assistant("edited"), *history[6:], user("?")]
    decision = http_api.decide(edited)
    assert (decision.kind, decision.session_id, decision.after_turn) == ("fork", session_id, 2)
    assert decision.imported == tuple(edited[4:-1])


def test_another_models_answer_behind_the_newest_turn_goes_with_each_question(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(2)
    foreign = dialogue("asked elsewhere", "answered elsewhere")
    asked = [*history, *foreign, user("What did the other model miss?")]
    first = http_api.ask(asked, "It missed the date!").decision
    assert (first.kind, first.session_id, first.context, first.imported) == ("append", session_id, foreign, ())
    http_api.sends_own(session_id)
    for shown in (assistant("It missed the date!"), assistant("<think>so</think>It missed the date!")):
        later = http_api.decide([*asked, shown, user("and?")])
        assert (later.kind, later.session_id, later.preamble, later.context) == ("append", session_id, foreign, ())
    # A front end that changes some messages, and one that shortens the history.
    for sent in ([user("documents\n" + history[0].text), *asked[1:]], asked[2:]):
        later = http_api.decide([*sent, assistant("It missed the date!"), user("and?")])
        assert (later.kind, later.session_id, later.preamble) == ("append", session_id, foreign)


EXAMPLES = dialogue("Change get_factorial() to use math.factorial", LONG, "I switched to a new code base.", "Ok.")


def test_examples_whose_answers_are_common_lead_into_no_other_session(http_api: HttpApi) -> None:
    front = dialogue(
        "great",
        "It is a positive review.",
        "boring",
        "It is a negative review.",
        "분류: 최고예요",
        "It is a positive review.",
        "meh",
        "It is a neutral review.",
    )
    for question, answer in (
        ("wonderful", "It is a positive review."),
        ("dull", "It is a negative review."),
        ("fine", "It is a neutral review."),
        ("great", "It is a positive review."),
    ):
        for sent in (front, front[4:], front[2:6]):
            assert http_api.ask([*sent, user(question)], answer).decision.kind == "new"


def files(version: int) -> tuple[ClientMessage, ...]:
    return dialogue(f"I have *added these files to the chat*:\ncalc.py\nVERSION = {version}", "Ok, any changes.")


@pytest.mark.parametrize("examples", [EXAMPLES, ()], ids=["examples", "none"])
@pytest.mark.parametrize("applied", ["all", "none", "some"])
def test_an_editor_that_moves_its_files_behind_the_history_stays_in_one_session(
    http_api: HttpApi, examples: tuple[ClientMessage, ...], applied: str
) -> None:
    """It appends a reminder to each question, and moves a question with its answer away once the edit is applied."""
    done, current, sessions, version = list[ClientMessage](), list[ClientMessage](), set[str](), 0
    for number in range(1, 11):
        asked = f"change {number}"
        sent = [*examples, *done, *files(version), *current, user(f"{asked}\n\nReply with the whole file.")]
        answer = f"calc.py\nVERSION = {number}\n" + LONG * (not examples and number == 1)
        reply = http_api.ask(sent, answer)
        http_api.sends_own(reply.session_id)
        sessions.add(reply.session_id)
        if number > 1:
            assert (reply.decision.kind, reply.turn) == ("append", len(examples) // 2 + 1 + number)
            assert reply.decision.imported == ()
            own = (*reply.decision.preamble, *reply.decision.context)
            assert files(version)[0] in own if version else reply.decision.context == ()
        current += [user(asked), assistant(answer)]
        if applied == "all" or (applied == "some" and number % 3 == 0):
            done, current = [*done, *current, *dialogue("I updated the files.", "Ok.")], []
            version = number
    assert len(sessions) == 1
    # A summary of its own in place of the history.
    short = [*examples, *dialogue("I spoke to you previously about a number of things.", "Ok."), *done[-8:], *files(9)]
    later = http_api.decide([*short, *current, user("more")])
    assert (later.kind, later.session_id) == ("append", *sessions)


def test_messages_that_are_no_turns_are_found_where_as_many_turns_are_left_out(http_api: HttpApi) -> None:
    started = http_api.ask([*dialogue("the map", "Ok.", "the files", "Ok."), user("first")], LONG)
    own = dialogue("I updated the files.", "Ok.", "the new files", "Ok.")
    asked = [*dialogue("first", LONG), *own, user("second")]
    assert http_api.ask(asked, "done").decision.context == own
    http_api.sends_own(started.session_id)
    later = http_api.decide([*asked, assistant("done"), user("third")])
    assert (later.kind, later.session_id, later.preamble) == ("append", started.session_id, own)


def test_turns_of_the_same_words_are_told_apart_by_their_place(http_api: HttpApi) -> None:
    history: list[ClientMessage] = []
    for _ in range(3):
        history += dialogue("Say the rule again.", "Never on a Sunday.")
        session_id = http_api.ask(history[:-1], "Never on a Sunday.").session_id
    front = dialogue("the files", "Ok.")
    decision = http_api.decide([*front, *history[-4:], user("?")])
    assert (decision.kind, decision.session_id, decision.preamble) == ("append", session_id, front)


def test_a_client_that_keeps_only_the_last_text_of_a_round_of_tools_is_recognised(http_api: HttpApi) -> None:
    calls = (ClientCall("call-1", "clock", "{}"),)
    history = list[ClientMessage]()
    for number in range(1, 4):
        asked = [*history, user(f"{number}: what time is it?")]
        http_api.ask(asked, "Let me look that up.", status="requires_action", calls=calls)
        said = ClientMessage("assistant", "Let me look that up.", calls=calls)
        session_id = http_api.resume(
            [*asked, said, ClientMessage("tool", "noon", call_id="call-1")], f"{number} o'clock."
        )
        history = [*asked, assistant(f"{number} o'clock.")]
        for shown in (history, [*asked, said, history[-1]]):
            decision = http_api.decide([*shown, user("?")])
            assert (decision.kind, decision.session_id, decision.preamble) == ("append", session_id, ())
    # Of a shortened history only the words are left.
    decision = http_api.decide([*history[-4:], user("?")])
    assert (decision.matched, decision.session_id, decision.preamble) == ("tail", session_id, ())


def test_same_question_again_is_answered_anew(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(3)
    again = http_api.ask(history[:-1], "another answer")
    assert (again.decision.kind, again.session_id, again.turn) == ("regenerate", session_id, 3)
    on = http_api.decide([*history[:-1], assistant("another answer"), user("?")])
    assert (on.kind, on.session_id) == ("append", session_id)
    replaced = http_api.decide([*history, user("?")])
    assert (replaced.kind, replaced.session_id, replaced.after_turn) == ("fork", session_id, 2)
    assert replaced.imported == tuple(history[-2:])


def test_old_question_again_forks(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(5)
    decision = http_api.decide(history[:5])
    assert (decision.kind, decision.session_id, decision.after_turn) == ("fork", session_id, 2)


def test_stopped_answer_of_which_the_program_kept_the_beginning(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(1)
    http_api.ask([*history, user("long?")], "one two three", status="stopped")
    done = http_api.ask([*history, user("long?"), assistant("one tw"), user("go on")], "four")
    assert (done.decision.kind, done.session_id, done.decision.imported) == ("append", session_id, ())
    later = http_api.decide([*history, *dialogue("long?", "one tw", "go on", "four"), user("?")])
    assert (later.kind, later.session_id, later.preamble) == ("append", session_id, ())


def test_running_answer_that_the_program_stopped_reading_is_stopped_first(http_api: HttpApi) -> None:
    done = http_api.ask([user("long?")], "one two three", status=None)
    decision = http_api.decide([*dialogue("long?", "one two"), user("shorter")])
    assert (decision.kind, decision.session_id, decision.stop_first) == ("append", done.session_id, True)


def test_question_that_failed_and_stands_in_the_history(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(2)
    http_api.ask([*history, user("fails")], "", status="failed")
    decision = http_api.decide([*history, user("fails"), user("something else")])
    assert (decision.kind, decision.session_id, decision.imported) == ("append", session_id, ())


def test_an_answer_that_its_program_lost_is_joined(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(2)
    http_api.ask([*history, user("lost?")], "It never came.")
    decision = http_api.decide([*history, user("lost?"), user("and now?")])
    assert (decision.kind, decision.session_id, decision.imported, decision.context) == ("append", session_id, (), ())


@pytest.mark.parametrize("fields", [{"user": ""}, {"user": "", "is_personal": True}], ids=["shared", "one person's"])
def test_a_cache_key_breaks_ties_among_one_persons_chats(opened: HttpApi, fields: dict[str, Any]) -> None:
    engine = with_access(opened.engine, owner=f"owner of {sorted(fields)}")
    http_api = HttpApi(engine)
    faq = dialogue("When do you open on Mondays?", "At nine.", "And when do you close then?", "At six in the evening.")
    sessions = []
    for name in ("a", "b"):
        front = dialogue(f"I ask for shop {name}, which has a long name.", f"Shop {name} it is, then.")
        for end in (1, 3, 5):
            asked = [*front, *faq][:end]
            answer = [*front, *faq][end].text
            sent = {"hint": Hint("prompt_cache_key", name), **fields}
            session_id = http_api.ask(asked, answer, **sent).session_id
        sessions.append(session_id)
    for name, session_id in zip(("a", "b"), sessions, strict=True):
        decision = http_api.decide([*faq, user("?")], hint=Hint("prompt_cache_key", name), **fields)
        assert decision.session_id == (session_id if "is_personal" in fields else "")
    assert http_api.decide([*faq, user("?")], **fields).kind == "new"


def test_running_turn(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(2)
    http_api.ask([*history, user("runs")], "so far", status=None, model="one")
    same = http_api.decide([*history, user("runs")], model="one")
    assert (same.kind, same.session_id, same.after_turn) == ("fork", session_id, 2)
    other = http_api.decide([*history, user("something else")], model="two")
    assert (other.kind, other.session_id, other.after_turn) == ("fork", session_id, 2)
    beside = http_api.decide([*history, user("something else")], model="one")
    assert (beside.kind, beside.session_id, beside.after_turn) == ("fork", session_id, 2)
    assert http_api.decide([user("something else")], session=session_id).after_turn == 2


def test_library_that_tries_again_gets_the_first_response(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(1)
    asked = [*history, user("once")]
    http_api.ask(asked, "so far", status=None)
    decision = http_api.decide(asked, is_retry=True)
    assert (decision.kind, decision.matched, decision.session_id) == ("retry", "retry", session_id)
    assert (decision.turn, decision.attempt) == (2, 1)


def test_library_that_tries_a_failed_turn_again_makes_no_second_one(http_api: HttpApi) -> None:
    first = http_api.ask([user("Hi")], "", status="failed")
    again = http_api.ask([user("Hi")], "Hello!", is_retry=True)
    assert (again.decision.kind, again.session_id, again.turn) == ("regenerate", first.session_id, 1)


def test_first_response_is_sent_again_for_ten_minutes_and_until_another_attempt(http_api: HttpApi) -> None:
    asked = [*http_api.chat(1)[0], user("once")]
    http_api.ask(asked, "first", idempotency_key="k")
    for minutes, kind in ((9, "retry"), (11, "regenerate")):
        then = http_api.access.clock() + timedelta(minutes=minutes)
        later = replace(http_api, engine=with_access(http_api.engine, clock=lambda now=then: now))  # always this time
        assert later.decide(asked, idempotency_key="k").kind == kind
    http_api.ask(asked, "second")
    assert http_api.decide(asked, idempotency_key="k").kind == "regenerate"


def test_library_that_tries_again_gets_no_response_that_another_attempt_has_replaced(http_api: HttpApi) -> None:
    asked = [*http_api.chat(1)[0], user("once")]
    first = http_api.ask(asked, "first")
    assert http_api.decide(asked, is_retry=True).kind == "retry"
    http_api.page_regenerates(first.session_id, "second")
    assert http_api.decide(asked, is_retry=True).kind == "regenerate"


def test_idempotency_key_is_bound_to_its_request(http_api: HttpApi) -> None:
    first = http_api.ask([user("Hi")], "Hello!", idempotency_key="k")
    again = http_api.decide([user("Hi")], idempotency_key="k")
    assert (again.kind, again.session_id, again.turn) == ("retry", first.session_id, 1)
    assert http_api.decide([user("Hi")], idempotency_key="other").kind == "new"
    assert http_api.decide([user("Something else")], idempotency_key="k").kind == "new"


def test_tool_answers_that_nobody_waits_for_are_brought_with_their_question(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(1)
    result = ClientMessage("tool", "42", call_id="call-9")
    decision = http_api.decide([*history, user("?"), result])
    assert (decision.kind, decision.session_id, decision.imported, decision.brought) == (
        "append",
        session_id,
        (),
        (result,),
    )
    assert http_api.decide([*history[:-1], result]).kind == "new"  # the first question of a chat may be anybody's


def test_answers_of_its_tools_go_to_the_turn_that_waits_for_them(http_api: HttpApi) -> None:
    history, session_id = http_api.chat(1)
    asked = [*history, user("What time is it?")]
    calls = (ClientCall("call-1", "clock", "{}"), ClientCall("call-2", "clock", '{"zone": "KST"}'))
    opened = http_api.ask(asked, "I look.", status="requires_action", calls=calls)
    assert (opened.session_id, opened.turn) == (session_id, 2)
    called = ClientMessage("assistant", "I look.", calls=calls)
    results = [ClientMessage("tool", "noon", call_id=call.id) for call in reversed(calls)]
    for earlier_text in (called, replace(called, text="")):
        decision = http_api.decide([*asked, earlier_text, *results])
        assert (decision.kind, decision.matched, decision.session_id) == ("resume", "history", session_id)
    elsewhere = [called, ClientMessage("tool", "noon", call_id="call-9")]
    decision = http_api.decide([*asked, *elsewhere])
    assert (decision.kind, decision.session_id, decision.brought) == ("regenerate", session_id, tuple(elsewhere))
    instead = http_api.decide([*asked, called, *results, user("Never mind")])
    assert (instead.kind, instead.session_id, instead.imported) == ("append", session_id, (called, *results))


TEXT = st.text(st.characters(exclude_categories=["M", "Cs"]), max_size=30) | st.sampled_from(
    ["안녕\ud800", "a\x00b", "ا" * 300]
)
CHAT = st.lists(st.tuples(TEXT, TEXT), min_size=2, max_size=5)
drawn = settings(max_examples=at_most(30))


def hold(
    opened: HttpApi, texts: list[tuple[str, str]], *, wrap_last: bool = False
) -> tuple[HttpApi, list[ClientMessage], str]:
    """Holds a chat of these words in a scope of its own; each turn's words begin with its number."""
    http_api, history, sessions = HttpApi(opened.engine), list[ClientMessage](), set[str]()
    for number, (question, answer) in enumerate(texts, 1):
        asked = user(f"q{number} {question}")
        is_wrapped = wrap_last and number == len(texts)
        sent = user(f"Use these documents.\n{asked.text}\nEnd of question.") if is_wrapped else asked
        sessions.add(http_api.ask([*history, sent], f"a{number} {answer}").session_id)
        history += [asked, assistant(f"a{number} {answer}")]
    assert len(sessions) == 1
    return http_api, history, sessions.pop()


@drawn
@given(texts=CHAT, data=st.data())
def test_history_cut_in_front(opened: HttpApi, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    told = [(f"asked of it: {question}", f"answered so: {answer}") for question, answer in texts]
    http_api, history, session_id = hold(opened, told)
    cut = data.draw(st.integers(0, len(history) - 4))  # at 1 all turns are still there, the first by its answer
    decision = http_api.decide([*history[cut:], user("?")])
    assert (decision.kind, decision.session_id) == ("append", session_id)
    assert (decision.matched, decision.imported, decision.preamble) == ("tail" if cut > 1 else "history", (), ())


@drawn
@given(texts=CHAT, data=st.data())
def test_edited_question(opened: HttpApi, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    http_api, history, session_id = hold(opened, texts)
    turn = data.draw(st.integers(2, len(texts)))
    edited = [*history[: 2 * turn - 2], user("edited")]
    fork = http_api.ask(edited, "another answer")
    assert (fork.decision.kind, fork.decision.session_id) == ("fork", session_id)
    assert (fork.decision.after_turn, fork.decision.imported) == (turn - 1, ())
    assert http_api.decide([*edited, assistant("another answer"), user("?")]).session_id == fork.session_id
    assert http_api.decide([*history, user("?")]).session_id == session_id


@drawn
@given(texts=CHAT, data=st.data())
def test_edited_answer(opened: HttpApi, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    http_api, history, session_id = hold(opened, texts)
    turn = data.draw(st.integers(2, len(texts)))
    edited = [*history[: 2 * turn - 1], assistant("edited"), *history[2 * turn :]]
    decision = http_api.decide([*edited, user("?")])
    assert (decision.kind, decision.session_id, decision.after_turn) == ("fork", session_id, turn - 1)
    assert decision.imported == tuple(edited[2 * turn - 2 :])


@drawn
@given(texts=CHAT, data=st.data())
def test_answer_that_was_received_in_part(opened: HttpApi, texts: list[tuple[str, str]], data: st.DataObject) -> None:
    http_api, history, session_id = hold(opened, texts)
    whole = history[-1].text
    part = whole[: data.draw(st.integers(1, len(whole)))]
    decision = http_api.decide([*history[:-1], assistant(part), user("?")])
    assert (decision.kind, decision.session_id, decision.imported) == ("append", session_id, ())


@drawn
@given(texts=CHAT)
def test_question_that_documents_were_added_to(opened: HttpApi, texts: list[tuple[str, str]]) -> None:
    http_api, history, session_id = hold(opened, texts, wrap_last=True)
    decision = http_api.decide([*history, user("?")])
    assert (decision.kind, decision.session_id, decision.imported) == ("append", session_id, ())


@drawn
@given(texts=CHAT)
def test_answer_made_anew(opened: HttpApi, texts: list[tuple[str, str]]) -> None:
    http_api, history, session_id = hold(opened, texts)
    again = http_api.ask(history[:-1], "another answer")
    assert (again.decision.kind, again.session_id, again.turn) == ("regenerate", session_id, len(texts))
    assert http_api.decide([*history[:-1], assistant("another answer"), user("?")]).session_id == session_id


@drawn
@given(texts=CHAT, others=CHAT)
def test_other_chats_and_scopes_are_never_taken(
    opened: HttpApi, texts: list[tuple[str, str]], others: list[tuple[str, str]]
) -> None:
    http_api, history, session_id = hold(opened, texts)
    assert HttpApi(opened.engine).decide([*history, user("?")]).kind == "new"
    other = [part for pair in others for part in (user(f"other {pair[0]}"), assistant(f"other {pair[1]}"))]
    decision = http_api.decide([*other, user("?")])
    assert (decision.kind, decision.session_id) == ("new", "")
    assert http_api.decide([*history, user("?")]).session_id == session_id


SHARED = [
    ("Continue", "Ok."),
    ("Thanks", "Ok."),
    ("Thanks a lot for your help!", "You're welcome! Let me know if there is anything else that I can do for you."),
    ("안녕하세요", "안녕하세요! 무엇을 도와드릴까요? 궁금한 점이 있으면 편하게 말씀해 주세요."),
    ("What are your opening hours?", "We are open from nine to six on weekdays, and from ten to two on Saturdays."),
]
TURNS = st.lists(st.sampled_from([*SHARED, None, None]), min_size=1, max_size=6)


@settings(max_examples=at_most(200))
@given(st.tuples(TURNS, TURNS), st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=4, max_size=14))
def test_two_users_of_one_token_never_meet(
    opened: HttpApi,
    drawn: tuple[list[tuple[str, str] | None], list[tuple[str, str] | None]],
    order: list[tuple[bool, int]],
) -> None:
    http_api = HttpApi(opened.engine)
    histories: tuple[list[ClientMessage], list[ClientMessage]] = ([], [])
    for is_second, cut in order:
        name, other = ("bob", "alice") if is_second else ("alice", "bob")
        history, turns = histories[is_second], drawn[is_second]
        number = len(history) // 2
        if number >= len(turns):
            continue
        private = (f"{name} asks for the {number}th time", f"the answer to {name} of number {number}, at some length")
        question, answer = turns[number] or private
        sent = [*history[2 * cut :], user(question)]
        answered = http_api.ask(sent, answer)
        history += [user(question), assistant(answer)]
        decision = answered.decision
        last = decision.after_turn if decision.kind == "fork" else answered.turn
        entries = http_api.access.stores.archive.live_turns(answered.session_id, 1, max(last, 1)) if last else []
        assert not any(other in str(entry.message.content) for entry in entries)
