"""Results of a program's tools wherever they stand in its requests, over the real routes: what the endpoint is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import pytest

from graph.service import ChatService
from prompt.system.framing import ASSISTANT_BEGAN, CLOSED_ANSWER, NO_RESULT, RESULT_IMAGES
from tests.fake.body import content_of, faults
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.served_programs import ServedPrograms
from tests.fake.store import MovableClock

Message = dict[str, Any]
PICTURE: Final[Message] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TRIP: Final = "여수 여행 일정을 잡아 줘."
SAVE: Final = "Save the meeting with Ann on Friday."


def user(content: str | list[Any]) -> Message:
    return {"role": "user", "content": content}


def said(content: str) -> Message:
    return {"role": "assistant", "content": content}


def called(call_id: str, arguments: str = '{"at": "grass"}', *, content: str | None = None) -> Message:
    function = {"name": "look", "arguments": arguments}
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str, content: str | list[Any]) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@dataclass(frozen=True)
class Answered:
    """A whole answer, as it came over the wire."""

    session_id: str
    turn: int
    matched: str
    message: Message

    @property
    def place(self) -> tuple[str, int]:
        return self.session_id, self.turn


@dataclass
class Wire:
    """A program of one end user that posts what a test says, and nothing else.

    A call that was answered here is named in a test by the endpoint's id, and posted by the id that the program has.
    """

    client: httpx2.Client
    user: str
    server: FakeOpenAI
    ids: dict[str, str] = field(default_factory=dict)

    def _sent(self, message: Message) -> Message:
        calls = [{**call, "id": self.ids.get(call["id"], call["id"])} for call in message.get("tool_calls", ())]
        answered = message.get("tool_call_id")
        changed: Message = {"tool_calls": calls} if calls else {}
        return {**message, **changed, **({"tool_call_id": self.ids.get(answered, answered)} if answered else {})}

    def post(self, *messages: Message, headers: dict[str, str] | None = None, **fields: Any) -> Answered:  # noqa: ANN401  # any JSON
        sent = [self._sent(message) for message in messages]
        body = {"model": "turnfold", "user": self.user, "tools": [tool("look")], "messages": sent, **fields}
        response = self.client.post("/v1/chat/completions", json=body, headers=headers or {})
        assert response.status_code == 200, response.text
        told = response.headers
        return Answered(
            told["x-turnfold-session"],
            int(told["x-turnfold-turn"]),
            told["x-turnfold-matched"],
            response.json()["choices"][0]["message"],
        )

    def call(self, *messages: Message, call_id: str = "call-1", answer: str = "", **fields: Any) -> Answered:  # noqa: ANN401  # any JSON
        """Posts messages that the model answers with a call of the program's tool."""
        self.server.script(tools(ScriptedCall("look", '{"at": "grass"}', call_id), answer=answer))
        answered = self.post(*messages, **fields)
        (call,) = answered.message["tool_calls"]
        assert call["id"] not in {call_id, *self.ids.values()}
        self.ids[call_id] = call["id"]
        return answered

    def chat(self, first: int, last: int) -> list[Message]:
        """Has some turns, and returns all that was said."""
        messages: list[Message] = []
        for number in range(first, last + 1):
            messages.append(user(question(number)))
            messages.append(said(self.post(*messages).message["content"]))
        return messages

    def sent(self) -> list[Message]:
        """What the endpoint was sent last, behind the system prompt."""
        messages: list[Message] = list(self.server.bodies("chat")[-1]["messages"])
        assert faults(messages) == []
        return messages[1:]

    def rounds(self) -> list[tuple[str, str]]:
        """What the endpoint was sent last, by role and words; a call by its arguments."""
        return [(each["role"], _arguments_in(each) or content_of(each)) for each in self.sent()]


def _arguments_in(message: Message) -> str:
    return "".join(call["function"]["arguments"] for call in message.get("tool_calls", ()))


@pytest.fixture(scope="module")
def client(module_service: ChatService) -> Iterator[httpx2.Client]:
    with ServedPrograms(module_service) as served, served.client() as client:
        yield client


@pytest.fixture
def wire(chat: Chat, client: httpx2.Client, server: FakeOpenAI) -> Wire:
    return Wire(client, chat.session_id, server)


def texts(messages: Sequence[Message]) -> str:
    return "\n".join(map(content_of, messages))


CALL: Final = ("assistant", '{"at": "grass"}')
BEHIND: Final[dict[str, list[list[Message]]]] = {
    "words": [[result("call-1", "저장됨 0417")], [user("그리고 빨리 해 줘.")]],
    "words in a row": [[result("call-1", "saved 0417")], [user("And do it quickly."), user("Please.")]],
    "a picture": [
        [result("call-1", "See file 4a5eb7: 0417")],
        [user([{"type": "text", "text": "This is file 4a5eb7:"}, PICTURE])],
    ],
    "a refusal of the user's": [[result("call-1", "거절됨 0417")], [user("그건 하지 말고 날씨부터 알려 줘.")]],
}


@pytest.mark.parametrize("asked", [TRIP, SAVE])
@pytest.mark.parametrize("case", BEHIND)
@pytest.mark.parametrize("preamble", ["", "잠시만요."])
def test_results_with_words_of_the_user_behind_end_their_turn_and_the_words_begin_the_next(
    wire: Wire, asked: str, case: str, preamble: str
) -> None:
    results, words = BEHIND[case]
    first = wire.call(user(asked), answer=preamble)
    second = wire.post(user(asked), called("call-1", content=preamble), *results, *words)
    assert second.place == (first.session_id, 2)
    sent = wire.sent()
    assert [content_of(each) for each in sent if each["role"] == "tool"] == [results[0]["content"]]
    assert all(content_of(word) in content_of(sent[-1]) for word in words)
    assert [each["role"] for each in sent] == ["user", "assistant", "tool", "user"]  # nothing that nobody said
    assert (PICTURE["image_url"]["url"] in str(sent[-1])) == (case == "a picture")
    assert not any(each in texts(sent) for each in (*NO_RESULT.values(), "중지", "stopped", "did not finish"))
    # The next request, with all of it, goes on there.
    history = [user(asked), called("call-1", content=preamble), *results, *words, second.message]
    third = wire.post(*history, user(question(3)))
    assert third.place == (first.session_id, 3)
    assert results[0]["content"] in texts(wire.sent())


@pytest.mark.parametrize("case", BEHIND)
def test_nothing_stands_between_results_and_the_words_behind_them_in_a_history(wire: Wire, case: str) -> None:
    results, words = BEHIND[case]
    answered = wire.post(user(SAVE), called("call-1"), *results, *words)
    assert [each["role"] for each in wire.sent()] == ["user", "assistant", "tool", "user"]
    wire.post(user(SAVE), called("call-1"), *results, *words, answered.message, user(question(3)))
    assert [each["role"] for each in wire.sent()] == ["user", "assistant", "tool", "user", "assistant", "user"]


SHOWN: Final = result("call-1", [{"type": "text", "text": "Shown 0417."}, PICTURE])
SHOWN_WORDS: Final = "Shown 0417.\n[image]"


@pytest.mark.parametrize("words", [[], [user("And quickly.")]], ids=["alone", "with words behind it"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_picture_of_a_result_is_the_results_and_reaches_the_model(
    wire: Wire, chat: Chat, words: list[Message], *, is_known: bool
) -> None:
    first = wire.call(user(SAVE)) if is_known else None
    history = [user(SAVE), called("call-1"), SHOWN, *words]
    second = wire.post(*history)
    *_, told, pictures = wire.sent()
    assert (told["role"], told["content"]) == ("tool", SHOWN_WORDS)
    assert [part for part in pictures["content"] if part["type"] == "image_url"] == [PICTURE]
    assert content_of(pictures) == RESULT_IMAGES + "".join(map(content_of, words))
    turns = Chat(chat.service, second.session_id).turns
    assert second.place == (first.session_id if first else second.session_id, len(turns))
    assert [turn.user_text for turn in turns] == [SAVE, *map(content_of, words)]
    (step,) = turns[0].steps
    assert [chat.service.turns.image(second.session_id, each) for each in step.images] == [PICTURE["image_url"]["url"]]
    third = wire.post(*history, second.message, user(question(3)))
    assert third.place == (second.session_id, len(turns) + 1)
    assert str(wire.sent()).count(PICTURE["image_url"]["url"]) == 1
    # With another picture it is another result.
    other = "data:image/png;base64,iVBORw0KGgo2AAA="
    shown = [{"type": "text", "text": "Shown 0417."}, {"type": "image_url", "image_url": {"url": other}}]
    changed = result("call-1", shown)
    assert wire.post(user(SAVE), called("call-1"), changed, *words).session_id != second.session_id
    assert PICTURE["image_url"]["url"] not in str(wire.sent())
    assert other in str(wire.sent())


def test_a_programs_own_context_has_results_with_words_behind_them(wire: Wire) -> None:
    own = [user("Use this file."), called("x1"), result("x1", "0417"), user("And be brief."), said("Ok, I will.")]
    history = wire.chat(1, 2)
    wire.post(*own, *history, user(question(3)))
    roles = [each["role"] for each in wire.sent()]
    assert roles == [*["user", "assistant"] * 2, "user", "assistant", "tool", "user", "assistant", "user"]


@pytest.mark.parametrize("said_beside", ["", "Let me look."])
def test_an_agent_that_puts_words_behind_each_result_is_told_them_alone(
    wire: Wire, chat: Chat, said_beside: str
) -> None:
    asked, places = [user(SAVE)], []
    for number in range(1, 9):
        places.append(wire.call(*asked, call_id=f"call-{number}", answer=said_beside).place)
        assert all("tool_calls" in each for each in wire.sent() if each["role"] == "assistant")
        call = called(f"call-{number}", content=said_beside)
        asked += [call, result(f"call-{number}", f"saved {number}"), user(f"Reminder {number}: {question(number)}")]
    assert places == [(places[0][0], number) for number in range(1, 9)]
    page = Chat(chat.service, places[0][0])
    assert [turn.status for turn in page.turns] == ["finished"] * 7 + ["requires_action"]
    assert {turn.answer_text for turn in page.turns} == {said_beside}
    page.wait_for_folds()
    source = next(text for body in wire.server.bodies("summary") if "Reminder 1" in (text := texts(body["messages"])))
    assert not any(each in source for each in CLOSED_ANSWER.values())
    assert re.search(r"from=\"assistant\">\s*</", source) is None


def test_the_calls_that_words_stand_behind_are_told_again_to_who_tries_again(wire: Wire) -> None:
    key = {"Idempotency-Key": wire.user}
    first = wire.call(user(SAVE), headers=key)
    wire.post(user(SAVE), called("call-1"), result("call-1", "saved"), user("And quickly."))
    again = wire.post(user(SAVE), headers=key)
    assert (again.matched, again.message) == ("retry", first.message)


def test_a_key_counts_for_ten_minutes_and_is_then_asked_anew_once(open_chat: OpenChat, server: FakeOpenAI) -> None:
    clock = MovableClock()
    chat = open_chat(clock=clock)
    with ServedPrograms(chat.service) as served, served.client() as client:
        wire, key = Wire(client, chat.session_id, server), {"Idempotency-Key": chat.session_id}
        first, retry = (wire.post(user(SAVE), headers=key) for _ in "12")
        clock.move(11 * 60)
        again, last = (wire.post(user(SAVE), headers=key) for _ in "12")
    assert retry.place == first.place
    assert (again.place == last.place, again.session_id == first.session_id) == (True, False)


def test_words_between_calls_and_results_are_the_same(wire: Wire, server: FakeOpenAI) -> None:
    server.script(tools(*(ScriptedCall("look", '{"at": "grass"}', f"call-{number}") for number in (1, 2))))
    asked = wire.post(user(SAVE))
    both = {"role": "assistant", "content": None, "tool_calls": asked.message["tool_calls"]}
    second = wire.post(
        user(SAVE), both, user("One moment."), result("call-2", "blue"), user("And quickly."), result("call-1", "green")
    )
    assert second.place == (asked.session_id, 2)
    assert wire.rounds()[2:4] == [("tool", "green"), ("tool", "blue")]
    assert wire.rounds()[-1] == ("user", "One moment.\n\nAnd quickly.")


def test_a_fold_of_results_with_words_behind_says_nothing_false(wire: Wire, chat: Chat, server: FakeOpenAI) -> None:
    wire.call(user(TRIP))
    found = result("call-1", "숙소는 돌산의 바다채, 방은 0417호입니다.")
    messages = [user(TRIP), called("call-1"), found, user("그리고 빨리요.")]
    answered = wire.post(*messages)
    for number in (3, 4):
        messages += [said(answered.message["content"]), user(question(number))]
        answered = wire.post(*messages)
    Chat(chat.service, answered.session_id).wait_for_folds()
    source = texts(server.bodies("summary")[0]["messages"])
    assert found["content"] in source
    assert not any(each in source for each in (*NO_RESULT.values(), "중지했습니다", "stopped the answer"))


@pytest.mark.parametrize("cut", ["in front", "all but the call", "words around the question", "the earlier answers"])
def test_a_call_is_found_behind_a_shortened_or_reworded_history(wire: Wire, cut: str) -> None:
    history = wire.chat(1, 4)
    asked = wire.call(*history, user(SAVE))
    assert asked.turn == 5
    front = {
        "in front": [*history[-2:], user(SAVE)],
        "all but the call": [],
        "words around the question": [*history[-2:], user(f"Use these documents:\n<doc/>\n{SAVE}\nToday is Friday.")],
        "the earlier answers": [user("(Summary: the budget is 1200 euros.)"), said("Noted."), user(SAVE)],
    }[cut]
    again = wire.post(*front, called("call-1"), result("call-1", "saved 0417"))
    assert again.place == asked.place
    assert wire.rounds()[-3:] == [("user", SAVE), CALL, ("tool", "saved 0417")]
    assert question(4) in texts(wire.sent())
    # What comes next is recognised by what was sent, as ever.
    messages = [*front, called("call-1"), result("call-1", "saved 0417"), again.message]
    assert wire.post(*messages, user(question(6))).place == (asked.session_id, 6)


@pytest.mark.parametrize("behind", [[], [user("And quickly.")]])
def test_a_call_is_answered_a_day_later(open_chat: OpenChat, server: FakeOpenAI, behind: list[Message]) -> None:
    clock = MovableClock()
    chat = open_chat(clock=clock)
    with ServedPrograms(chat.service) as served, served.client() as client:
        wire = Wire(client, "ann", server)
        asked = wire.call(user(SAVE))
        for seconds in (31 * 60, 24 * 3600):
            clock.move(seconds)
            assert Chat(chat.service, asked.session_id).last_turn.status == "requires_action"
        answered = wire.post(user(SAVE), called("call-1"), result("call-1", "approved 0417"), *behind)
    assert answered.place == (asked.session_id, 1 + len(behind))
    assert ("tool", "approved 0417") in wire.rounds()


ELSEWHERE: Final[dict[str, tuple[list[Message], list[tuple[str, str]]]]] = {
    "a round": ([user(SAVE), called("x1"), result("x1", "0417")], [("user", SAVE), CALL, ("tool", "0417")]),
    "two rounds": (
        [user(TRIP), called("x1"), result("x1", "바다"), called("x2", content="더 볼게요."), result("x2", "0417")],
        [("user", TRIP), CALL, ("tool", "바다"), CALL, ("tool", "0417")],
    ),
    "questions in a row": (
        [user("Hello?"), user(SAVE), called("x1"), result("x1", "0417")],
        [("user", f"Hello?\n\n{SAVE}"), CALL, ("tool", "0417")],
    ),
    "no question": (
        [called("x1"), result("x1", "돌산 0417")],
        [("user", ASSISTANT_BEGAN["ko"]), CALL, ("tool", "돌산 0417")],
    ),
    "a blank question": (
        [user(" "), called("x1"), result("x1", "0417")],
        [("user", ASSISTANT_BEGAN["en"]), CALL, ("tool", "0417")],
    ),
    "a result alone": (
        [user(SAVE), result("x1", "0417")],
        [("user", SAVE), ("assistant", "{}"), ("tool", "0417")],
    ),
    "one result too few": (
        [
            user(SAVE),
            {"role": "assistant", "tool_calls": [*called("x1")["tool_calls"], *called("x2")["tool_calls"]]},
            result("x2", "0417"),
        ],
        [("user", SAVE), ("assistant", CALL[1] * 2), ("tool", "0417"), ("tool", NO_RESULT["en"])],
    ),
    "in the form of old": (
        [
            user(SAVE),
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"at": "grass"}'}},
            {"role": "function", "name": "look", "content": "0417"},
        ],
        [("user", SAVE), CALL, ("tool", "0417")],
    ),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_results_of_calls_that_nobody_here_made_are_answered(wire: Wire, chat: Chat, case: str) -> None:
    messages, told = ELSEWHERE[case]
    answered = wire.post(*messages)
    assert (answered.matched, answered.turn) == ("new", 1)
    assert wire.rounds() == told
    page = Chat(chat.service, answered.session_id)
    assert (page.last_turn.status, page.last_turn.answer_text.count(answered.message["content"])) == ("finished", 1)
    second = wire.post(*messages, answered.message, user(question(2)))
    assert second.place[1] == 2
    assert "0417" in texts(wire.sent())
    if case not in {"no question", "a blank question"}:
        assert second.session_id == answered.session_id


def test_a_round_that_another_model_began_goes_on_in_the_chat(wire: Wire) -> None:
    history = wire.chat(1, 2)
    messages = [*history, user(SAVE), called("x1"), result("x1", "0417")]
    answered = wire.post(*messages)
    assert (answered.turn, answered.matched) == (3, "history")
    assert wire.rounds()[-3:] == [("user", SAVE), CALL, ("tool", "0417")]
    # A call of the answer to it is one like any other, and the same results again are answered anew.
    again = wire.call(*messages)
    assert again.place == answered.place
    last = wire.post(*messages, called("call-1"), result("call-1", "blue"))
    assert last.place == answered.place
    assert wire.rounds()[-5:] == [("user", SAVE), CALL, ("tool", "0417"), CALL, ("tool", "blue")]
    assert wire.post(*messages, called("call-1"), result("call-1", "blue"), last.message, user(question(4))).turn == 4


def test_the_response_to_a_round_from_elsewhere_is_told_again_without_it(wire: Wire) -> None:
    messages = [user(SAVE), called("x1", content="Let me look."), result("x1", "0417")]
    key = {"Idempotency-Key": "once"}
    first = wire.post(*messages, headers=key)
    again = wire.post(*messages, headers=key)
    assert (again.matched, again.place, again.message) == ("retry", first.place, first.message)


EDITED: Final = called("call-1", '{"at": "sky"}')
BESIDE: Final[dict[str, tuple[list[Message], list[tuple[str, str]]]]] = {
    # A person changed it before it ran.
    "the call changed": (
        [EDITED, result("call-1", "blue")],
        [CALL, ("tool", NO_RESULT["en"]), ("assistant", '{"at": "sky"}'), ("tool", "blue")],
    ),
    "another result": (
        [called("call-1"), result("x9", "other"), result("call-1", "green")],
        [CALL, ("tool", "green"), ("assistant", "{}"), ("tool", "other")],
    ),
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_isn_t_known_beside_an_open_call_is_added(wire: Wire, case: str) -> None:
    messages, told = BESIDE[case]
    asked = wire.call(user(SAVE))
    once = {"Idempotency-Key": "once"}
    answered = wire.post(user(SAVE), *messages, headers=once)
    assert answered.place == asked.place
    assert wire.rounds() == [("user", SAVE), *told]
    again = wire.post(user(SAVE), *messages, headers=once)
    assert (again.matched, again.message) == ("retry", answered.message)


@pytest.mark.parametrize("ended", ["Stop", "a message on the page", "a failure"])
@pytest.mark.parametrize("earlier", [0, 1])
@pytest.mark.parametrize("behind", [[], [user("And quickly.")]])
def test_results_that_come_too_late_are_answered(
    wire: Wire, chat: Chat, server: FakeOpenAI, ended: str, earlier: int, behind: list[Message]
) -> None:
    messages = [*wire.chat(1, earlier), user(SAVE)]
    asked = wire.call(*messages)
    page = Chat(chat.service, asked.session_id)
    late = [*messages, called("call-1"), result("call-1", "saved 0417"), *behind]
    if ended == "Stop":
        page.service.turns.stop(page.session_id)
    elif ended == "a failure":
        server.script(failure(400))
        body = {"model": "turnfold", "user": wire.user, "messages": late[: len(messages) + 2]}
        assert wire.client.post("/v1/chat/completions", json=body).status_code >= 400
    else:
        page.say(question(9))
    assert page.turns[asked.turn - 1].status == ("failed" if ended == "a failure" else "stopped")
    wire.post(*late)
    told = wire.rounds()
    assert told[-3 - len(behind) :][:3] == [("user", SAVE), CALL, ("tool", "saved 0417")]
    assert (told[-1] == ("user", "And quickly.")) == bool(behind)
    assert NO_RESULT["en"] not in texts(wire.sent())


@pytest.mark.parametrize("asked", [TRIP, SAVE])
def test_what_closes_a_call_is_told_as_it_was(wire: Wire, chat: Chat, asked: str) -> None:
    language: Any = "ko" if asked == TRIP else "en"
    for number, stops in ((1, False), (3, True)):
        session_id = wire.call(user(asked), user=f"{wire.user}-{number}").session_id
        page = Chat(chat.service, session_id)
        if stops:
            page.service.turns.stop(session_id)
        page.say(question(2))
        closing = CLOSED_ANSWER["stopped" if stops else "unanswered", language]
        assert wire.rounds()[:4] == [("user", asked), CALL, ("tool", NO_RESULT[language]), ("assistant", closing)]


def test_what_ends_with_the_server_wasn_t_stopped_by_the_user(open_chat: OpenChat, server: FakeOpenAI) -> None:
    with open_chat() as chat:
        server.script(hang())
        chat.start("Save the meeting.")
        server.wait_until(lambda _: server.hanging_count == 1)
    with open_chat(chat.session_id) as again:
        again.say("And now?")
    assert [content_of(each) for each in server.bodies("chat")[-1]["messages"][1:]] == [
        "Save the meeting.",
        CLOSED_ANSWER["unanswered", "en"],
        "And now?",
    ]


def test_two_chats_of_one_token_with_the_same_ids_of_calls_stay_two(wire: Wire) -> None:
    alice, bob, carol = "My PIN is 4711. Look around.", "I am Bob. Look around.", "I am Carol. Look around."
    places, ids = [], []
    for asked in (alice, bob):
        places.append(wire.call(user(asked), call_id="call-0").place)
        ids.append(wire.ids.pop("call-0"))
    # The id that the program has is of one of them, without more words.
    for place, name in zip(places, ids, strict=True):
        assert wire.post(called(name), result(name, "grass")).place == place
        assert ("PIN" in texts(wire.sent())) == (place == places[0])
    # Those of the endpoint are nobody's, nor is another's question with a call that was made elsewhere.
    for front in ([], [user(carol)]):
        cut = wire.post(*front, called("call-0"), result("call-0", "grass"))
        assert cut.place not in places
        assert "PIN" not in texts(wire.sent())


def test_an_agent_that_tells_its_calls_as_text_stays_in_its_chat(wire: Wire) -> None:
    messages, places = [user("New task:\nWhat is the budget of May?")], []
    for number in range(3):
        places.append(wire.call(*messages, call_id=f"call-{number}").place)
        messages.append(said(f"Calling tools:\n[{{'id': '{wire.ids[f'call-{number}']}', 'name': 'look'}}]"))
        messages.append(user(f"Observation:\n{number} euros\n\nNew task:\nAnd the next?"))
    assert places == [(places[0][0], turn) for turn in (1, 2, 3)]
    assert "What is the budget of May?" in texts(wire.sent())


def checked(wire: Wire, who: str, *, answer: str) -> list[Message]:
    """Has a turn whose words are the same for everybody, but not the result of its tool."""
    asked = user("Check my calendar.")
    wire.call(asked, call_id=f"call-{who}")
    wire.server.script(text(answer))
    round_of_tools = [asked, called(f"call-{who}"), result(f"call-{who}", f"The private calendar of {who}")]
    return [*round_of_tools, wire.post(*round_of_tools).message]


@pytest.mark.parametrize("known", ["both", "one"])
@pytest.mark.parametrize("behind", [[], [user("Thanks!"), said("You are welcome.")]])
def test_chats_of_the_same_words_are_told_apart_by_results_of_tools(
    wire: Wire, known: str, behind: list[Message]
) -> None:
    answer = "There is nothing that can't wait. I have put the rest in the list that you have asked for. " * 3
    alice = [*checked(wire, "alice", answer=answer), *behind]
    elsewhere = [user("Check my calendar."), called("b"), result("b", "The private calendar of bob"), said(answer)]
    bob = [*(checked(wire, "bob", answer=answer) if known == "both" else elsewhere), *behind]
    sessions = set()
    for _ in range(2):
        for name, other, history in (("alice", "bob", alice), ("bob", "alice", bob)):
            history.append(user("And tomorrow?"))
            answered = wire.post(*history)
            history.append(answered.message)
            assert texts(wire.sent()).count(name) == 1
            assert other not in texts(wire.sent())
            sessions.add((name, answered.session_id))
    assert len(sessions) == 2


def test_a_history_that_may_be_of_two_people_is_neither_s(wire: Wire) -> None:
    """A program that keeps only what was said."""
    alice, bob = (checked(wire, who, answer="Done.") for who in ("alice", "bob"))
    chats = [[history[0], history[-1], user("And tomorrow?")] for history in (alice, bob)]
    for history in chats:
        answered = wire.post(*history)
        assert answered.matched == "new"
        assert "private" not in texts(wire.sent())
    # Of one person alone it is known.
    only = checked(wire, "carol", answer="Done, Carol.")
    wire.post(only[0], only[-1], user("And tomorrow?"))
    assert "private calendar of carol" in texts(wire.sent())


@pytest.mark.parametrize("known", ["both", "one"])
def test_chats_of_the_same_words_are_told_apart_by_their_pictures(wire: Wire, known: str) -> None:
    chats = []
    for number in (1, 2):
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,iVBORw0KGgo{number}AAA"}}
        asked = user([{"type": "text", "text": "What is in this picture?"}, picture])
        wire.server.script(*[text("It is a cat.")] * (number == 1 or known == "both"))
        answer = wire.post(asked).message if number == 1 or known == "both" else said("It is a cat.")
        chats.append([asked, answer])
    sessions = set()
    for own, other, history in ((1, 2, chats[0]), (2, 1, chats[1]), (1, 2, chats[0])):
        history.append(user("And its colour?"))
        answered = wire.post(*history)
        history.append(answered.message)
        assert str(wire.sent()).count(f"iVBORw0KGgo{own}AAA") == 1
        assert f"iVBORw0KGgo{other}AAA" not in str(wire.sent())
        sessions.add((own, answered.session_id))
    assert len(sessions) == 2
    # The same picture at an address, which may be another one each time, is no other chat's.
    moved = {"type": "image_url", "image_url": {"url": "https://a.example/cat.png?until=9"}}
    history = [user([{"type": "text", "text": "What is in this picture?"}, moved]), *chats[0][1:], user("And more?")]
    assert (1, wire.post(*history).session_id) in sessions


def test_results_in_a_named_session_are_answered_there(wire: Wire) -> None:
    asked = wire.call(user(SAVE))
    named = {"X-Turnfold-Session": asked.session_id}
    assert wire.post(result("call-1", "saved"), user("And quickly."), headers=named).place == (asked.session_id, 2)
    assert [content_of(each) for each in wire.sent() if each["role"] == "tool"] == ["saved"]
    other = wire.post(called("x1"), result("x1", "0417"), headers=named)
    assert other.place == (asked.session_id, 3)
    assert wire.rounds()[-2:] == [CALL, ("tool", "0417")]


def test_an_answer_of_another_model_to_results_ends_the_turn_that_waited(wire: Wire, chat: Chat) -> None:
    asked = wire.call(user(SAVE), answer="Let me look.")
    messages = [
        user(SAVE),
        called("call-1", content="Let me look."),
        result("call-1", "green"),
        said("It is green, says another."),
    ]
    second = wire.post(*messages, user(question(2)))
    assert second.place == (asked.session_id, 2)
    assert wire.rounds()[:4] == [("user", SAVE), CALL, ("tool", "green"), ("assistant", "It is green, says another.")]
    assert [turn.status for turn in Chat(chat.service, asked.session_id).turns] == ["finished"] * 2


@pytest.mark.parametrize("place", ["behind", "in front"])
@pytest.mark.parametrize("lines", [400, 850])
def test_files_go_whole_wherever_they_stand_while_they_fit(
    open_chat: OpenChat, server: FakeOpenAI, lines: int, place: str
) -> None:
    service = open_chat(model_window_tokens=8_192).service
    with ServedPrograms(service) as served, served.client() as client:
        wire = Wire(client, "ann", server)
        history = wire.chat(1, 3)
        files = [user("\n".join(f"{line} The pier log, an entry" for line in range(lines))), said("Ok.")]
        asked = [*history, *files] if place == "behind" else [*files, *history]
        answered = wire.post(*asked, user(question(4)))
        assert [content_of(each) for each in wire.sent()[-3:-1]] == [content_of(each) for each in files]
        assert answered.turn == 4


PLACES: Final = {"in front": (0, 0), "between": (2, 2), "behind": (4, 4), "in two places": (0, 4)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("earlier", [[], [user("Wait, one thing:")]], ids=["", "two questions"])
def test_an_old_request_again_has_all_that_it_had(wire: Wire, place: str, earlier: list[Message]) -> None:
    history, (first, second) = wire.chat(1, 2), PLACES[place]
    files = [
        [user("The file a.py: 0417"), said("Ok, I see it.")],
        [user("The file b.py: 0815"), said("Ok, that, too.")],
    ]
    sent = [*history[:first], *files[0], *history[first:second], *files[1], *history[second:], *earlier, user(SAVE)]
    answered = wire.post(*sent)
    once = texts(wire.sent())
    assert (answered.turn, once.count("0417"), once.count("0815"), once.count("one thing")) == (3, 1, 1, len(earlier))
    assert wire.post(*sent, answered.message, user(question(4))).place == (answered.session_id, 4)
    again = wire.post(*sent)
    assert (again.matched, again.turn) == ("fork", 3)
    assert texts(wire.sent()) == once
    assert wire.post(*sent, again.message, user(question(5))).turn == 4


@pytest.mark.parametrize("place", ["in front", "behind"])
@pytest.mark.parametrize("behind", [[], [user("And quickly.")]], ids=["results", "words"])
def test_files_beside_results_are_as_the_program_has_them_now(wire: Wire, place: str, behind: list[Message]) -> None:
    history = wire.chat(1, 2)

    def asked(version: int) -> list[Message]:
        files = [user(f"The file a.py, version {version}"), said("Ok, I see it.")]
        return [*(files + history if place == "in front" else history + files), user(SAVE)]

    first = wire.call(*asked(1))
    answered = wire.post(*asked(2), called("call-1"), result("call-1", "saved"), *behind)
    assert answered.place == (first.session_id, 3 + len(behind))
    assert [texts(wire.sent()).count(f"version {version}") for version in (1, 2)] == [0, 1]


@pytest.mark.parametrize("place", ["in front", "behind"])
def test_files_stay_with_a_question_behind_one_that_failed(wire: Wire, place: str) -> None:
    history, files = wire.chat(1, 2), [user("The file a.py: 0417"), said("Ok, I see it.")]
    asked = [*(files + history if place == "in front" else history + files), user(SAVE)]
    wire.server.script(failure(400))
    body = {"model": "turnfold", "user": wire.user, "messages": asked}
    assert wire.client.post("/v1/chat/completions", json=body).status_code != 200
    assert wire.post(*asked, user(question(4))).turn == 4
    assert texts(wire.sent()).count("0417") == 1


def test_a_system_message_alone_is_asked(wire: Wire, server: FakeOpenAI) -> None:
    server.script(text("가을 하늘"))
    answered = wire.post({"role": "system", "content": "바다에 대한 짧은 시를 써라."})
    assert (answered.message["content"], answered.turn) == ("가을 하늘", 1)
    assert wire.rounds() == [("user", "바다에 대한 짧은 시를 써라.")]
