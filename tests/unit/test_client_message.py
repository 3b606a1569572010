from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph.client import ClientMessage
from graph.core.client_message import to_messages
from graph.event import ClientCall
from prompt.system.framing import CURRENT_PART

WORDS = st.text(st.characters(), max_size=40)
CALLS = st.builds(ClientCall, id=WORDS, name=WORDS, arguments=WORDS)
MESSAGES = st.one_of(
    st.builds(ClientMessage, st.just("user"), WORDS, images=st.lists(WORDS, max_size=3).map(tuple)),
    st.builds(ClientMessage, st.just("assistant"), WORDS, calls=st.lists(CALLS, max_size=3).map(tuple)),
    st.builds(ClientMessage, st.just("tool"), WORDS, call_id=WORDS),
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
    deep = '{"f": ' * 900 + "1" + "}" * 900
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
