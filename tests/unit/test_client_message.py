"""Messages of programs: as a model is sent them, as turns of the archive, and before a question."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.messages.utils import convert_to_openai_messages

from graph.core.attached import reference_of
from graph.core.language import session_language
from graph.core.pin import ContextBlock, Said
from graph.core.text import has_visible, plain_text
from graph.core.turn import closed_mark, goes_on, is_complete, split_turns, text_of
from graph.recognise.client_chain import results_first
from graph.recognise.client_turns import continued, results_of, sent_ids, to_messages, turns_of
from graph.value.client import ClientMessage
from graph.value.error import InputError
from graph.value.event import ClientCall
from prompt.system.framing import CURRENT_PART, NO_RESULT, NOT_RUN, Language
from tests.fake.body import faults
from tests.fake.client_history import HISTORIES

PNG = "data:image/png;base64,AAAA"


def user(text: str, *images: str) -> ClientMessage:
    return ClientMessage("user", text, images)


def assistant(text: str, *calls: ClientCall) -> ClientMessage:
    return ClientMessage("assistant", text, calls=calls)


def result(call_id: str, text: str) -> ClientMessage:
    return ClientMessage("tool", text, call_id=call_id)


def call(call_id: str, arguments: str = '{"city": "Seoul"}') -> ClientCall:
    return ClientCall(call_id, "get_weather", arguments)


def shape(*messages: ClientMessage) -> list[list[str]]:
    """Each message of each turn by its kind and its text, calls marked by `>`."""
    language = session_language([HumanMessage(message.text) for message in messages if message.role == "user"], "en")
    turns = turns_of(messages, id_prefix="m", language=language)
    return [[_shape_of(message) for message in turn] for turn in turns]


def _shape_of(message: AnyMessage) -> str:
    calls = ">" * len(message.tool_calls) if isinstance(message, AIMessage) else ""
    return f"{message.type}: {text_of(message)}{calls}"


@given(HISTORIES)
def test_whatever_a_program_sends_becomes_turns_that_a_provider_accepts(history: list[ClientMessage]) -> None:
    turns = turns_of(history, id_prefix="m", language="ko")
    messages = [message for turn in turns for message in turn]
    sent = convert_to_openai_messages([each for each in messages if not goes_on(each)]) if messages else []
    assert turns == split_turns(messages)
    assert all(is_complete(turn) and isinstance(turn[0], HumanMessage) for turn in turns)
    assert faults(sent) == [] or sent == []
    assert len({message.id for message in messages}) == len(messages)
    calls = [call for message in sent for call in message.get("tool_calls", ())]
    assert len({call["id"] for call in calls}) == len(calls)
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", call["id"]) for call in calls)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"]) for call in calls)
    assert all(isinstance(json.loads(call["function"]["arguments"], parse_constant=refuse), dict) for call in calls)
    json.dumps(sent, ensure_ascii=False).encode()
    told = "\n".join(text_of(message) for message in messages)
    assert all(plain_text(said.text) in told for said in history if has_visible(said.text))


def refuse(constant: str) -> None:
    raise AssertionError(constant)


@given(HISTORIES)
def test_whatever_a_program_says_of_a_turn_that_waits_goes_on_with_it(history: list[ClientMessage]) -> None:
    calls = [tool_call(name="get_weather", args={}, id=name) for name in ("call_1", "call_2")]
    begun: list[AnyMessage] = [HumanMessage("q", id="q"), AIMessage("", id="a", tool_calls=calls)]
    said = [message for message in history if message.role != "user"]
    messages = [*begun, *continued(begun, said, id_prefix="m", language="ko")]
    assert faults(convert_to_openai_messages(messages)) == []
    assert len({message.id for message in messages}) == len(messages)
    told = "\n".join(text_of(message) for message in messages)
    results = [message.text for message in said if message.role == "tool" and has_visible(message.text)]
    assert all(plain_text(result) in told for result in results)


@given(HISTORIES)
def test_results_are_set_before_the_words_behind_their_calls_and_nothing_else_moves(
    history: list[ClientMessage],
) -> None:
    ordered = results_first(history)
    assert [message for message in ordered if message.role == "tool"] == [
        each for each in history if each.role == "tool"
    ]
    assert [message for message in ordered if message.role != "tool"] == [
        each for each in history if each.role != "tool"
    ]
    waits = False
    for before, message in pairwise((ClientMessage("user", ""), *ordered)):
        waits = bool(message.calls) if message.role == "assistant" else waits
        assert not (waits and message.role == "tool" and before.role == "user")


def test_an_ordinary_history_stays_as_it_was_said() -> None:
    assert shape(
        user("q1"), assistant("a1"), user("q2"), assistant("", call("c")), result("c", "20"), assistant("a2")
    ) == [
        ["human: q1", "ai: a1"],
        ["human: q2", "ai: >", "tool: 20", "ai: a2"],
    ]
    # What one speaker says in a row is one message, also an answer and the call behind it.
    assert shape(user("q1"), user("q2"), assistant("a1"), assistant("a2")) == [["human: q1\n\nq2", "ai: a1\n\na2"]]
    messages = [user("q"), assistant("wait"), assistant("", call("c")), result("c", "20"), assistant("a")]
    assert shape(*messages) == [["human: q", "ai: wait>", "tool: 20", "ai: a"]]


def test_thoughts_of_an_imported_answer_are_left_out() -> None:
    said = [user("q1 <think>"), assistant("<think>\n7777\n</think>\n\na1"), user("q2"), assistant("◁think▷7777")]
    assert shape(*said)[0] == ["human: q1 <think>", "ai: a1"]
    assert "7777" not in str(shape(*said))


def test_a_turn_without_an_answer_is_closed_as_stopped() -> None:
    (turn,) = turns_of([user("질문입니다.")], id_prefix="m", language="ko")
    assert text_of(turn[1]) == "(답변 없이 끝났습니다.)"
    assert closed_mark(turn[1]) == {"closed": "stopped", "code": "", "is_partial": False}


def test_calls_that_nobody_answered_are_ended_before_what_follows() -> None:
    messages = [
        user("the question"),
        assistant("", call("c"), call("d")),
        result("d", "20"),
        user("next"),
        assistant("a"),
    ]
    assert shape(*messages) == [
        [
            "human: the question",
            "ai: >>",
            "tool: 20",
            "tool: (There is no result.)",
            "ai: ",
        ],
        ["human: next", "ai: a"],
    ]


def test_a_result_without_a_call_gets_one_and_loses_nothing() -> None:
    assert shape(user("q"), assistant("a"), result("gone", "20")) == [["human: q", "ai: a>", "tool: 20", "ai: "]]


def test_the_same_id_twice_is_two_calls() -> None:
    one, two = assistant("", call("c"), call("c")), result("c", "20")
    turn = shape(user("the question"), one, two, two, assistant("a"))[0]
    assert turn[1:] == ["ai: >>", "tool: 20", "tool: (There is no result.)", "ai: >", "tool: 20", "ai: a"]


def test_a_greeting_before_the_first_question_has_a_turn_of_its_own() -> None:
    assert shape(assistant("무엇을 도와드릴까요?"), user("서버를 옮기려고 합니다."), assistant("네.")) == [
        ["human: (대화는 AI의 말로 시작되었습니다.)", "ai: 무엇을 도와드릴까요?"],
        ["human: 서버를 옮기려고 합니다.", "ai: 네."],
    ]


def test_messages_that_say_nothing_are_left_out() -> None:
    assert shape(user(" \n"), assistant("\u200b"), user("q"), assistant(""), assistant("a")) == [["human: q", "ai: a"]]
    assert shape(user(""), assistant("")) == []


def test_images_are_kept_by_reference_and_those_that_no_provider_may_be_sent_by_a_mark() -> None:
    (turn,) = turns_of(
        [user("q", PNG, "https://example.org/a.png", "file:///etc/passwd"), assistant("a")], id_prefix="m"
    )
    assert turn[0].content == [
        {"type": "text", "text": "q\n[image]"},
        {"type": "image_url", "image_url": {"url": reference_of(PNG)}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    assert reference_of(PNG).startswith("image:")


def test_a_message_behind_a_call_that_nobody_answered_leaves_the_call_whole() -> None:
    (turn,) = turns_of([user("Go"), assistant("I look.", call("1")), assistant("It rains.")], id_prefix="t")
    assert [message.type for message in turn] == ["human", "ai", "tool", "ai"]
    assert [text_of(message) for message in (turn[1], turn[3])] == ["I look.", "It rains."]


def test_arguments_that_are_no_object_are_kept_as_text() -> None:
    for arguments in ("[1]", '{"n": NaN}', '{"a":' * 500, "9" * 5_000, ""):
        (turn,) = turns_of([user("q"), assistant("", call("c", arguments)), result("c", "20")], id_prefix="m")
        assert isinstance(turn[1], AIMessage)
        assert turn[1].tool_calls[0]["args"] == {"arguments": arguments}
    assert isinstance(turn[2], ToolMessage)


WORDS = st.text(st.characters(), max_size=40)
CALLS = st.builds(ClientCall, id=WORDS, name=WORDS, arguments=WORDS)
MESSAGES = st.one_of(
    st.builds(ClientMessage, st.just("user"), WORDS, images=st.lists(WORDS, max_size=3).map(tuple)),
    st.builds(ClientMessage, st.just("assistant"), WORDS, calls=st.lists(CALLS, max_size=3).map(tuple)),
    st.builds(ClientMessage, st.just("tool"), WORDS, st.lists(WORDS, max_size=3).map(tuple), call_id=WORDS),
)


@given(st.lists(MESSAGES, max_size=5))
def test_any_message_can_be_sent_and_keeps_its_role_and_calls(messages: list[ClientMessage]) -> None:
    sent = to_messages(messages)
    kinds = {"user": HumanMessage, "assistant": AIMessage, "tool": ToolMessage}
    assert [type(message) for message in sent] == [kinds[message.role] for message in messages]
    for given_message, message in zip(messages, sent, strict=True):
        json.dumps(message.content).encode()  # text that every endpoint accepts
        message.text.encode()
        if isinstance(message, AIMessage):
            assert len(message.tool_calls) + len(message.invalid_tool_calls) == len(given_message.calls)


def test_text_without_images_stays_a_string_and_images_keep_their_order() -> None:
    plain, both, bare = to_messages(
        [
            ClientMessage("user", CURRENT_PART),
            ClientMessage("user", "이것", images=("https://a/1", "data:2")),
            ClientMessage("user", "", images=("https://a/1",)),
        ]
    )
    first, second = ({"type": "image_url", "image_url": {"url": url}} for url in ("https://a/1", "data:2"))
    assert plain.content == CURRENT_PART
    assert both.content == [{"type": "text", "text": "이것"}, first, second]
    assert bare.content == [first]


def test_arguments_that_are_no_object_are_kept_as_they_came() -> None:
    deep = '{"f": ' * 100_000 + "1" + "}" * 100_000  # Python 3.12 and 3.13 read a thousand levels
    given_calls = [("a", '{"b":1}'), ("c", "[1]"), ("d", ""), ("e", "{"), ("f", deep)]
    calls = tuple(ClientCall(name, name, text) for name, text in given_calls)
    (message,) = to_messages([ClientMessage("assistant", "", calls=calls)])
    assert isinstance(message, AIMessage)
    assert [(call["id"], call["args"]) for call in message.tool_calls] == [("a", {"b": 1}), ("d", {})]
    assert [(call["id"], call["args"]) for call in message.invalid_tool_calls] == [
        ("c", "[1]"),
        ("e", "{"),
        ("f", deep),
    ]


@given(HISTORIES)
def test_what_is_sent_before_a_question_is_stored_word_for_word(said: list[ClientMessage]) -> None:
    messages = [message for turn in turns_of(said, id_prefix="before") for message in turn]
    block = ContextBlock("before", 1, Said("asked", tuple(messages)).text)
    assert block.said.asked == "asked"
    assert convert_to_openai_messages(list(block.said.messages)) == convert_to_openai_messages(messages)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "[1, 2]", '["a", [{"content": "x"}]]', '["a", [{"role": "x"}]]', "[" * 9_000]
)
def test_an_import_may_have_anything_in_its_place(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        _ = ContextBlock("before", 1, text).said


def calling(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[tool_call(id=each, name="get_weather", args={"city": "Seoul"}) for each in ids])


def called(*ids: str) -> ClientMessage:
    return assistant("", *map(call, ids))


# An earlier round, and an answer with two calls for the program beside one of ours, which has its result.
OPEN: list[AnyMessage] = [
    HumanMessage("Hi"),
    calling("0"),
    ToolMessage("past", tool_call_id="0"),
    calling("a", "ours", "b"),
    ToolMessage("9 o'clock", tool_call_id="ours"),
]
BROKEN = assistant("", call("a", '{"city": "Jeju"}'))
SENT: dict[str, tuple[list[ClientMessage], list[str] | str]] = {
    "all": ([called("a", "b"), result("b", "wet"), result("a", "dry")], ["a dry", "b wet"]),
    "one call alone": ([called("b"), result("b", "wet")], ["b wet", "a (not run)"]),
    "one behind an earlier round": (
        [called("0"), result("0", "past"), called("a"), result("a", "dry")],
        ["a dry", "b (not run)"],
    ),
    "each with its result": ([called("a"), result("a", "dry"), called("b"), result("b", "wet")], ["a dry", "b wet"]),
    "a changed call alone": ([BROKEN, result("a", "dry")], ["a (no result)", "b (not run)", "? dry"]),
    "a call and no result": ([called("a", "b"), result("a", "dry")], "b"),
    "results alone": ([result("b", "wet")], "a"),
    "words before results": ([assistant("Let me look."), result("b", "wet")], "a"),
    "another call's result": ([called("b"), result("c", "wet")], "c"),
}


@pytest.mark.parametrize("case", SENT)
def test_a_call_that_a_program_s_history_leaves_out_was_not_run(case: str) -> None:
    sent, told = SENT[case]
    for language in get_args(Language):
        if isinstance(told, str):
            with pytest.raises(InputError, match=sent_ids(OPEN).get(told, told)):
                results_of(OPEN, sent, id_prefix="m", language=language)
            continue
        messages = results_of(OPEN, sent, id_prefix="m", language=language)
        marks = {NOT_RUN[language]: "(not run)", NO_RESULT[language]: "(no result)"}
        results = [each for each in messages if isinstance(each, ToolMessage)]
        names = {each.tool_call_id: each.tool_call_id if each.tool_call_id in {"a", "b"} else "?" for each in results}
        assert [f"{names[each.tool_call_id]} {marks.get(each.text, each.text)}" for each in results] == told
        assert all((each.status == "error") == (each.text in marks) for each in results)
        assert faults(convert_to_openai_messages([*OPEN, *messages])) == []
