"""People behind one token, whatever their programs do: nobody is shown what only another said or was answered."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graph.service import ChatService
from graph.service.turn_stream import response_id
from graph.store.turn import TurnEnd
from graph.value.client import ClientMessage, Hint
from graph.value.event import ClientCall
from tests.fake.drawn import at_most
from tests.fake.http_api import HttpApi, assistant, dialogue, engine_of, user, with_access
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.story import (
    FITTING,
    NAMES,
    NEXT,
    PRIVATE,
    TALK,
    Act,
    Change,
    Ending,
    Form,
    Identity,
    Key,
    Person,
    Picture,
    Step,
    Story,
    System,
    marks_in,
)
from tests.fake.story_servers import DecidingServer, ServiceServer


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenChat]:
    """Opens servers over one folder, of which none calls a model."""
    with chat_opener(settings_maker(tmp_path_factory.mktemp("stories") / "data", "http://127.0.0.1:9/v1")) as opened:
        yield opened


@pytest.fixture(scope="module")
def opened(servers: OpenChat) -> HttpApi:
    return HttpApi(engine_of(servers().service), scope="")


def of_new_owner(opened: HttpApi) -> HttpApi:
    """The API for an owner whom no other story has; those who use it share his token."""
    return replace(opened, engine=with_access(opened.engine, owner=uuid.uuid4().hex))


WHO = st.integers(0, 2)
QUESTIONS = st.sampled_from([NEXT] * 16 + [PRIVATE] * 2 + [*range(len(TALK))])
ANSWERS = st.sampled_from([FITTING] * 4 + [PRIVATE])
FORMS = st.sampled_from(get_args(Form))
SIZES = st.integers(1, 4)
SYSTEMS = st.sampled_from(get_args(System))
# Most of what people do is the same: only then may one be taken for another.
STEPS = st.one_of(
    *[st.builds(Step, who=WHO)] * 3,
    *[st.builds(Step, who=WHO, does=st.just("same"))] * 3,
    *[st.builds(Step, who=WHO, question=QUESTIONS, answer=ANSWERS, form=FORMS, size=SIZES, system=SYSTEMS)] * 3,
    st.builds(Step, who=WHO, does=st.sampled_from(["delete", "elsewhere", "begun", "results"]), size=SIZES),
    st.builds(Step, who=WHO, ending=st.sampled_from(get_args(Ending)), keeps=st.booleans(), told=st.booleans()),
    st.builds(
        Step,
        who=WHO,
        does=st.sampled_from(["retry", "again"]),
        system=SYSTEMS,
        change=st.sampled_from(get_args(Change)),
    ),
    st.builds(
        Step,
        who=WHO,
        does=st.sampled_from(get_args(Act)),
        question=QUESTIONS,
        answer=st.sampled_from([FITTING, PRIVATE, *range(len(TALK))]),
        ending=st.sampled_from(get_args(Ending)),
        form=FORMS,
        size=SIZES,
        keeps=st.booleans(),
        told=st.booleans(),
        chat=st.integers(0, 1),
        system=SYSTEMS,
        leaves_out=st.booleans(),
        is_retry=st.booleans(),
        key=st.sampled_from(get_args(Key)),
        change=st.sampled_from(get_args(Change)),
        picture=st.sampled_from(get_args(Picture)),
    ),
)


def people(*identities: Identity) -> st.SearchStrategy[tuple[Person, ...]]:
    """Draws persons who name themselves in these ways; most of them don't."""
    return st.tuples(
        *(
            st.builds(
                Person,
                st.just(name),
                identity=st.sampled_from(["none"] * 9 + [*identities]),
                has_cache_key=st.sampled_from([False, False, True]),
                form=st.sampled_from(["whole", "window", "window", *get_args(Form)]),
                size=SIZES,
                system=st.sampled_from(["none", "dated", *get_args(System)]),
            )
            for name in NAMES
        )
    )


SCRIPTS = st.lists(st.integers(0, len(TALK) - 1), min_size=1, max_size=3).flatmap(
    lambda talk: st.sampled_from([[PRIVATE, *talk], [PRIVATE, *talk], talk])
)


COUNTS = st.sampled_from([2, 2, 3])
STORIES = st.lists(STEPS, min_size=5, max_size=20)


def stories(examples: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=at_most(examples, share=40), suppress_health_check=checks)


@pytest.mark.timeout(900)
@stories(2_000)
@given(people("hint", "user", "personal", "previous"), COUNTS, SCRIPTS, STORIES)
def test_nobody_is_shown_what_only_another_said_or_was_answered(
    opened: HttpApi, persons: Sequence[Person], count: int, script: Sequence[int], steps: list[Step]
) -> None:
    Story(DecidingServer(of_new_owner(opened)), persons[:count], script).play(steps)


@stories(300)
@given(people("session", "session", "session"), COUNTS, SCRIPTS, STORIES)
def test_nobody_is_shown_anothers_words_by_the_name_of_his_session(
    opened: HttpApi, persons: Sequence[Person], count: int, script: Sequence[int], steps: list[Step]
) -> None:
    """Some go on with the session that an answer names, and send no more than the question."""
    Story(DecidingServer(of_new_owner(opened)), persons[:count], script).play(steps)


@pytest.fixture(scope="module")
def service(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("served") / "data", endpoint.url)) as opened:
        yield opened(turns_per_minute=1_000_000, user_concurrent_turns=16).service


@stories(80)
@given(people("hint", "user", "personal", "previous"), COUNTS, SCRIPTS, STORIES)
def test_nobody_s_words_reach_the_model_or_the_program_of_another(
    service: ChatService,
    endpoint: FakeOpenAI,
    persons: Sequence[Person],
    count: int,
    script: Sequence[int],
    steps: list[Step],
) -> None:
    with endpoint.lent(is_alone=True):
        server = ServiceServer(service.for_owner(uuid.uuid4().hex), endpoint)
        try:
            Story(server, persons[:count], script).play(steps)
        finally:
            server.close()


ANN = dialogue("I am Ann, and my code is secret-of-ann.", "I keep it for you, Ann: it is secret-of-ann.")
FAQ = dialogue(*TALK[0], *TALK[1])
HOURS = dialogue(*TALK[3])
THANKS = dialogue(*TALK[2])
CODE = user("What is my code?")
SHOP = "You serve the shop."


def hold(api: HttpApi, messages: Sequence[ClientMessage], **fields: Any) -> str:  # noqa: ANN401  # fields of the request
    """Holds a chat of questions and answers that is sent whole each time; returns its session."""
    for at in range(0, len(messages), 2):
        session_id = api.ask(messages[: at + 1], messages[at + 1].text, **fields).session_id
    return session_id


def asked_with(api: HttpApi, system: str = "", **fields: Any) -> HttpApi:  # noqa: ANN401  # fields of the options
    return replace(api, options=replace(api.options, system=system, **fields))


@dataclass(frozen=True)
class Window:
    """What Ann said, what Bob sends of another chat, and what their requests have beside it.

    Attributes:
        was_held: Bob's whole chat, if it was held here, too.
        is_deleted: It was then deleted on the page.
    """

    sent: Sequence[ClientMessage]
    hers: Sequence[ClientMessage] = (*ANN, *FAQ)
    was_held: Sequence[ClientMessage] = ()
    is_deleted: bool = False
    her_system: str = ""
    system: str = ""
    her_fields: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


I_AM_BOB = dialogue("I am Bob, and I am new here, as you may see.", "Hello Bob, it is nice to meet you today!")
KEY = {"hint": Hint("prompt_cache_key", "support-v1")}
WINDOWS = {
    "a date that is hers": Window(
        FAQ, was_held=(*I_AM_BOB, *FAQ), her_system=f"{SHOP} 28 November", system=f"{SHOP} 28 November"
    ),
    "a date that is nobody's": Window(
        FAQ, was_held=(*I_AM_BOB, *FAQ), her_system=f"{SHOP} 28 November", system=f"{SHOP} 29 November"
    ),
    "a tie": Window(FAQ, was_held=(*I_AM_BOB, *FAQ)),
    "one long answer of another server": Window(HOURS, hers=(*ANN, *HOURS)),
    "a deleted session": Window(FAQ, was_held=(*I_AM_BOB, *FAQ), is_deleted=True),
    "a short beginning of his own": Window((*dialogue("I am Bob", "Hi Bob!"), *FAQ)),
    "a long beginning of his own": Window((*I_AM_BOB, *FAQ)),
    "a beginning with an answer": Window(HOURS[1:], hers=(*ANN, *HOURS)),
    "a beginning with an answer, then more": Window((*FAQ[1:], *HOURS), hers=(*ANN, *FAQ, *HOURS)),
    "another system message": Window(FAQ, her_system="You serve Ann.", system="You serve Bob."),
    "the same system message": Window(FAQ, her_system=SHOP, system=SHOP),
    "the same cache key and small talk": Window(THANKS, hers=(*ANN, *THANKS), her_fields=KEY, fields=KEY),
    "the same cache key": Window(FAQ, her_fields=KEY, fields=KEY),
    "his own id": Window(FAQ, fields={"hint": Hint("x-session-id", "bob-7")}),
    "an id of hers": Window(FAQ, her_fields={"hint": Hint("x-session-id", "ann-1")}),
    "an id of each": Window(
        FAQ, her_fields={"hint": Hint("x-session-id", "ann-1")}, fields={"hint": Hint("x-session-id", "bob-7")}
    ),
    "a user": Window(FAQ, fields={"user": "bob"}),
    "a user each": Window(FAQ, her_fields={"user": "ann"}, fields={"user": "bob"}),
    "a token of his own": Window(FAQ, fields={"is_personal": True}),
    "a compaction": Window((*dialogue("Summary: Bob sells nails.", "Understood."), *FAQ)),
    "a compaction within an exchange": Window((user("Summary: Bob sells nails."), *FAQ[1:])),
    "decorated answers": Window([replace(each, text=f"Assistant: {each.text}") for each in FAQ]),
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_the_end_of_a_chat_never_leads_into_another_persons(opened: HttpApi, window: Window) -> None:
    api = of_new_owner(opened)
    if window.was_held:
        session_id = hold(asked_with(api, f"{SHOP} 27 November" if window.system else ""), window.was_held)
        if window.is_deleted:
            api.access.stores.sessions.delete(session_id, api.access.owner)
    hold(asked_with(api, window.her_system), window.hers, **window.her_fields)
    his = {"name": "token of bob"} if "is_personal" in window.fields else {}
    sent = asked_with(api, window.system, **his).decide([*window.sent, CODE], **window.fields)
    assert (sent.kind, sent.matched, sent.imported) == ("new", "new", tuple(window.sent))


INSTRUCTIONS = {
    "other words": ("You serve Ann.", "You serve Bob.", (), {}, "new"),
    "another day": ("You serve the shop. 27 November", "You serve the shop. 28 November", (), {}, "append"),
    "another day and other tools": ("The shop. 27 November", "The shop. 28 November", (tool("look"),), {}, "new"),
    "other words of one person": ("You serve Ann.", "You serve Bob.", (), {"is_personal": True}, "append"),
    "other words and tools of one person": (
        "You serve Ann.",
        "You serve Bob.",
        (tool("look"),),
        {"is_personal": True},
        "new",
    ),
}


@pytest.mark.parametrize("case", INSTRUCTIONS)
def test_a_system_message_excludes_a_chat_by_more_than_its_dates_or_with_other_tools(
    opened: HttpApi, case: str
) -> None:
    hers, his, tools, fields, kind = INSTRUCTIONS[case]
    api = of_new_owner(opened)
    hold(asked_with(api, hers), FAQ, **fields)
    assert asked_with(api, his, tools=tools).decide([*FAQ, CODE], **fields).kind == kind


WHO_AM_I = user("Who am I, please?")
RETRIES = {
    "another system message": {"system": "The customer is Bob."},
    "no system message": {"system": ""},
    "another model": {"model": "another-model"},
    "another format": {"sampling": {"response_format": {"type": "json_object"}}},
    "other tools": {"tools": (tool("look"),)},
    "his own id": {"hint": Hint("x-session-id", "bob-7")},
    "his own idempotency key": {"idempotency_key": "bob-1"},
    "his own user": {"user": "bob"},
    "a token of his own": {"is_personal": True},
    "a picture": {"images": ("data:image/png;base64,iVBORw0KGgo=",)},
}


@pytest.mark.parametrize("history", [(), tuple(FAQ)], ids=["first", "later"])
@pytest.mark.parametrize("her_key", ["", "ann-1"])
@pytest.mark.parametrize("other", RETRIES.values(), ids=RETRIES)
def test_a_repeated_request_is_a_retry_of_the_same_request_only(
    opened: HttpApi, history: Sequence[ClientMessage], her_key: str, other: Mapping[str, Any]
) -> None:
    api = of_new_owner(opened)
    hers, fields, options = asked_with(api, "The customer is Ann."), dict(other), dict[str, Any]()
    asked = replace(WHO_AM_I, images=fields.pop("images", ()))
    options = {name: fields.pop(name) for name in ("system", "sampling", "tools") if name in fields}
    first = hers.ask([*history, WHO_AM_I], "You are Ann.", idempotency_key=her_key)
    his = replace(hers, options=replace(hers.options, **options))
    assert his.decide([*history, asked], **{"is_retry": True, **fields}).kind != "retry"
    again = hers.decide([*history, WHO_AM_I], is_retry=True, idempotency_key=her_key)
    assert (again.kind, again.session_id, again.turn) == ("retry", first.session_id, first.turn)


def test_a_first_request_without_history_or_id_is_new_whatever_it_repeats(opened: HttpApi) -> None:
    api = of_new_owner(opened)
    hold(api, dialogue("Hello there", "Hello! How can I help?"), **KEY)
    for fields in ({}, KEY, {"hint": Hint("x-session-id", "bob-7")}):
        assert api.decide([user("Hello there")], **fields).kind == "new"


@pytest.mark.parametrize("hers", [(), tuple(ANN)], ids=["first", "later"])
@pytest.mark.parametrize("his", [(), tuple(I_AM_BOB)], ids=["no history", "a history"])
def test_a_result_closes_no_call_of_another_chat_that_has_the_same_id(
    opened: HttpApi, hers: Sequence[ClientMessage], his: Sequence[ClientMessage]
) -> None:
    api, calls = of_new_owner(opened), (ClientCall("functions.book:0", "book", '{"day": "Monday"}'),)
    if hers:
        hold(api, hers)
    api.ask([*hers, user("Yes please")], "", status="requires_action", calls=calls)
    brought = (ClientMessage("assistant", "", calls=calls), ClientMessage("tool", "booked", call_id=calls[0].id))
    decision = api.decide([*his, user("Yes please"), *brought])
    assert (decision.kind, decision.imported, decision.brought) == ("new", tuple(his), brought)


GREETING = dialogue("Hello", "Hi")


def test_two_chats_of_the_same_words_are_told_apart_by_their_calls(opened: HttpApi) -> None:
    api, asked, chats = of_new_owner(opened), user("Book it for me."), []
    for name in ("ann", "bob"):
        made = (ClientCall("call_0", "look", f'{{"at": "secret-of-{name}"}}'), ClientCall("call_1", "look", "{}"))
        called = api.ask([asked], "", status="requires_action", calls=made)
        one, two = (ClientMessage("tool", "ok", call_id=call.id) for call in called.calls)
        # Each call leads to its answer, the second as well as the first.
        second = ClientMessage("assistant", "", calls=called.calls[1:])
        assert api.decide([asked, second, two]).session_id == called.session_id
        messages = [asked, ClientMessage("assistant", "", calls=called.calls), one, two]
        assert api.resume(messages, "Done.") == called.session_id
        chats.append((called.session_id, [*messages, assistant("Done."), user("And now?")]))
    for session_id, messages in chats:
        assert api.decide(messages).session_id == session_id
        # Without the calls it could be either's.
        assert api.decide([each for each in messages if each.role != "tool" and not each.calls]).kind == "new"


def test_words_beside_calls_are_no_answer(opened: HttpApi) -> None:
    api, (asked, answer) = of_new_owner(opened), GREETING
    calls = (ClientCall("call_0", "look", "{}"),)
    called = api.ask([asked], answer.text, status="requires_action", calls=calls)
    told = ClientMessage("assistant", answer.text, calls=called.calls)
    result = ClientMessage("tool", "secret-of-bob", call_id=called.calls[0].id)
    assert api.ask([asked, told, result, user("And now?")], "Done.").session_id == called.session_id
    assert api.decide([*GREETING, user("And now?")]).kind == "new"


def test_a_question_with_a_picture_isnt_asked_again_by_another_without_it(opened: HttpApi) -> None:
    api = of_new_owner(opened)
    session_id = hold(api, GREETING)
    picture = "data:image/png;base64,iVBORw0KGgo=secret-of-ann"
    assert api.ask([*GREETING, user("What is it?", picture)], "A cat.").session_id == session_id
    decision = api.decide([*GREETING, user("What is it?")])
    assert (decision.kind, decision.after_turn) == ("fork", 1)


def test_a_chat_that_two_people_have_is_nobodys(opened: HttpApi) -> None:
    api = of_new_owner(opened)
    sessions = {hold(api, GREETING) for _ in range(2)}
    decision = api.decide([*GREETING, user("I am Bob.")])
    assert (len(sessions), decision.kind, decision.imported) == (2, "new", GREETING)


@pytest.mark.parametrize("status", ["stopped", None])
def test_a_part_of_an_answer_is_no_more_than_its_question_to_another(opened: HttpApi, status: TurnEnd | None) -> None:
    api = of_new_owner(opened)
    session_id = hold(api, GREETING)
    running = api.ask([*GREETING, user("Who am I?")], "You are secret-of-ann", status=status)
    assert running.session_id == session_id
    decision = api.decide([*GREETING, user("Who am I?"), user("Be brief.")])
    assert (decision.kind, decision.after_turn, decision.stop_first) == ("fork", 1, False)
    if running.lease is not None:
        api.end(running, "You are Ann.")


def test_an_unanswered_question_of_one_is_not_behind_the_same_words_of_another(opened: HttpApi) -> None:
    api = of_new_owner(opened)
    hold(api, HOURS)
    for status in ("failed", "stopped", None):
        hers = api.ask([*HOURS, user(f"I am secret-of-ann, {status}.")], "", status=status)
        decision = api.decide([*HOURS, user("I am Bob.")])
        assert "ann" not in marks_in(api.seen_by(decision)), (status, decision.kind)
        if hers.lease is not None:
            api.end(hers, "I see.")


def test_another_question_while_the_chats_turn_runs_is_a_fork(opened: HttpApi) -> None:
    api = of_new_owner(opened)
    session_id = hold(api, FAQ)
    running = api.ask([*FAQ, user("aspect 0")], "so far", status=None)
    assert running.session_id == session_id
    previous = response_id(session_id, 2, 1, 1)
    for messages, fields in (([*FAQ, user("aspect 1")], {}), ([user("aspect 2")], {"previous": previous})):
        decision = api.decide(messages, **fields)
        assert (decision.kind, decision.session_id, decision.after_turn) == ("fork", session_id, 2)
    api.end(running, "done")


TELLING = -1
SUBJECTS = ("the harbour", "the orchard", "the violin")
HIS_CHATS = st.lists(
    st.lists(st.sampled_from([TELLING] * 4 + [*range(len(TALK))]), min_size=1, max_size=6), min_size=1, max_size=3
)
IS_HIS = st.sampled_from([{"is_personal": True}, {"user": "bob"}])
SUMMARY = user("Here is a summary of the conversation to date: Bob asked about his subjects.")


@dataclass
class HisChat:
    """One of a person's chats, which is sent whole until it is cut."""

    subject: str
    exchanges: list[Sequence[ClientMessage]] = field(default_factory=list)
    are_telling: list[bool] = field(default_factory=list)
    session: str = ""

    def go_on(self, api: HttpApi, kind: int, fields: Mapping[str, Any]) -> None:
        number = len(self.exchanges) + 1
        asked = f"How does part {number} of {self.subject} work in detail?"
        answer = f"Part {number} of **{self.subject}** works as the handbook describes it on page {number}."
        said = dialogue(asked, answer) if kind == TELLING else dialogue(*TALK[kind])
        history = [message for exchange in self.exchanges for message in exchange]
        self.session = api.ask([*history, said[0]], said[1].text, **fields).session_id
        self.exchanges.append(said)
        self.are_telling.append(kind == TELLING)

    def last(self, count: int) -> list[ClientMessage]:
        return [message for exchange in self.exchanges[-count:] for message in exchange]


def hold_all(api: HttpApi, kinds: Sequence[Sequence[int]], fields: Mapping[str, Any]) -> list[HisChat]:
    """Holds chats of these exchanges, an exchange of each by turns."""
    chats = [HisChat(subject) for subject, _ in zip(SUBJECTS, kinds, strict=False)]
    for number in range(max(map(len, kinds))):
        for chat, of_chat in zip(chats, kinds, strict=True):
            if number < len(of_chat):
                chat.go_on(api, of_chat[number], fields)
    return chats


@settings(max_examples=at_most(100))
@given(HIS_CHATS, IS_HIS)
def test_a_window_of_one_person_finds_its_own_chat(
    opened: HttpApi, kinds: Sequence[Sequence[int]], fields: Mapping[str, Any]
) -> None:
    api = of_new_owner(opened)
    chats = hold_all(api, kinds, fields)
    for chat in chats:
        for count in range(1, len(chat.exchanges) + 1):
            if any(chat.are_telling[-count:]):
                decision = api.decide([*chat.last(count), CODE], **fields)
                assert (decision.kind, decision.session_id) == ("append", chat.session), count


@settings(max_examples=at_most(100))
@example([[3], [3, -1, -1]], {"is_personal": True})
@given(HIS_CHATS, IS_HIS)
def test_what_a_program_makes_of_a_window_finds_its_chat(
    opened: HttpApi, kinds: Sequence[Sequence[int]], fields: Mapping[str, Any]
) -> None:
    api = of_new_owner(opened)
    for chat in hold_all(api, kinds, fields):
        for count in range(1, len(chat.exchanges) + 1):
            window = chat.last(count)
            forms = [[*chat.exchanges[0], *window], [SUMMARY, assistant("Understood."), *window]]
            # Cut between a question and its answer, which alone tells nothing.
            forms += [window[1:], [SUMMARY, *window[1:]]] if any(chat.are_telling[-count + 1 :]) and count > 1 else []
            for sent in forms if any(chat.are_telling[-count:]) else ():
                decision = api.decide([*sent, CODE], **fields)
                assert (decision.kind, decision.session_id) == ("append", chat.session), sent


DECORATIONS: Mapping[str, Callable[[str], str]] = {
    "a speaker": lambda text: f"Assistant: {text}",
    "a name": lambda text: f"[clerk]: {text}",
    "sources": lambda text: f"{text}\n\nSources:\n[1] handbook.pdf",
    "no marks": lambda text: text.replace("**", ""),
    "a cut": lambda text: f"{text[: len(text) * 2 // 3]}…" if len(text) > 40 else text,
}


@pytest.mark.parametrize("decorated", DECORATIONS.values(), ids=DECORATIONS)
@settings(max_examples=at_most(20))
@given(HIS_CHATS, IS_HIS)
def test_a_decorated_answer_is_the_answer(
    opened: HttpApi, decorated: Callable[[str], str], kinds: Sequence[Sequence[int]], fields: Mapping[str, Any]
) -> None:
    api = of_new_owner(opened)
    chats = hold_all(api, [[*of_chat, TELLING] for of_chat in kinds], fields)
    for chat in chats:
        sent = [replace(m, text=decorated(m.text)) if m.role == "assistant" else m for m in chat.last(99)]
        decision = api.decide([*sent, CODE], **fields)
        assert (decision.kind, decision.session_id) == ("append", chat.session)
