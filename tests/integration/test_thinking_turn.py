"""Models that think: their thoughts are shown and kept with the turn, and are no part of anything that is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import pytest

from graph.value.event import AnswerRestarted, ThoughtDelta, TokenDelta, ToolAsked, TurnFailed, TurnFinished
from tests.fake import resending
from tests.fake.body import roles
from tests.fake.chat import Chat, names, question, text_of
from tests.fake.mcp_servers import WRITE, ScriptedServers
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import (
    THINKING,
    Body,
    Reply,
    ScriptedCall,
    Thinking,
    as_whole,
    chunk,
    failure,
    raw,
    text,
    thinking,
)
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool

WORD: Final = "Zebrafish"
THOUGHT: Final = f"{WORD} Lane 7777 is the decoy.\n\n- I must keep `9090`.\n"
CLOCK: Final = ScriptedCall("get_current_time", '{"timezone": "Asia/Seoul"}', "call-1")
CUTS: Final = (3, 9, 40, 41, 170, 333)  # that no cut changes anything is shown in `test_thinking`


def cutter(cuts: Sequence[int]) -> Callable[[str], list[str]]:
    def cut(said: str) -> list[str]:
        places = sorted({0, *(place % (len(said) + 1) for place in cuts), len(said)})
        return [said[begin:end] for begin, end in pairwise(places)]

    return cut


def thinks(form: Thinking, cuts: Sequence[int] = ()) -> Callable[[Body], Reply]:
    """Answers as the server does by itself, behind thoughts: chats, summaries and titles."""

    def answer(body: Body) -> Reply:
        said = as_whole(answer_body(body))["choices"][0]["message"]["content"]
        return thinking(form, THOUGHT, said, pieces=cutter(cuts) if cuts else None)

    return answer


@pytest.mark.parametrize("form", THINKING)
def test_thoughts_are_in_nothing_but_their_column(open_chat: OpenChat, server: FakeOpenAI, form: Thinking) -> None:
    server.respond_with(thinks(form, CUTS))
    chat = open_chat(auto_titles=True)
    chat.ask(1, 7)
    chat.wait_until(lambda: chat.view.title in ("시험용 제목", "Title of the test"))
    assert len(chat.covered) == 2
    assert {kind_of(body) for body in server.bodies()} == {"chat", "summary", "title"}
    assert WORD not in json.dumps([dict(body) for body in server.bodies()], ensure_ascii=False)
    for table in ("message", "record", "session"):
        assert WORD not in repr(chat.rows(f"SELECT * FROM {table} WHERE session_id = ?", chat.session_id))  # noqa: S608  # names of our own
    records = chat.service.folds.records(chat.session_id)
    assert WORD not in repr(records)  # with the facts of its source
    assert "7777" not in repr([(record.kept_facts, record.missing_facts) for record in records])
    assert chat.service.sessions.list(search=WORD) == ()
    for turn in chat.turns:
        assert WORD not in turn.answer_text
        assert "think" not in turn.answer_text
        assert chat.service.turns.thoughts(chat.session_id, turn.number, attempt=turn.attempt) == THOUGHT.strip()
        assert turn.thought_seconds > 0


def test_events_tell_thoughts_before_the_answer_and_take_text_back(chat: Chat, server: FakeOpenAI) -> None:
    server.script(thinking("reasoning", THOUGHT, "9090."), thinking("end_tag", THOUGHT, "9091.", most=40))
    events = chat.say(question(1))
    assert names(events) == ["TurnStarted", "ThoughtDelta", "TokenDelta", "TurnFinished"] or {
        type(event) for event in events[1:-1]
    } == {ThoughtDelta, TokenDelta}
    assert "".join(event.text for event in events if isinstance(event, ThoughtDelta)) == THOUGHT
    assert text_of(events) == "9090."
    events = chat.say(question(2))
    at = events.index(AnswerRestarted(is_sorted=True))
    assert text_of(events[at:]) == "9091."
    assert isinstance(events[at + 1], ThoughtDelta)
    assert chat.last_turn.answer_text == "9091."


def test_a_stopped_turn_keeps_its_thoughts_and_another_attempt_replaces_them(chat: Chat, server: FakeOpenAI) -> None:
    whole = thinking("reasoning_content", THOUGHT, "")
    server.script(Reply(events=whole.events[:-2], ending="hang"), text("Without."))
    chat.start(question(1))
    chat.stop_when(lambda live: live.phase == "thinking" and live.thoughts == THOUGHT.strip())
    assert chat.service.turns.thoughts(chat.session_id, 1) == THOUGHT.strip()
    assert WORD not in chat.last_turn.answer_text
    chat.retry()
    assert chat.service.turns.thoughts(chat.session_id, 1) == ""
    assert chat.last_turn.thought_seconds == 0


def test_thoughts_alone_up_to_the_length_limit_fail_with_their_own_reason(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(model_attempts=3)
    server.script(thinking("tags", THOUGHT, "", finish_reason="length"))
    ending = chat.say(question(1))[-1]
    assert isinstance(ending, TurnFailed)
    assert ending.code == "thought_limit"
    assert len(server.bodies("chat")) == 1
    assert chat.service.turns.thoughts(chat.session_id, 1) == THOUGHT.strip()


def test_another_server_follows_the_thoughts(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat, whole = open_chat(), thinking("reasoning_content", THOUGHT, "")
    server.script(Reply(events=whole.events[:-2], ending="hang"))
    chat.start(question(1))
    other = open_chat(chat.session_id)
    other.wait_until_live(lambda live: live.phase == "thinking" and live.thoughts == THOUGHT.strip())
    chat.service.turns.stop(chat.session_id)
    chat.events()


def test_thoughts_are_exported_imported_and_copied_with_their_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.respond_with(thinks("tags"))
    chat.ask(1, 2)
    lines = list(chat.service.sessions.export(chat.session_id))
    assert WORD in "".join(lines)
    (imported,) = chat.service.sessions.import_session(lines)
    branch = chat.service.turns.fork(chat.session_id, after_turn=2)
    for session_id in (imported, branch):
        assert chat.service.turns.thoughts(session_id, 2) == THOUGHT.strip()
        assert chat.service.turns.transcript(session_id).turns[-1].thought_seconds > 0


DETAILS: Final = {
    "reasoning_content": THOUGHT,
    "reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "signature": "c2ln+/=", "index": 0}],
}


def calls_thinking(call: ScriptedCall, *, form: str = "reasoning_content", **extra: object) -> Reply:
    function = {"name": call.name, "arguments": call.arguments}
    delta = {"index": 0, "id": call.id, "type": "function", "function": function, **extra}
    return raw(
        chunk({"role": "assistant", form: DETAILS[form]}),
        chunk({"tool_calls": [delta]}),
        chunk({}, finish_reason="tool_calls"),
    )


@pytest.mark.parametrize("form", DETAILS)
def test_what_a_provider_wants_back_goes_back_with_every_raw_call(
    open_chat: OpenChat, server: FakeOpenAI, form: str
) -> None:
    """As DeepSeek, Kimi, Gemini and OpenRouter have it: a call without it is refused, in its turn and later."""
    signature = {"google": {"thought_signature": "c2ln+/="}}

    def strict(body: Body) -> Reply:
        last = max(place for place, message in enumerate(body["messages"]) if message["role"] == "user")
        calling = [place for place, message in enumerate(body["messages"]) if message.get("tool_calls")]
        for place in calling:
            message = body["messages"][place]
            if {name: message[name] for name in DETAILS if name in message} != {form: DETAILS[form]}:
                return failure(400, f"The {form} in the thinking mode must be passed back")
            if message["tool_calls"][0].get("extra_content") != signature:
                return failure(400, "Function call is missing a thought_signature")
        rounds = sum(place > last for place in calling)
        return calls_thinking(CLOCK, form=form, extra_content=signature) if rounds < 2 else text("It is noon.")

    server.script(*[strict] * 9)
    chat = open_chat()
    for number in (1, 2):
        ending = chat.say(question(number))[-1]
        assert isinstance(ending, TurnFinished), ending
    session_id = chat.session_id
    chat.close()
    chat = open_chat(session_id)
    assert isinstance(chat.say(question(3))[-1], TurnFinished)
    assert roles(server.bodies("chat")[-1])[-5:] == ["user", "assistant", "tool", "assistant", "tool"]
    assert len([message for message in server.bodies("chat")[-1]["messages"] if form in message]) == 6
    assert WORD not in repr(chat.rows("SELECT * FROM message WHERE session_id = ?", chat.session_id))
    assert chat.service.turns.thoughts(chat.session_id, 1) == f"{THOUGHT.strip()}\n\n{THOUGHT.strip()}"
    assert [call.is_verified for call in chat.service.inputs.of_turn(chat.session_id, 1)] == [True] * 3


def test_it_goes_back_too_behind_the_users_word_at_another_server(open_chat: OpenChat, server: FakeOpenAI) -> None:
    """And what a provider wants back with earlier calls: a chat that waits keeps its checkpoint."""
    servers = ScriptedServers()
    with open_chat(mcp=servers) as chat:
        server.script(calls_thinking(CLOCK), text("It is noon."))
        chat.say(question(1))
        chat.service.mcp.choose(chat.session_id, [WRITE.offered])
        server.script(calls_thinking(ScriptedCall(WRITE.offered, '{"text": "milk"}', "call-write")))
        assert isinstance(chat.say(question(2))[-1], ToolAsked)
    again = open_chat(chat.session_id, mcp=servers)
    server.script(text("It is written."))
    again.service.mcp.answer(chat.session_id, {"call-write": "once"})
    assert isinstance(again.events()[-1], TurnFinished)
    messages = server.bodies("chat")[-1]["messages"]
    assert [message["reasoning_content"] for message in messages if message.get("tool_calls")] == [THOUGHT] * 2


def test_what_was_given_back_when_a_turn_failed_is_not_given_again(chat: Chat, server: FakeOpenAI) -> None:
    server.script(calls_thinking(CLOCK, form="reasoning_details"), text("It is noon."))
    chat.say(question(1))
    server.respond_with(lambda body: failure(400, "bad signature") if "c2ln" in str(body) else answer_body(body))
    assert isinstance(chat.say(question(2))[-1], TurnFailed)
    assert isinstance(chat.retry()[-1], TurnFinished)


ASKS: Final = (
    "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "Missing `reasoning_content` field in the assistant message at message index 4.",
    "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
)


@pytest.mark.parametrize("words", ASKS)
def test_calls_whose_reasoning_is_gone_go_with_a_blank_once_it_is_asked_for(
    open_chat: OpenChat, server: FakeOpenAI, words: str
) -> None:
    """Those of an imported chat or of another model: the tables have no reasoning to give back."""

    def strict(body: Body) -> Reply:
        answers = [message for message in body["messages"] if message["role"] == "assistant"]
        return answer_body(body) if all(each.get("reasoning_content") for each in answers) else failure(400, words)

    server.script(calls_thinking(CLOCK), text("It is noon."))
    chat = open_chat()
    chat.say(question(1))
    (imported,) = chat.service.sessions.import_session(list(chat.service.sessions.export(chat.session_id)))
    server.respond_with(strict)
    copy = Chat(chat.service, imported)
    for number in (2, 3):
        assert isinstance(copy.say(question(number))[-1], TurnFinished)
    bodies = server.bodies("chat")[2:]
    assert [any("reasoning_content" in message for message in body["messages"]) for body in bodies] == [
        False,
        True,
        True,
    ]


REFUSES: Final = (
    failure(400, "property 'messages.2.assistant.reasoning_content' is unsupported"),
    Reply(
        422,
        error={
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "messages", 2, "assistant", "reasoning_content"],
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
    ),
)


@pytest.mark.parametrize("refusal", REFUSES)
def test_reasoning_is_kept_from_a_server_that_takes_none(
    open_chat: OpenChat, server: FakeOpenAI, refusal: Reply
) -> None:
    def strict(body: Body) -> Reply:
        return refusal if "reasoning_content" in str(body["messages"]) else answer_body(body)

    server.script(calls_thinking(CLOCK), text("It is noon."))
    chat = open_chat()
    chat.say(question(1))
    server.respond_with(strict)
    for number in (2, 3):
        assert isinstance(chat.say(question(number))[-1], TurnFinished)
    assert ["reasoning_content" in str(body) for body in server.bodies("chat")[2:]] == [True, False, False]


def test_it_goes_back_too_behind_what_a_program_answered(chat: Chat, server: FakeOpenAI) -> None:
    program = resending.begin(chat, user=chat.session_id)
    program.options = {"tools": (tool("look"),)}
    look = ScriptedCall("look", "{}", "call-1")
    server.script(calls_thinking(look), thinking("reasoning_content", "So green.", "Green."))
    first = program.ask(question(1))
    program.messages.append(resending.result("call-1", "green"))
    second = program.take(program.begin())
    assert (second.turn, second.text) == (first.turn, "Green.")
    assert server.bodies("chat")[-1]["messages"][-2]["reasoning_content"] == THOUGHT
    thoughts = chat.service.turns.thoughts(first.session_id, 1)
    assert thoughts == f"{THOUGHT.strip()}\n\nSo green."
    program.ask(question(2))
    messages = server.bodies("chat")[-1]["messages"]
    assert [message.get("reasoning_content") for message in messages if WORD in str(message)] == [THOUGHT]


def test_a_program_is_told_thoughts_beside_the_text(chat: Chat, server: FakeOpenAI) -> None:
    program = resending.begin(chat, user=chat.session_id)
    server.script(thinking("tags", THOUGHT, "9090."), thinking("end_tag", THOUGHT, "9091.", most=20), text("9092."))
    first = program.ask(question(1))
    thoughts = "".join(event.text for event in first.events if isinstance(event, ThoughtDelta))
    assert (thoughts.strip(), first.text) == (THOUGHT.strip(), "9090.")
    # Of a model that isn't known yet to send the end alone, what went out can't be taken back.
    second = program.ask(question(2))
    assert isinstance(second.events[-1], TurnFinished)
    assert second.events[-1].text == "9091."
    third = program.ask(question(3))
    assert (third.session_id, third.turn) == (first.session_id, 3)
    assert WORD not in repr(server.bodies("chat")[-1])


def test_options_of_the_settings_and_a_sessions_choice_go_out(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(model_options='{"scripted-model": {"reasoning_effort": "medium", "top_k": 5}, "*": {"seed": 1}}')
    (option,) = chat.service.sessions.model_options()
    assert option.thinks
    chat.say(question(1))
    chat.service.sessions.configure(chat.session_id, thinking="off")
    chat.say(question(2))
    first, second = server.bodies("chat")
    assert (first["reasoning_effort"], first["top_k"], first["seed"]) == ("medium", 5, 1)
    assert (second["reasoning_effort"], second["top_k"], second["seed"]) == ("none", 5, 1)
    assert chat.view.thinking == "off"
    chat.service.sessions.configure(chat.session_id, thinking="much")  # type: ignore[arg-type]  # no level
    assert chat.view.thinking == "off"


def test_a_model_without_such_a_choice_is_sent_none(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    chat.say(question(1))
    chat.service.sessions.configure(chat.session_id, thinking="high")
    chat.say(question(2))
    first, second = server.bodies("chat")
    assert first.keys() == second.keys()


def test_a_model_that_the_list_says_to_think_has_the_choice(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.models = [{"id": "scripted-model", "supported_parameters": ["tools", "reasoning"]}, "plain"]
    chat = open_chat()
    assert [option.thinks for option in chat.service.sessions.model_options()] == [True, False]
    chat.say(question(1))
    chat.service.sessions.configure(chat.session_id, thinking="high")
    chat.say(question(2))
    assert server.bodies("chat")[-1]["reasoning_effort"] == "high"
