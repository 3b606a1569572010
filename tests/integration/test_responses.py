"""The Responses API as OpenAI's own client uses it, over the real service and a scripted endpoint."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Final

import httpx2
import openai
import pytest

from graph.value.event import TokenDelta, TurnFailed, TurnStarted
from prompt.system.framing import NOT_RUN
from tests.fake.body import content_of, faults, shape, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import ScriptedCall, failure, text, thinking, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import counts
from tests.fake.scripted_completions import ScriptedCompletions, text_steps
from tests.fake.served_api import OTHER_TOKEN, OWNER, TOKEN, ServedApi, serve

LOOK: Final[Any] = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
FIRST: Final = ScriptedCall("look", '{"path":"a.py",  "depth":1}', "call-1")
SECOND: Final = ScriptedCall("look", '{"path":"나.py"}', "call-2")


@pytest.fixture
def served(chat: Chat) -> Iterator[ServedApi]:
    with serve(chat.service) as http_api:
        yield http_api


@pytest.fixture
def client(served: ServedApi) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.url, api_key=TOKEN, max_retries=0) as client:
        yield client


@pytest.fixture
def sent(client: openai.OpenAI) -> dict[str, Any]:
    """What each request says: its end user is no other test's."""
    assert client
    return {"model": "turnfold", "user": uuid.uuid4().hex}


def named(response: Any) -> tuple[str, int]:  # noqa: ANN401  # a response of the library
    figures = response.model_extra["turnfold"]
    return figures["session"], figures["turn"]


def output(call_id: str, said: str) -> Any:  # noqa: ANN401  # an item of the library
    return {"type": "function_call_output", "call_id": call_id, "output": said}


def wait_for_folds(chat: Chat, session_id: str) -> None:
    Chat(chat.service.for_owner(OWNER), session_id).wait_for_folds()


def test_a_chat_goes_on_by_the_id_of_its_last_response_and_is_folded(
    chat: Chat, server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    previous, session_id = None, ""
    for number in range(1, 8):
        response = client.responses.create(
            input=question(number), previous_response_id=previous, instructions="Be brief.", **sent
        )
        assert (response.status, response.previous_response_id) == ("completed", previous)
        assert response.usage is not None
        assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
        assert question(number)[:20] in response.output_text
        session_id = session_id or named(response)[0]
        assert named(response) == (session_id, number)
        previous = response.id
        wait_for_folds(chat, session_id)
    body = server.bodies("chat")[-1]
    assert shape(body) == [(1, 3), (4, 6), 7]
    assert "Be brief." in system_prompt(body)
    # Rules that aren't sent again stay, and the page's turns don't hide the program's.
    Chat(chat.service.for_owner(OWNER), session_id).say(question(8))
    assert named(client.responses.create(input=question(9), previous_response_id=previous, **sent)) == (session_id, 9)
    assert shape(server.bodies("chat")[-1])[-2:] == [8, 9]
    assert "Be brief." in system_prompt(server.bodies("chat")[-1])


def test_a_chat_that_is_sent_whole_is_one_session(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    """As Codex, the Agents SDK and pydantic-ai do: all that a response has put out goes into the next input."""
    items: list[Any] = []
    for number in range(1, 5):
        server.script(thinking("reasoning_content", "Hm, hm.", f"Answer {number}."))
        items.append({"role": "user", "content": question(number)})
        raw = client.responses.with_raw_response.create(input=items, store=False, **sent)
        response = raw.parse()
        assert [item.type for item in response.output] == ["reasoning", "message"]
        assert response.output[0].summary[0].text == "Hm, hm."
        assert (response.output_text, response.store) == (f"Answer {number}.", False)
        assert raw.headers["x-turnfold-matched"] == ("new" if number == 1 else "history")
        items += [item.model_dump(exclude_none=True) for item in response.output]
    assert named(response)[1] == 4
    assert faults(server.bodies("chat")[-1]["messages"]) == []


@pytest.mark.parametrize("way", ["streamed", "whole"])
def test_text_round_a_tool_of_the_servers_comes_back_as_one_answer(
    served: ServedApi, server: FakeOpenAI, sent: dict[str, Any], way: str
) -> None:
    server.script(
        tools(ScriptedCall("get_current_time", "{}", "call-clock"), answer="Let me see."),
        thinking("reasoning_content", "Hm, hm.", "It is noon."),
    )
    items: list[Any] = [{"role": "user", "content": question(1)}]
    with openai.OpenAI(base_url=served.url, api_key=OTHER_TOKEN, max_retries=0) as client:
        if way == "streamed":
            response = list(client.responses.create(input=items, stream=True, **sent))[-1].response
        else:
            response = client.responses.create(input=items, **sent)
        kinds = ["message", "reasoning", "message"] if way == "streamed" else ["reasoning", "message"]
        assert [item.type for item in response.output] == kinds
        assert response.output_text == "Let me see.\n\nIt is noon."
        items += [*(item.model_dump() for item in response.output), {"role": "user", "content": question(2)}]
        raw = client.responses.with_raw_response.create(input=items, **sent)
    assert (raw.headers["x-turnfold-matched"], raw.headers["x-turnfold-turn"]) == ("history", "2")


def test_a_message_that_is_sent_as_a_reference_stands_for_the_chat_before_it(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    """As the AI SDK sends what OpenAI stores."""
    items: list[Any] = [{"role": "developer", "content": "Be kind."}]
    for number in (1, 2, 3):
        items.append({"role": "user", "content": question(number)})
        response = client.responses.create(input=items, **sent)
        items += [{"type": "item_reference", "id": item.id} for item in response.output]
        assert named(response)[1] == number
    # One that isn't is found by its words behind the reference.
    items[-1] = response.output[0].model_dump()
    items.append({"role": "user", "content": question(4)})
    assert named(client.responses.create(input=items, **sent)) == (named(response)[0], 4)
    assert "Be kind." in system_prompt(server.bodies("chat")[-1])


def typed(events: Iterable[Any]) -> list[str]:
    found: list[str] = []
    for event in events:
        if not found or found[-1] != event.type or not event.type.endswith("delta"):
            found.append(event.type)
    return found


def test_a_stream_has_openais_events(server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]) -> None:
    server.script(thinking("reasoning_content", "Hm, hm.", "One two three."), tools(FIRST, answer="Wait."))
    events = list(client.responses.create(input=question(1), stream=True, **sent))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert typed(events) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    last: Any = events[-1]
    assert last.response.output_text == "One two three."
    # The library's own accumulation has what the last event tells.
    with client.responses.stream(
        input=question(2), previous_response_id=last.response.id, tools=[LOOK], **sent
    ) as stream:
        told = [event.type for event in stream]
        final = stream.get_final_response()
    assert told[-3:] == ["response.function_call_arguments.done", "response.output_item.done", "response.completed"]
    assert [item.type for item in final.output] == ["message", "function_call"]
    assert final.output_text == "Wait."


@pytest.mark.parametrize("way", ["previous", "whole", "reference"])
def test_results_of_tools_go_on_with_their_turn(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any], way: str
) -> None:
    server.script(
        text("Hello."),
        tools(FIRST, SECOND, answer="보겠습니다."),
        tools(ScriptedCall("look", "{}", "call-3")),
        text("끝."),
    )
    items: list[Any] = [{"role": "user", "content": question(1)}]
    response: Any = client.responses.create(input=items, tools=[LOOK], **sent)
    session_id, _ = named(response)
    rounds = (
        [{"role": "user", "content": question(2)}],
        [output("call-2", "둘"), output("call-1", "하나")],
        [output("call-3", "셋")],
    )
    for new in rounds:
        if way == "reference":
            items += [
                {"type": "item_reference", "id": item.id} if item.type == "message" else item.model_dump()
                for item in response.output
            ]
        else:
            items += [item.model_dump() for item in response.output]
        items += new
        asked = {"input": new, "previous_response_id": response.id} if way == "previous" else {"input": items}
        response = client.responses.create(tools=[LOOK], **asked, **sent)
        assert named(response) == (session_id, 2)
    assert response.output_text == "끝."
    messages = server.bodies("chat")[-1]["messages"]
    assert faults(messages) == []
    results = [(message["tool_call_id"], content_of(message)) for message in messages if message["role"] == "tool"]
    assert results == [("call-1", "하나"), ("call-2", "둘"), ("call-3", "셋")]


def test_items_that_leave_out_a_call_are_taken_and_results_alone_are_not(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    server.script(tools(FIRST, SECOND, answer="보겠습니다."))
    asked: Any = {"role": "user", "content": question(1)}
    first = client.responses.create(input=[asked], tools=[LOOK], **sent)
    left_out, kept_id = (item.call_id for item in first.output if item.type == "function_call")
    one = output(kept_id, "둘")
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(input=[one], tools=[LOOK], previous_response_id=first.id, **sent)
    assert (refused.value.code, refused.value.param) == ("unanswered_call", "input")
    items: Any = [item.model_dump() for item in first.output]
    kept = [item for item in items if item.get("call_id") != left_out]
    response = client.responses.create(input=[asked, *kept, one], tools=[LOOK], **sent)
    assert named(response) == named(first)
    messages = server.bodies("chat")[-1]["messages"]
    assert faults(messages) == []
    assert {content_of(message) for message in messages if message["role"] == "tool"} == {"둘", NOT_RUN["ko"]}


PICTURE: Final = "data:image/png;base64,iVBORw0KGgo="


def begun_with_a_call(server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Returns what was asked, the response that calls a tool, and the call."""
    sent |= {"tools": [LOOK]}
    server.script(tools(FIRST))
    asked: Any = [{"role": "user", "content": "Take a screenshot."}]
    first = client.responses.create(input=asked, **sent)
    (call,) = first.output
    return asked, first, call


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "by id"])
def test_nothing_stands_between_results_and_the_words_behind_them(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any], *, is_whole: bool
) -> None:
    asked, first, call = begun_with_a_call(server, client, sent)
    picture = {"type": "input_image", "image_url": PICTURE}
    new = [
        output(call.call_id, "done"),
        {"role": "user", "content": [{"type": "input_text", "text": "Here:"}, picture]},
    ]
    before = [*asked, *(item.model_dump() for item in first.output)] if is_whole else []
    named_by: Any = {} if is_whole else {"previous_response_id": first.id}
    second = client.responses.create(input=[*before, *new], **named_by, **sent)
    third = client.responses.create(input="And now?", previous_response_id=second.id, **sent)
    assert [named(each)[0] for each in (second, third)] == [named(first)[0]] * 2
    roles = [message["role"] for message in server.bodies("chat")[-1]["messages"][1:]]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "user"]
    assert "iVBORw0KGgo=" in json.dumps(server.bodies("chat")[-1])


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole", "by id"])
def test_a_picture_of_a_result_is_the_results(
    chat: Chat, server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any], *, is_whole: bool
) -> None:
    asked, first, call = begun_with_a_call(server, client, sent)
    parts = [
        {"type": "input_text", "text": "Here:"},
        {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
    ]
    new: list[Any] = [{**output(call.call_id, ""), "output": parts}]
    before = [*asked, *(item.model_dump() for item in first.output)] if is_whole else []
    named_by: Any = {} if is_whole else {"previous_response_id": first.id}
    second = client.responses.create(input=[*before, *new], **named_by, **sent)
    assert named(second) == named(first)
    (item,) = client.responses.input_items.list(second.id).data
    assert item.to_dict() == {**new[0], "id": item.id, "status": "completed"}
    third = client.responses.create(input="And now?", previous_response_id=second.id, **sent)
    assert named(third) == (named(first)[0], named(first)[1] + 1)
    messages = server.bodies("chat")[-1]["messages"][1:]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user", "assistant", "user"]
    assert messages[2]["content"] == "Here:\n[image]"
    assert [part["image_url"]["url"] for part in messages[3]["content"] if "image_url" in part] == [PICTURE]
    assert [turn.user_text for turn in Chat(chat.service.for_owner(OWNER), named(first)[0]).turns] == [
        "Take a screenshot.",
        "And now?",
    ]


@pytest.mark.parametrize("since", ["nothing", "another question", "another attempt", "Stop"])
@pytest.mark.parametrize("words", ["", "And be quick."])
def test_results_that_come_again_are_told_with_their_calls(
    chat: Chat, server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any], since: str, words: str
) -> None:
    server.script(text("Hello."), tools(FIRST, answer="Wait."), tools(SECOND))
    first = client.responses.create(input="Hi there", **sent)
    asked: Any = {
        "role": "user",
        "content": [
            {"type": "input_text", "text": question(2)},
            {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
        ],
    }
    called: Any = client.responses.create(input=[asked], tools=[LOOK], previous_response_id=first.id, **sent)
    again: Any = client.responses.create(
        input=[output(called.output[-1].call_id, "하나")], tools=[LOOK], previous_response_id=called.id, **sent
    )
    results: list[Any] = [output(again.output[-1].call_id, "둘")]
    if words:
        results.append({"role": "user", "content": words})
    if since == "Stop":
        page = chat.service.for_owner(OWNER)
        page.turns.stop(named(called)[0])
    else:
        last = client.responses.create(input=results, tools=[LOOK], previous_response_id=again.id, **sent)
    if since == "another question":
        client.responses.create(input="A later question", previous_response_id=last.id, **sent)
    elif since == "another attempt":
        client.responses.create(input=[asked], tools=[LOOK], previous_response_id=first.id, **sent)
    response = client.responses.create(input=results, tools=[LOOK], previous_response_id=again.id, **sent)
    messages = server.bodies("chat")[-1]["messages"]
    assert faults(messages) == []
    told = [content_of(message) for message in messages[1:] if message["role"] != "assistant"]
    assert told == ["Hi there", question(2), "하나", "둘", *([words] if words else [])]
    arguments = [call["function"]["arguments"] for message in messages for call in message.get("tool_calls", ())]
    assert [*map(json.loads, arguments)] == [json.loads(FIRST.arguments), json.loads(SECOND.arguments)]
    assert str(messages).count(PICTURE) == 1
    following = client.responses.create(input="And now?", previous_response_id=response.id, **sent)
    assert named(following) == (named(response)[0], named(response)[1] + 1)


def test_each_response_can_be_gone_on_with_and_none_loses_its_chat(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    """Another question behind an earlier response, the same one again, and what followed the replaced answer."""
    first = client.responses.create(input=question(1), **sent)
    second = client.responses.create(input=question(2), previous_response_id=first.id, **sent)
    branch = client.responses.create(input=question(3), previous_response_id=first.id, **sent)
    assert (named(first)[0], named(branch)[1]) == (named(second)[0], 2)
    assert named(branch)[0] != named(first)[0]
    assert shape(server.bodies("chat")[-1]) == [1, 3]
    server.script(text("Another answer."))
    again = client.responses.create(input=question(2), previous_response_id=first.id, **sent)
    assert (named(again), again.output_text) == (named(second), "Another answer.")
    assert again.id != second.id
    old = client.responses.create(input=question(4), previous_response_id=second.id, **sent)
    assert named(old)[0] not in (named(first)[0], named(branch)[0])
    assert shape(server.bodies("chat")[-1]) == [1, 2, 4]
    assert second.output_text in str(server.bodies("chat")[-1]["messages"])
    assert "Another answer." not in str(server.bodies("chat")[-1]["messages"])
    assert named(client.responses.create(input=question(5), previous_response_id=again.id, **sent)) == (
        named(first)[0],
        3,
    )
    assert named(client.responses.create(input=question(6), previous_response_id=branch.id, **sent))[1] == 3
    assert named(client.responses.create(input=question(7), previous_response_id=old.id, **sent))[1] == 4


def test_two_chats_of_the_same_words_stay_two(client: openai.OpenAI, server: FakeOpenAI, sent: dict[str, Any]) -> None:
    server.script(*[text("Hello.")] * 4)
    ids = [client.responses.create(input="Hi", **sent).id for _ in range(2)]
    told = [client.responses.create(input="And now?", previous_response_id=each, **sent) for each in ids]
    assert len({named(response)[0] for response in told}) == 2
    assert [named(response)[1] for response in told] == [2, 2]


def test_a_repeated_request_has_the_response_that_was_begun(
    chat: Chat, server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    first = client.responses.create(input=question(1), **sent)
    client.responses.create(input=question(2), previous_response_id=first.id, **sent)
    # The second time behind the same response, it is a fork.
    for headers in ({"Idempotency-Key": uuid.uuid4().hex}, {"x-stainless-retry-count": "1"}):
        asked = {"input": f"{headers}", "previous_response_id": first.id, "extra_headers": headers}
        told = client.responses.create(**asked, **sent)
        before = counts(chat), len(server.bodies("chat"))
        assert client.responses.create(**asked, **sent).id == told.id
        assert (counts(chat), len(server.bodies("chat"))) == before


def test_what_is_unknown_or_of_others_is_not_found(
    chat: Chat, served: ServedApi, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    known = client.responses.create(input=question(1), **sent)
    plain = client.responses.create(input="Hi", model="turnfold:plain")
    session_id, before = named(known)[0], counts(chat)
    stranger = openai.OpenAI(base_url=served.url, api_key=OTHER_TOKEN, max_retries=0)
    attempts: list[tuple[openai.OpenAI, str, dict[str, Any]]] = [
        (client, name, sent)
        for name in (
            "resp_1",
            "canary",
            plain.id,
            f"resp_{session_id}_2_1_1",
            f"resp_{session_id}_1_1_0",
            f"resp_{session_id}_1_1_9",
        )
    ]
    attempts += [(stranger, known.id, sent), (client, known.id, {**sent, "user": "another"})]
    attempts += [(client, known.id, {**sent, "extra_headers": {"X-Turnfold-Session": "another"}})]
    for who, name, fields in attempts:
        for asked in (
            {"input": question(2), "previous_response_id": name},
            {"input": [{"id": f"msg_{name.removeprefix('resp_')}_0"}, {"role": "user", "content": question(2)}]},
        ):
            with pytest.raises(openai.NotFoundError) as missing:
                who.responses.create(**asked, **fields)
            assert (missing.value.code, missing.value.param) == ("previous_response_not_found", "previous_response_id")
            assert "canary" not in missing.value.message
    assert counts(chat) == before
    stranger.close()


def test_a_form_for_the_text_and_a_pictures_address_go_to_the_model(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    picture = "data:image/png;base64,iVBORw0KGgo="
    parts = [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": picture, "detail": "low"},
    ]
    form: Any = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    asked: Any = {"input": [{"role": "user", "content": parts}], "text": {"format": form}, "max_output_tokens": 99}
    client.responses.create(**asked, **sent)
    body = server.bodies("chat")[-1]
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
    }
    assert body["messages"][-1]["content"][1]["image_url"]["url"] == picture
    assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"))


def test_a_chat_that_was_begun_at_openai_goes_on_here(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    items: list[Any] = [
        {"role": "user", "content": "What is new?"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "new"}},
        {"role": "assistant", "content": "Nothing."},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"},
        {"role": "user", "content": question(1)},
    ]
    response = client.responses.create(input=items, truncation="disabled", **sent)
    messages = server.bodies("chat")[-1]["messages"]
    assert [content_of(message) for message in messages[1:]] == ["What is new?", "Nothing.", question(1)]
    # What doesn't fit is left out of a chat, whatever was asked; a plain request goes on whole.
    assert response.truncation == "auto"
    plain = client.responses.create(input="Hi", model="turnfold:plain", truncation="auto")
    assert plain.truncation == "disabled"


def test_a_demand_for_one_of_the_allowed_tools_is_told_as_every_server_knows_it(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    server.script(tools(FIRST))
    offered: Any = [LOOK, {**LOOK, "name": "find"}]
    choice: Any = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]}
    asked = client.responses.create(input="Hi", tools=offered, tool_choice=choice, **sent)
    assert asked.output[0].type == "function_call"
    body = server.bodies("chat")[-1]
    assert ([tool["function"]["name"] for tool in body["tools"]], body["tool_choice"]) == (["look"], "required")


def test_a_refusal_before_the_stream_has_a_status_and_names_the_input(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    for fields, code, param in (
        ({"input": "Hi", "tools": [{"type": "web_search"}]}, "unsupported_tool", "tools"),
        ({"input": " "}, "empty_message", "input"),
        ({"input": [{"role": "assistant", "content": "Hal"}]}, "prefill_unsupported", "input"),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(**fields, **sent)
        assert (refused.value.code, refused.value.param) == (code, param)
    server.script(failure(429, code="insufficient_quota"))
    with pytest.raises(openai.RateLimitError):
        list(client.responses.create(input="Hi", stream=True, **sent))


@pytest.fixture(scope="module")
def scripted() -> Iterator[tuple[ScriptedCompletions, ServedApi]]:
    completions = ScriptedCompletions("small")
    with ServedApi(completions, patience_seconds=0.1) as http_api:
        yield completions, http_api


def test_silence_is_broken_and_closing_a_stream_stops_the_turn(
    scripted: tuple[ScriptedCompletions, ServedApi],
) -> None:
    completions, http_api = scripted
    completions.forget("small")
    completions.script([TurnStarted("s", 1, 1), threading.Event()])
    with openai.OpenAI(base_url=http_api.url, api_key=TOKEN) as client:
        stream = client.responses.create(input="Hi", model="turnfold", stream=True)
        told = [next(stream).type for _ in range(4)]
        assert told == ["response.created", *["response.in_progress"] * 3]
        stream.close()
    assert completions.made[0].is_stopped.wait(20)


def test_a_stream_that_breaks_off_fails_in_the_client_and_ends_as_failed(
    scripted: tuple[ScriptedCompletions, ServedApi],
) -> None:
    completions, http_api = scripted
    completions.forget("small")
    for _ in range(2):
        completions.script([TurnStarted("s", 1, 1), TokenDelta("Hal"), TurnFailed(1, "cut_stream", "")])
    with openai.OpenAI(base_url=http_api.url, api_key=TOKEN, max_retries=0) as client:
        stream = client.responses.create(input="Hi", model="turnfold", stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            list(stream)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx2.post(f"{http_api.url}/responses", json={"input": "Hi", "stream": True}, headers=headers)
    last = answer.text.strip().split("\n\n")[-2:]
    assert [block.partition("\n")[0] for block in last] == ["event: error", "event: response.failed"]
    assert "[DONE]" not in answer.text
    assert answer.headers["content-type"] == "text/event-stream"


def test_headers_name_session_turn_and_way_also_of_a_stream(
    scripted: tuple[ScriptedCompletions, ServedApi],
) -> None:
    completions, http_api = scripted
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for is_streamed in (False, True):
        completions.forget("small")
        completions.script(text_steps("Hi"))
        body = {"input": "Hi", "stream": is_streamed, "prompt_cache_key": "chat-1", "metadata": {"a": "b"}}
        answer = httpx2.post(f"{http_api.url}/responses/", json=body, headers=headers)
        named = [answer.headers[f"x-turnfold-{name}"] for name in ("session", "turn", "matched")]
        assert named == ["session-1", "1", "history"]
        assert completions.requests[0].options.supports_restart is not is_streamed
