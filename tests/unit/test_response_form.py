"""How a request for a response becomes one for a completion, and how the answer is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseIncludable, ResponseInputItem, ResponseStreamEvent
from openai.types.shared import ReasoningEffort
from pydantic import TypeAdapter
from starlette.datastructures import Headers

from api.body import parse_object
from api.completion_stream import CompletionHead, stream_lines, whole_body
from api.event_stream import EventQueue
from api.middleware import ApiClient
from api.problem import ProblemError
from api.request import ParsedRequest
from api.response_stream import ResponseWriter
from api.responses import parse_response_request
from graph.value.client import ClientMessage, ClientUsage, CompletionEnd, FinishReason
from graph.value.event import (
    ActionRequired,
    AnswerRestarted,
    ClientCall,
    Event,
    ThoughtDelta,
    TokenDelta,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
)

CLIENT = ApiClient("editor", "kim", None)
HEAD = CompletionHead("chatcmpl-s_1-x_3_1_1", 1_800_000_000, "turnfold/small")
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
PICTURE = "data:image/png;base64,iVBORw0KGgo="
LOOK = {"type": "function", "name": "look", "description": None, "parameters": {"type": "object"}, "strict": True}
USAGE = ClientUsage(10, 2, 3)


def parsed(sent: Any, /, **fields: Any) -> ParsedRequest:  # noqa: ANN401  # any JSON
    return parse_response_request(parse_object(json.dumps({"input": sent, **fields}).encode()), Headers({}), CLIENT)


def said(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


def call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "look", "arguments": arguments}


def output(call_id: str, said: Any) -> dict[str, Any]:  # noqa: ANN401  # text or parts
    return {"type": "function_call_output", "call_id": call_id, "output": said}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]}
BOTH = (ClientCall("c1", "look", "{}"), ClientCall("c2", "look", "{}"))
USER, ASSISTANT = ClientMessage("user", "Hi"), ClientMessage("assistant", "Hello!")


# What nobody said in a chat that began at OpenAI, those kinds of its library, and what may come of the sort.
OF_OPENAI: Final = (
    *(
        kind
        for each in get_args(get_args(ResponseInputItem)[0])
        for kind in get_args(each.model_fields["type"].annotation)
        if isinstance(kind, str) and kind not in {"message", "function_call", "function_call_output", "item_reference"}
    ),
    "mcp_news",
    "dream_call",
    "dream_call_output",
)


@pytest.mark.parametrize("kind", OF_OPENAI)
def test_what_openais_tools_did_is_left_out_of_a_history(kind: str) -> None:
    item = {"type": kind, "id": "x_1", "call_id": "call-x", "output": "canary", "content": [], "role": "developer"}
    sent = [item, said("user", "Hi"), item, said("assistant", "Hello!"), item, call("c1"), item, output("c1", "1")]
    request = parsed([*sent, item, said("user", "And now?"), item]).request
    assert request.messages == (
        USER,
        ClientMessage("assistant", "Hello!", calls=BOTH[:1]),
        ClientMessage("tool", "1", call_id="c1"),
        ClientMessage("user", "And now?"),
    )


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        ("안녕", [ClientMessage("user", "안녕")]),
        ([{"role": "user", "content": "Hi"}], [USER]),
        ([said("user", "Hi"), said("assistant", "Hello!"), said("user", "a", "b")], [USER, ASSISTANT, "a\nb"]),
        ([said("system", "Rules."), said("developer", "More."), said("user", "Hi")], [USER]),
        (
            [{"role": "user", "content": [{"type": "input_image", "image_url": PICTURE, "detail": "auto"}]}],
            [ClientMessage("user", "", images=(PICTURE,))],
        ),
        # What the assistant said and called in a row is one message, as it was one answer.
        (
            [said("user", "Hi"), THOUGHT, said("assistant", "Wait."), call("c1"), call("c2"), output("c1", "1")],
            [
                USER,
                ClientMessage("assistant", "Wait.", calls=BOTH),
                ClientMessage("tool", "1", call_id="c1"),
            ],
        ),
        (
            [said("assistant", "One."), THOUGHT, said("assistant", "\n\nTwo."), said("user", "Hi")],
            [ClientMessage("assistant", "One.\n\nTwo."), USER],
        ),
        (
            [said("assistant", "One."), said("assistant", "Two."), "Hi"],
            [ClientMessage("assistant", "One.\n\nTwo."), USER],
        ),
        ([said("assistant", "On"), said("assistant", " "), "Hi"], [ClientMessage("assistant", "On "), USER]),
        ([output("c1", [{"type": "input_text", "text": "ok"}])], [ClientMessage("tool", "ok", call_id="c1")]),
        # Pictures of tools stay with their results.
        (
            [
                call("c1"),
                call("c2"),
                output("c1", [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": PICTURE}]),
                output("c2", "b"),
            ],
            [
                ClientMessage("assistant", "", calls=BOTH),
                ClientMessage("tool", "a", images=(PICTURE,), call_id="c1"),
                ClientMessage("tool", "b", call_id="c2"),
            ],
        ),
    ],
)
def test_items_become_the_messages_of_a_chat(items: Any, messages: list[ClientMessage | str]) -> None:  # noqa: ANN401  # any JSON
    sent = (
        [said("user", each) if isinstance(each, str) else each for each in items] if isinstance(items, list) else items
    )
    expected = [ClientMessage("user", each) if isinstance(each, str) else each for each in messages]
    assert list(parsed(sent).request.messages) == expected


def test_options_become_those_of_a_completion() -> None:
    asked = parsed(
        [said("developer", "Be kind."), said("user", "Hi")],
        model="turnfold/small",
        instructions="Be brief.",
        tools=[LOOK],
        tool_choice={"type": "function", "name": "look"},
        text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}},
        reasoning={"effort": "low", "summary": "auto"},
        max_output_tokens=50,
        temperature=0.5,
        stream=True,
        prompt_cache_key="chat-1",
        user="ann",
        include=["reasoning.encrypted_content"],
        store=False,
        truncation="auto",
    )
    options, request = asked.request.options, asked.request
    assert (options.system, request.model, request.user, asked.is_streamed) == (
        "Be brief.\n\nBe kind.",
        "small",
        "ann",
        True,
    )
    assert request.hint is not None
    assert options.tools == (
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}, "strict": True}},
    )
    assert options.tool_choice == {"type": "function", "function": {"name": "look"}}
    schema = {"name": "n", "schema": {"type": "object"}, "strict": True}
    assert options.sampling == {
        "temperature": 0.5,
        "max_completion_tokens": 50,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    assert (asked.echo["store"], asked.echo["tools"][0]["name"]) == (False, "look")
    plain = parsed("Hi", text={"format": {"type": "text"}, "verbosity": "low"}, tools=None, instructions=None)
    assert (plain.request.options.sampling, plain.request.options.tools, plain.request.options.system) == ({}, (), "")


def test_of_allowed_tools_those_go_out_and_the_mode_is_the_choice() -> None:
    group = {"type": "namespace", "name": "files", "description": "", "tools": [LOOK]}
    named = [{"type": "function", "name": "look", "namespace": "files"}, {"type": "function", "name": "find"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": named}
    asked = parsed("Hi", tools=[LOOK, group, {**LOOK, "name": "find"}], tool_choice=choice)
    options = asked.request.options
    assert [tool["function"]["name"] for tool in options.tools] == ["files__look", "find"]
    assert options.tool_choice == "required"
    # The response repeats what was asked.
    assert (len(asked.echo["tools"]), asked.echo["tool_choice"]) == (3, choice)
    one = parsed("Hi", tools=[LOOK, group], tool_choice=named[0]).request.options
    assert (one.tool_choice, len(one.tools)) == ({"type": "function", "function": {"name": "files__look"}}, 2)


def test_a_previous_response_is_named_by_its_id_or_by_the_newest_item_that_is_sent_as_a_reference() -> None:
    named = parsed("And now?", previous_response_id="resp_s_1-x_3_1_1")
    referred = parsed(
        [
            said("system", "Rules."),
            said("user", "Hi"),
            {"type": "item_reference", "id": "msg_s_1-x_2_1_1_0"},
            said("user", "What?"),
            {"id": "msg_s_1-x_3_1_1_2"},
            said("user", "And now?"),
        ]
    )
    for asked, system in ((named, None), (referred, "Rules.")):
        assert asked.request.previous == "chatcmpl-s_1-x_3_1_1"
        assert asked.request.messages == (ClientMessage("user", "And now?"),)
        assert asked.request.options.system == system
    assert parsed("Hi").request.previous == ""
    # What follows of that response in full is known, too.
    thought = {"type": "item_reference", "id": "rs_s_1-x_3_1_1_0"}
    rest = [thought, said("assistant", "Wait."), call("c1"), output("c1", "ok"), said("user", "And now?")]
    assert parsed([said("user", "Hi"), *rest]).request.messages == (
        ClientMessage("tool", "ok", call_id="c1"),
        ClientMessage("user", "And now?"),
    )


def refusal(sent: Any, /, **fields: Any) -> tuple[str, str | None]:  # noqa: ANN401  # any JSON
    with pytest.raises(ProblemError) as refused:
        parsed(sent, **fields)
    assert refused.value.problem.status == 400
    assert "canary" not in refused.value.problem.message
    return refused.value.problem.code, refused.value.problem.param


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"sent": []}, "empty_messages", "input"),
        ({"sent": None}, "empty_messages", "input"),
        ({"sent": None, "instructions": " "}, "empty_messages", "input"),
        # What is left out is nothing to answer, and instructions beside it are no question.
        ({"sent": [THOUGHT]}, "empty_messages", "input"),
        ({"sent": [{"type": "mcp_approval_response"}], "instructions": "Be brief."}, "empty_messages", "input"),
        ({"sent": [{"type": "compaction"}], "previous_response_id": "resp_1"}, "empty_messages", "input"),
        ({"sent": 5}, "invalid_value", "input"),
        ({"sent": [{"type": "canary"}]}, "unsupported_content", "input.0"),
        ({"sent": [{"type": ["canary"]}]}, "unsupported_content", "input.0"),
        ({"sent": ["canary"]}, "unsupported_content", "input.0"),
        # Parts without a message around them say something.
        ({"sent": [{"type": "input_text", "text": "canary"}]}, "unsupported_content", "input.0"),
        ({"sent": [{"type": "web_search_call\n"}]}, "unsupported_content", "input.0"),
        ({"sent": [{"role": "canary", "content": "Hi"}]}, "invalid_value", "input.0.message.role"),
        (
            {"sent": [{"role": "user", "content": [{"type": "input_file", "file_id": "canary"}]}]},
            "unsupported_content",
            "input.0.message.content.0",
        ),
        (
            {"sent": [{"role": "user", "content": [{"type": "input_image", "file_id": "canary"}]}]},
            "invalid_image_url",
            "input.0.message.content.0",
        ),
        ({"sent": "Hi", "include": ["reasoning.encrypted_content", "canary"]}, "invalid_value", "include.1"),
        ({"sent": "Hi", "include": "reasoning.encrypted_content"}, "invalid_value", "include"),
        ({"sent": "Hi", "truncation": "canary"}, "invalid_value", "truncation"),
        ({"sent": "Hi", "reasoning": {"effort": "canary"}}, "invalid_value", "reasoning.effort"),
        ({"sent": "Hi", "metadata": {str(number): "" for number in range(17)}}, "invalid_value", "metadata"),
        ({"sent": "Hi", "metadata": {"a": 5}}, "invalid_value", "metadata.a"),
        ({"sent": "Hi", "metadata": {"a": "b" * 513}}, "invalid_value", "metadata.a"),
        ({"sent": "Hi", "metadata": {"b" * 65: "a"}}, "invalid_value", f"metadata.{'b' * 65}.[key]"),
        ({"sent": "Hi", "tools": [LOOK, LOOK]}, "duplicate_tool", "tools"),
        ({"sent": "Hi", "tools": [{**LOOK, "type": "canary"}]}, "unsupported_tool", "tools.0"),
        ({"sent": "Hi", "tools": [{**LOOK, "type": ["canary"]}]}, "unsupported_tool", "tools.0"),
        ({"sent": "Hi", "tool_choice": {"type": "web_search"}}, "unsupported_tool", "tool_choice"),
        (
            {"sent": "Hi", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]}},
            "unsupported_tool",
            "tool_choice",
        ),
        (
            {
                "sent": "Hi",
                "tools": [LOOK],
                "tool_choice": {"type": "allowed_tools", "mode": "canary", "tools": [LOOK]},
            },
            "invalid_value",
            "tool_choice",
        ),
        (
            {"sent": "Hi", "model": "turnfold:plain", "previous_response_id": "resp_1"},
            "invalid_value",
            "previous_response_id",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_by_its_field(fields: dict[str, Any], code: str, param: str) -> None:
    assert refusal(fields.pop("sent"), **fields) == (code, param)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("background", True),
        ("conversation", "canary"),
        ("conversation", {"id": "canary"}),
        ("prompt", {"id": "canary"}),
        ("top_logprobs", 5),
    ],
)
def test_what_isnt_supported_is_refused_in_these_words(field: str, value: object) -> None:
    with pytest.raises(ProblemError) as refused:
        parsed("Hi", **{field: value})
    assert refused.value.problem.message == f"{field}: It isn't supported."
    assert (refused.value.problem.code, refused.value.problem.param) == ("invalid_value", field)


def test_what_openai_takes_is_taken() -> None:
    taken: list[dict[str, Any]] = [
        {"include": list(get_args(ResponseIncludable)), "truncation": "disabled", "background": False},
        {"metadata": {"k" * 64: "v" * 512, **{str(number): "" for number in range(15)}}, "top_logprobs": 0},
        *({"reasoning": {"effort": effort}} for effort in get_args(get_args(ReasoningEffort)[0])),
        {"include": None, "truncation": None, "reasoning": None, "metadata": None, "conversation": None},
    ]
    for fields in taken:
        assert parsed("Hi", **fields).request.messages == (ClientMessage("user", "Hi"),)
    # Without an input the instructions are what is asked, as a system message alone is.
    alone = parsed(None, instructions="Hi").request
    assert (alone.messages, alone.options.system) == ((ClientMessage("user", "Hi"),), "")


@pytest.mark.parametrize(
    "name",
    ["web_search", "web_search_preview", "file_search", "code_interpreter", "computer_use_preview", "mcp", "custom"],
)
def test_a_tool_of_openais_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ProblemError, match="unsupported_tool") as refused:
        parsed("Hi", tools=[LOOK, {"type": name, "server_url": "https://canary.test"}])
    assert refused.value.problem.message.startswith(f"tools: {name} is a tool of OpenAI's")
    assert refused.value.problem.param == "tools"


def test_tools_of_a_group_are_offered_by_full_names_and_called_by_their_own() -> None:
    """As Codex sends those of its MCP servers."""
    group = {"type": "namespace", "name": "files", "description": "", "tools": [LOOK]}
    asked = parsed([{**call("c1"), "namespace": "files"}, output("c1", "ok")], tools=[LOOK, group])
    assert [tool["function"]["name"] for tool in asked.request.options.tools] == ["look", "files__look"]
    assert asked.request.messages[0].calls == (ClientCall("c1", "files__look", "{}"),)
    writer = ResponseWriter(HEAD, asked.echo)
    # Fields that a tool has none of.
    odd = ResponseWriter(HEAD, parsed("Hi", tools=[{**LOOK, "tools": 5}]).echo)
    assert b"function_call" in odd.calls(asked.request.messages[0].calls)
    calls = (ClientCall("c1", "files__look", "{}"), ClientCall("c2", "look", "{}"))
    told = writer.whole("", calls, CompletionEnd("tool_calls", None, {}), thoughts="")["output"]
    assert [(item["name"], item.get("namespace")) for item in told] == [("look", "files"), ("look", None)]


CALLS = (ClientCall("c1", "look", '{"a": 1}'), ClientCall("c2", "find", "{}"))
ANY_TEXT = st.text(st.characters(), min_size=1, max_size=5)
TOOL: Sequence[Event] = [
    ToolStarted("t", "recall", "{}"),
    ToolFinished("t", "recall", "x", is_error=False, seconds=0.1),
]
MIDDLE: st.SearchStrategy[Sequence[Event]] = st.one_of(
    ANY_TEXT.map(lambda text: [TokenDelta(text)]),
    ANY_TEXT.map(lambda text: [ThoughtDelta(text)]),
    st.sampled_from([TOOL, [AnswerRestarted()], [TurnStarted("s", 1, 1)]]),
)
LAST = st.sampled_from([TurnFinished(1, "m", ""), TurnFailed(1, "provider", "x"), ActionRequired(1, "m", "", CALLS)])
EVENTS = st.tuples(st.lists(MIDDLE, max_size=6), LAST).map(lambda drawn: [*chain.from_iterable(drawn[0]), drawn[1]])


def streamed(events: Sequence[Event], reason: FinishReason = "stop") -> list[dict[str, Any]]:
    """The events of a stream as OpenAI's library reads them, each of which has all that its type needs."""

    async def told() -> CompletionEnd:
        return CompletionEnd(reason, USAGE, {"turn": 3})

    async def main() -> bytes:
        queue = EventQueue()
        for event in events:
            queue.put(event)
        await asyncio.sleep(0)
        writer = ResponseWriter(HEAD, {"store": True, **ECHO})
        return b"".join(
            [line async for line in stream_lines(queue, writer, told, with_usage=False, keep_alive_seconds=20)]
        )

    blocks = asyncio.run(main()).decode().split("\n\n")
    assert blocks.pop() == ""
    lines = [block.split("\n") for block in blocks]
    read = [json.loads(data.removeprefix("data: ")) for _, data in lines]
    assert [name for name, _ in lines] == [f"event: {event['type']}" for event in read]
    assert [event["sequence_number"] for event in read] == list(range(len(read)))
    for event in read:
        # The codes of errors are ours.
        if error := event.get("response", {}).get("error"):
            event["response"]["error"] = {**error, "code": "server_error"}
        assert EVENT.validate_python(event).type == event["type"]
    return read


ECHO = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def whole(events: Sequence[Event], reason: FinishReason = "stop") -> dict[str, Any]:
    async def told() -> CompletionEnd:
        return CompletionEnd(reason, USAGE, {"turn": 3})

    async def main() -> dict[str, Any]:
        queue = EventQueue()
        for event in events:
            queue.put(event)
        await asyncio.sleep(0)
        return await whole_body(queue, ResponseWriter(HEAD, ECHO), told)

    return asyncio.run(main())


@given(EVENTS)
def test_every_item_of_a_stream_is_begun_told_and_ended_before_the_next(events: list[Event]) -> None:
    read = streamed(events)
    assert [event["type"] for event in read[:2]] == ["response.created", "response.in_progress"]
    last = read[-1]["response"]
    if read[-1]["type"] == "response.failed":
        assert (read[-2]["type"], last["status"]) == ("error", "failed")
        assert last["error"]["message"] == read[-2]["error"]["message"]
        return
    assert (read[-1]["type"], last["status"]) == ("response.completed", "completed")
    begun = [event["item"]["id"] for event in read if event["type"] == "response.output_item.added"]
    ended = [event["item"] for event in read if event["type"] == "response.output_item.done"]
    assert [item["id"] for item in ended] == begun
    assert ended == last["output"]
    is_open = None
    for event in read[2:-1]:
        if event["type"] == "response.output_item.added":
            assert is_open is None
            is_open = event["item"]["id"]
            assert event["output_index"] == begun.index(is_open)
        elif event["type"] == "response.output_item.done":
            is_open = None
        else:
            assert (event["item_id"], event["output_index"]) == (is_open, begun.index(str(is_open)))
    said = "".join(event["delta"] for event in read if event["type"] == "response.output_text.delta")
    answer = Response.model_validate(whole(events))
    assert Response.model_validate(last).output_text == said == answer.output_text
    assert [item.call_id for item in answer.output if item.type == "function_call"] == [
        item["call_id"] for item in ended if item["type"] == "function_call"
    ]


def test_a_stream_tells_thoughts_text_and_calls_in_openais_order() -> None:
    read = streamed([ThoughtDelta("Hm"), TokenDelta("Wait"), TokenDelta("."), ActionRequired(1, "m", "", CALLS[:1])])
    assert [event["type"].removeprefix("response.") for event in read] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    response = read[-1]["response"]
    assert response["output"] == [
        {
            "id": "rs_s_1-x_3_1_1_0",
            "type": "reasoning",
            "status": "completed",
            "summary": [{"type": "summary_text", "text": "Hm"}],
        },
        {
            "id": "msg_s_1-x_3_1_1_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Wait.", "annotations": [], "logprobs": []}],
        },
        {
            "id": "fc_s_1-x_3_1_1_2",
            "type": "function_call",
            "status": "completed",
            "call_id": "c1",
            "name": "look",
            "arguments": '{"a": 1}',
        },
    ]
    assert (response["id"], response["turnfold"]) == ("resp_s_1-x_3_1_1", {"turn": 3})
    assert (response["usage"]["input_tokens"], response["usage"]["total_tokens"]) == (10, 12)
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 3
    # Newer types of the library need the name there, too.
    assert read[-3]["name"] == "look"
    events: list[Event] = [ThoughtDelta("Hm"), TokenDelta("Wait."), ActionRequired(1, "m", "", CALLS[:1])]
    assert whole(events)["output"] == response["output"]


@pytest.mark.parametrize(("reason", "why"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_was_cut_is_incomplete(reason: FinishReason, why: str) -> None:
    events: list[Event] = [TokenDelta("Hal"), TurnFinished(1, "m", "Hal")]
    last = streamed(events, reason)[-1]
    assert (last["type"], last["response"]["incomplete_details"]) == ("response.incomplete", {"reason": why})
    assert last["response"]["output"][0]["status"] == "incomplete"
    assert whole(events, reason)["status"] == "incomplete"
