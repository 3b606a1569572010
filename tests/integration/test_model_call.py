"""Calls of a model over HTTP: what the endpoint sends is read, retried, stopped, or told as an error of its kind."""

from __future__ import annotations

import threading
import time
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from graph.core.turn import RETURNED
from graph.model.chunk import Usage
from graph.model.factory import open_models, request_body
from graph.value.error import (
    CutStreamError,
    DeadlineError,
    ModelError,
    ProviderError,
    RateLimitError,
    ThoughtLimitError,
    TurnStoppedSignal,
)
from tests.fake.model_caller import KEY, Caller, settings_of
from tests.fake.openai_reply import (
    CACHED_USAGE,
    THINKING,
    Body,
    Reply,
    ScriptedCall,
    Thinking,
    chunk,
    close_early,
    failure,
    hang,
    raw,
    refusal,
    reset,
    slowed,
    text,
    thinking,
    tools,
)
from tests.fake.openai_server import FakeOpenAI

LOST = raw(chunk({"content": "lost"}), '{"error": {"message": "overloaded", "code": 503}}')


def test_text_arrives_piece_by_piece_and_the_usage_with_it_if_it_is_reported(call: Caller) -> None:
    nothing = {"prompt_tokens": 0, "completion_tokens": 2, "total_tokens": 2}
    call.server.script(
        text("Hello there, ", "world", usage=CACHED_USAGE), *(text("ok", usage=u) for u in (None, nothing))
    )
    answer = call()
    assert call.heard == ["Hello there, ", "world"]
    assert answer.message.content == "Hello there, world"
    assert answer.usage == Usage(input_tokens=100, output_tokens=20, cached_tokens=64)
    assert answer.message.response_metadata == {"model_name": "scripted-model", "finish_reason": "stop"}
    assert answer.message.usage_metadata is not None
    assert str(answer.message.id).startswith("ai-")
    body = call.server.bodies()[0]
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert "temperature" not in body
    for _ in ("none", "a report of 0, which no input has"):
        answer = call()
        assert (answer.usage, answer.message.usage_metadata) == (None, None)


@pytest.mark.parametrize(
    ("reported", "counted"),
    [((5, -1, -9), (5, 0, 0)), ((-5, 3, 0), None), ((10**12, 10**30, 10**12), (2**24,) * 3)],
)
def test_nonsense_that_a_server_reports_counts_within_what_is_possible(
    call: Caller, reported: tuple[int, ...], counted: tuple[int, int, int] | None
) -> None:
    asked, said, cached = reported
    usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    call.server.script(text("ok", usage={**usage, "prompt_tokens_details": {"cached_tokens": cached}}))
    assert call().usage == (counted and Usage(*counted))


def test_running_total_of_usage_counts_once_and_lone_surrogates_are_replaced(call: Caller) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    call.server.script(
        raw(
            chunk({"content": "a"}, usage={**usage, "completion_tokens": 1}),
            '{"choices":[{"index":0,"delta":{"content":"\\ud800b"}}]}',
            chunk({"content": "c"}, usage=usage),
            chunk({}, finish_reason="stop", usage=usage),
        )
    )
    answer = call()
    assert (answer.message.content, answer.usage) == ("a\ufffdbc", Usage(10, 2, 0))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (failure(401), "authentication"),
        (failure(403), "access_denied"),
        (failure(404), "model_missing"),
        (failure(429), "rate_limit"),
        (failure(429, code="insufficient_quota"), "quota"),
        (failure(402), "quota"),
        (failure(400, "maximum context length is 8192", code="context_length_exceeded"), "context_length"),
        (failure(400, "This model's maximum context length is 4096 tokens. However, you requested"), "context_length"),
        (failure(400, "the request exceeds the available context size (4096 tokens)"), "context_length"),
        (failure(400, "Trying to keep the first 9000 tokens when context the overflows"), "context_length"),
        (failure(500, "the input length exceeds the context length"), "context_length"),
        (failure(400, "filtered", code="content_filter"), "refused"),
        (failure(400), "rejected"),
        (failure(422), "rejected"),
        (failure(413), "context_length"),
        (failure(405), "bad_response"),
        (raw('{"error": {"message": "Invalid schema", "type": "invalid_request_error"}}'), "rejected"),
        (failure(500), "provider"),
        (failure(503), "provider"),
        (reset(), "unreachable"),
        (reset("half of"), "cut_stream"),
        (close_early(), "cut_stream"),
        (close_early("half of"), "cut_stream"),
        (text("half of", finish_reason=None), "cut_stream"),
        (raw(), "cut_stream"),
        (tools(ScriptedCall("f", "{}", "c"), finish_reason="length"), "cut_stream"),
        (raw("{not json"), "bad_response"),
        (raw("[]"), "bad_response"),
        (raw("null"), "bad_response"),
        (raw('{"choices": "x"}'), "bad_response"),
        (raw('{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":null}]}}]}'), "bad_response"),
        (raw(chunk(None)), "bad_response"),
        (text(""), "empty_answer"),
        (text(" \n"), "empty_answer"),
        (refusal("I can't help with that"), "refused"),
        (text("", finish_reason="content_filter"), "refused"),
        (raw('{"error": {"message": "overloaded", "code": 502}}'), "provider"),
        (raw('{"error": {"message": "Rate limit reached", "type": "tokens"}}'), "rate_limit"),
        (hang(is_silent=True), "deadline"),
        (hang("half of"), "deadline"),
        (slowed(text("a b c d e f g h"), 0.2), "deadline"),
    ],
)
def test_each_failure_has_its_error(call: Caller, reply: Reply, code: str) -> None:
    # A deadline may pass before the request is out.
    call.server.script(reply, may_stay=code == "deadline")
    with pytest.raises(ModelError) as raised:
        call(deadline_seconds=0.5 if code == "deadline" else 10)
    assert raised.value.code == code


def test_no_error_shows_a_key(call: Caller) -> None:
    call.server.script(failure(401, f"Incorrect API key provided: {KEY}. Also sk-another_secret and Bearer abcdef."))
    with pytest.raises(ModelError) as raised:
        call()
    for secret in (KEY, "another_secret", "abcdef"):
        assert secret not in str(raised.value)
    assert "Incorrect API key provided" in raised.value.detail
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "reply", [hang(is_silent=True), hang(), hang("half of"), failure(500, headers={"Retry-After": "30"})]
)
def test_stop_ends_the_call_at_once_and_closes_the_connection(call: Caller, reply: Reply) -> None:
    call.server.script(reply)
    pressed: list[float] = []

    def press() -> None:
        call.server.wait_until(lambda server: len(server.exchanges) == 1)
        time.sleep(0.2)
        pressed.append(time.monotonic())
        call.stop.set()

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.raises(TurnStoppedSignal):
        call(attempts=5, deadline_seconds=60)
    ended = time.monotonic()
    presser.join()
    assert ended - pressed[0] < 20  # the deadline is 60, and the reply that asks to wait asks for 30
    call.server.wait_until(lambda server: server.open_count == 0)
    assert call.server.exchanges[0].is_closed_early is (reply.status == 200)
    # Nor is anything sent once it is stopped.
    with pytest.raises(TurnStoppedSignal):
        call()
    assert len(call.server.exchanges) == 1


THOUGHT, ANSWER = "The decoy port is 7777.\nSo I say 9090.", "The port is 9090."


@pytest.mark.parametrize("form", THINKING)
def test_thoughts_of_any_form_come_beside_the_answer(call: Caller, form: Thinking) -> None:
    for pieces in (lambda said: [said], list):
        call.heard.clear()
        call.thoughts.clear()
        call.server.script(thinking(form, THOUGHT, ANSWER, pieces=pieces))
        answer = call()
        assert answer.message.content == "".join(call.heard) == ANSWER
        assert "".join(call.thoughts).strip() == THOUGHT
        assert answer.message.additional_kwargs == {}


@pytest.mark.parametrize("form", THINKING)
def test_thoughts_alone_are_asked_for_once(call: Caller, form: Thinking) -> None:
    call()  # or an end tag that never comes couldn't be missed
    if form == "end_tag":
        call.server.script(thinking(form, THOUGHT, ANSWER))
        call()
    call.server.script(thinking(form, THOUGHT, "", finish_reason="length"))
    with pytest.raises(ThoughtLimitError) as failure:
        call(attempts=3)
    assert failure.value.code == "thought_limit"
    call.server.script(thinking("tags", THOUGHT, ""))
    with pytest.raises(ThoughtLimitError):
        call(attempts=2)


def test_a_model_that_sends_end_tags_alone_is_known_from_its_second_answer_on(call: Caller) -> None:
    call.server.script(*[thinking("end_tag", THOUGHT, ANSWER)] * 2, text("I ", "don't think."), text("Nor now."))
    call()
    assert call.revoked == 1
    call()
    assert (call.revoked, "".join(call.heard)) == (1, ANSWER * 2)
    call.heard.clear()
    call()
    assert (call.revoked, call.heard) == (2, ["I don't think."])
    call()
    assert (call.revoked, call.heard[1:]) == (2, ["Nor", " now."])


def test_details_of_thoughts_go_back_whole_with_the_calls_whatever_pieces_they_came_in(call: Caller) -> None:
    """As OpenRouter wants them: a block's text comes in pieces of one index, its signature last and without text."""

    def piece(text: str | None = None, **more: object) -> dict[str, object]:
        said = {} if text is None else {"text": text}
        return {"type": "reasoning.text", **said, "format": "anthropic-claude-v1", "index": 0, **more}

    first, second = ({"type": "reasoning.encrypted", "data": data, "id": data, "index": 0} for data in ("YQ==", "Yg=="))
    summary = {"type": "reasoning.summary", "summary": "**Adding", "index": 1}
    unnumbered = {"type": "reasoning.text", "text": None}
    deltas: list[Body] = [
        {
            "role": "assistant",
            "content": "",
            "reasoning": "17 times ",
            "reasoning_details": [piece("17 times ", id=None)],
        },
        {"reasoning": "23 é.", "reasoning_details": [piece("23 é.", signature=None), summary]},
        {"reasoning_details": [piece(signature="c2ln+/="), {**summary, "summary": "** it up"}]},
        {"reasoning_details": [first, unnumbered]},
        {"reasoning_details": [second, unnumbered, "odd"]},
    ]
    calls = [{"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    call.server.script(
        raw(*map(chunk, deltas), chunk({"tool_calls": calls}), chunk({}, finish_reason="tool_calls")),
        raw(*map(chunk, deltas), chunk({"content": "391"}), chunk({}, finish_reason="stop")),
    )
    message = call().message
    told = [call.input[1], message, ToolMessage("391", tool_call_id="c1")]
    chat = call.models.chat("scripted-model")
    sent = request_body(chat, "", told, (), tool_choice=None)["messages"][1]
    assert sent["reasoning_details"] == [
        piece("17 times 23 é.", id=None, signature="c2ln+/="),
        {**summary, "summary": "**Adding** it up"},
        first,
        unnumbered,
        second,
        unnumbered,
    ]
    assert "reasoning_content" not in sent
    later = request_body(chat, "", [*told, AIMessage("7"), HumanMessage("And now?")], (), tool_choice=None)
    assert later["messages"][1] == sent
    assert call().message.additional_kwargs == {}


def test_thoughts_of_a_failed_attempt_are_void_and_another_attempt_is_made(call: Caller) -> None:
    broken = close_early()
    thought = chunk({"reasoning": THOUGHT})
    call.server.script(Reply(events=(*broken.events, thought), ending="close"), thinking("reasoning", "Short.", ANSWER))
    call(attempts=2, may_restart=False)
    assert (call.restarts, "".join(call.heard), "".join(call.thoughts)) == (1, ANSWER, "Short.")


def test_what_a_provider_wants_back_with_its_calls_is_kept_with_them(call: Caller) -> None:
    signature = {"google": {"thought_signature": "c2ln+/="}}
    delta = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    call.server.script(
        raw(
            chunk({"role": "assistant", "reasoning_content": "First \u00e9 "}),
            chunk({"reasoning_content": "then."}),
            chunk({"tool_calls": [{**delta, "extra_content": signature}, {**delta, "index": 1, "id": "c2"}]}),
            chunk({}, finish_reason="tool_calls"),
        )
    )
    message = call().message
    assert message.additional_kwargs == {
        RETURNED: {"reasoning_content": "First \u00e9 then.", "extra_content": [signature, None]}
    }
    told = [call.input[1], message, ToolMessage("3", tool_call_id="c1"), ToolMessage("4", tool_call_id="c2")]
    chat = call.models.chat("scripted-model")
    sent = request_body(chat, "", told, (), tool_choice=None)["messages"][1]
    assert sent["reasoning_content"] == "First \u00e9 then."
    assert [each.get("extra_content") for each in sent["tool_calls"]] == [signature, None]
    later = request_body(chat, "", [*told, AIMessage("7"), HumanMessage("And now?")], (), tool_choice=None)
    assert later["messages"][1] == sent


def test_passed_deadline_and_an_error_of_the_listener_close_the_connection_too(call: Caller) -> None:
    call.server.script(hang("half of"), hang("half of"))
    with pytest.raises(DeadlineError):
        call(deadline_seconds=2, attempts=3)

    def fail(_: str) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        call.models.caller.call(
            call.models.chat("m"), call.input, stop=call.stop, deadline_seconds=10, attempts=3, on_text=fail
        )
    call.server.wait_until(lambda server: [each.is_closed_early for each in server.exchanges] == [True, True])


def test_transient_failures_are_tried_again_and_lasting_ones_are_not(call: Caller) -> None:
    for passing in (failure(500), failure(429), reset(), text(""), close_early()):
        call.server.script(passing, text("fine"))
        assert call(attempts=2).message.content == "fine"
    assert len(call.server.exchanges) == 10
    for lasting in (failure(401), failure(400), raw("{not json"), refusal("no"), close_early("half of")):
        call.server.script(lasting)
        with pytest.raises(ModelError):
            call(attempts=5)
    assert len(call.server.exchanges) == 15


def test_attempts_are_bounded_and_wait_as_long_as_they_are_asked_to(call: Caller) -> None:
    call.server.script(*[failure(500, headers={"Retry-After": "0"})] * 3)
    with pytest.raises(ProviderError):
        call(attempts=3)
    assert len(call.server.exchanges) == 3
    call.server.script(failure(429, headers={"Retry-After": "1"}), text("fine"))
    assert call(attempts=2).message.content == "fine"
    first, second = call.server.exchanges[3:]
    assert second.started_at - first.started_at >= 1
    for asked in ("120", "Fri, 01 Jan 2100 00:00:00 GMT"):
        call.server.script(failure(429, headers={"Retry-After": asked}))
        with pytest.raises(RateLimitError) as raised:
            call(attempts=3, deadline_seconds=60)
        assert raised.value.retry_after_seconds is not None
        assert raised.value.retry_after_seconds >= 100
    assert len(call.server.exchanges) == 7


def test_text_of_a_failed_attempt_is_declared_void_unless_it_must_not_restart(call: Caller) -> None:
    call.server.script(LOST, text("kept"))
    assert call(attempts=2).message.content == "kept"
    assert (call.restarts, call.heard) == (1, ["kept"])
    call.heard.clear()
    call.server.script(failure(503), LOST)
    with pytest.raises(ProviderError):
        call(attempts=5, may_restart=False)
    assert (call.restarts, call.heard) == (1, ["lost"])


@tool
def lookup(word: str, count: int = 1) -> str:
    """Looks a word up."""
    return word * count


ARGUMENTS = '{"word": "한글 \\"q\\"", "count": 12}'


def test_tool_calls_come_with_their_arguments_and_unique_ids(call: Caller) -> None:
    call.server.script(tools(ScriptedCall("lookup", ARGUMENTS, "c1"), ScriptedCall("lookup", "", "c2")))
    answer = call(model=call.models.chat("m").bind_tools([lookup]))
    assert [(c["name"], c["args"], c["id"]) for c in answer.message.tool_calls] == [
        ("lookup", {"word": '한글 "q"', "count": 12}, "c1"),
        ("lookup", {}, "c2"),
    ]
    assert call.server.bodies()[0]["tools"][0]["function"]["name"] == "lookup"
    call.server.script(tools(*[ScriptedCall("f", "{}", name) for name in ("same", "same", None, None, "")]))
    ids = [c["id"] for c in call().message.tool_calls]
    assert ids[0] == "same"
    assert all(ids)
    assert len(set(ids)) == 5


def test_arguments_cut_anywhere_never_become_a_call(call: Caller) -> None:
    for end in range(1, len(ARGUMENTS), 3):
        cut = ScriptedCall("lookup", ARGUMENTS[:end], "c1")
        call.server.script(tools(cut))
        answer = call()
        assert answer.message.tool_calls == []
        invalid = [(c["name"], c["args"], c["id"]) for c in answer.message.invalid_tool_calls]
        assert invalid == [("lookup", ARGUMENTS[:end], "c1")]
    call.server.script(tools(ScriptedCall("lookup", ARGUMENTS[:-1], "c1"), finish_reason=None))
    with pytest.raises(CutStreamError):
        call()


def test_arguments_that_are_no_json_object_are_kept_but_never_run(call: Caller) -> None:
    for arguments in ("[1]", '"text"', "NaN", '{"a": NaN}', '{"a": 1}}', "{'a': 1}", "[" * 5000, "null"):
        call.server.script(tools(ScriptedCall("lookup", arguments, "c1"), fragment_chars=1000))
        answer = call()
        assert answer.message.tool_calls == []
        assert answer.message.invalid_tool_calls[0]["args"] == arguments


def test_fragments_of_calls_are_put_together_as_servers_send_them(call: Caller) -> None:
    def fragment(call_id: str, arguments: str) -> str:
        function = {"name": "f", "arguments": arguments}
        return chunk({"tool_calls": [{"index": 0, "id": call_id, "function": function}]})

    end = chunk({}, finish_reason="tool_calls")
    call.server.script(
        raw(*[fragment("", f'{{"n": {number}}}') for number in range(3)], end),
        raw(*[fragment("c1", part) for part in ('{"a"', ": 1", "}", "")], end),
    )
    assert [c["args"] for c in call().message.tool_calls] == [{"n": 0}, {"n": 1}, {"n": 2}]  # all have index 0
    assert [(c["name"], c["args"]) for c in call().message.tool_calls] == [("f", {"a": 1})]


def test_closing_the_models_ends_a_call_that_hangs(server: FakeOpenAI) -> None:
    server.script(hang(is_silent=True))
    ended: list[BaseException] = []

    def run(caller: Caller) -> None:
        try:
            caller(deadline_seconds=60)
        except TurnStoppedSignal as error:
            ended.append(error)

    with open_models(settings_of(server)) as models:
        thread = threading.Thread(target=run, args=(Caller(server, models),))
        thread.start()
        server.wait_until(lambda s: len(s.exchanges) == 1)
    thread.join(5)
    assert len(ended) == 1
    server.wait_until(lambda s: s.open_count == 0)


def test_calls_from_several_threads_do_not_mix(call: Caller) -> None:
    call.server.respond_with(lambda body: text(str(body["messages"][-1]["content"])))
    answers: dict[int, object] = {}

    def run(number: int) -> None:
        answer = call.models.caller.call(
            call.models.chat("m"), [HumanMessage(f"n {number}")], stop=call.stop, deadline_seconds=30, attempts=1
        )
        answers[number] = answer.message.content

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"n {number}" for number in range(8)}


class State(TypedDict):
    answer: str


def test_tokens_of_a_call_do_not_leak_into_the_graph_that_makes_it(call: Caller) -> None:
    call.server.script(text("secret thoughts"))

    def think(state: State) -> State:
        return {"answer": state["answer"] + str(call().message.content)}

    builder = StateGraph(State)
    builder.add_node("think", think)
    builder.add_edge(START, "think")
    builder.add_edge("think", END)
    seen: list[Any] = list(builder.compile().stream({"answer": ""}, stream_mode=["messages", "updates"]))
    assert seen == [("updates", {"think": {"answer": "secret thoughts"}})]
