"""Responses that are read, stopped and deleted by their ids, as OpenAI's own client does it, at two servers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, Final

import openai
import pytest

from graph.value.error import NotFoundError
from tests.fake.chat import Chat, question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, close_early, hang, text, thinking, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_programs import STRANGER, TOKEN, ServedPrograms

LOOK: Final[Any] = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
CALL: Final = ScriptedCall("look", '{"path":"a.py"}', "call-1")
CLOCK: Final = ScriptedCall("get_current_time", "{}", "call-clock")
PICTURE: Final = "data:image/png;base64,iVBORw0KGgo="
# What a response repeats of its request, and how the request was recognised, isn't stored.
OF_THE_REQUEST: Final = {"model", "previous_response_id", "tools", "user"}


@pytest.fixture(scope="module")
def servers(
    endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Chat, ServedPrograms, ServedPrograms]]:
    """Two servers over one file."""
    folder = tmp_path_factory.mktemp("responses")
    with chat_opener(settings_maker(folder / "data", endpoint.url)) as open_chat:
        chat, other = open_chat(), open_chat()
        with ServedPrograms(chat.service) as here, ServedPrograms(other.service) as there:
            yield chat, here, there


@pytest.fixture
def chat(servers: tuple[Chat, ServedPrograms, ServedPrograms], server: FakeOpenAI) -> Iterator[Chat]:
    yield servers[0]
    server.end_hanging(for_good=True)


def client_of(served: ServedPrograms, token: str = TOKEN) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key=token, max_retries=0)


@pytest.fixture
def client(servers: tuple[Chat, ServedPrograms, ServedPrograms], chat: Chat) -> Iterator[openai.OpenAI]:
    assert chat
    with client_of(servers[1]) as client:
        yield client


@pytest.fixture
def elsewhere(servers: tuple[Chat, ServedPrograms, ServedPrograms]) -> Iterator[openai.OpenAI]:
    with client_of(servers[2]) as client:
        yield client


@pytest.fixture
def sent() -> dict[str, Any]:
    """What each request says: its end user is no other test's."""
    return {"model": "turnfold", "user": uuid.uuid4().hex}


def output(call_id: str, said: str) -> Any:  # noqa: ANN401  # an item of the library
    return {"type": "function_call_output", "call_id": call_id, "output": said}


def session_of(response: Any) -> str:  # noqa: ANN401  # a response of the library
    return str(response.model_extra["turnfold"]["session"])


def fixed(response: Any) -> dict[str, Any]:  # noqa: ANN401  # a response of the library
    """What is the same in a response whenever it is read."""
    told = response.model_dump(mode="json")
    del told["turnfold"]
    return {name: value for name, value in told.items() if name not in OF_THE_REQUEST}


def test_a_response_is_read_as_it_was_answered(
    server: FakeOpenAI, client: openai.OpenAI, elsewhere: openai.OpenAI, sent: dict[str, Any]
) -> None:
    """Thoughts, text round a tool of the server's, a cut answer, calls and what followed them, a replaced answer."""
    told: list[Any] = []

    def ask(said: Any, **fields: Any) -> Any:  # noqa: ANN401  # what the library takes and gives
        previous = told[-1].id if told else None
        told.append(client.responses.create(**{"input": said, "previous_response_id": previous, **sent, **fields}))
        assert [fixed(reader.responses.retrieve(told[-1].id)) for reader in (client, elsewhere)] == [
            fixed(told[-1])
        ] * 2
        return told[-1]

    server.script(
        thinking("reasoning_content", "Hm, hm.", "One."),
        text("Zwei", finish_reason="length"),
        tools(CLOCK, answer="Let me see."),
        text("It is noon."),
        tools(CALL, answer="Wait."),
        text("Green."),
        tools(CALL),
        text("Never mind."),
        text("Never."),
    )
    assert ask("Hi there").output[0].type == "reasoning"
    assert ask("And then?").status == "incomplete"
    assert ask("When?").output_text == "Let me see.\n\nIt is noon."
    called = ask("Which colour?", tools=[LOOK])
    assert [item.type for item in called.output] == ["message", "function_call"]
    assert ask([output("call-1", "green")], tools=[LOOK]).output_text == "Green."
    # Its calls are never answered.
    assert ask("Look again.", tools=[LOOK]).output[0].type == "function_call"
    before = told[-1].id
    assert ask("Forget it.").output_text == "Never mind."
    assert ask("Forget it.", previous_response_id=before).output_text == "Never."
    assert session_of(told[-1]) == session_of(told[0])
    for response in told:
        assert fixed(client.responses.retrieve(response.id)) == fixed(response)
        assert session_of(client.responses.retrieve(response.id)) == session_of(response)


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_running_response_is_in_progress_until_it_is_cancelled(
    server: FakeOpenAI, client: openai.OpenAI, elsewhere: openai.OpenAI, sent: dict[str, Any], where: str
) -> None:
    reader = client if where == "here" else elsewhere
    server.script(hang("Half an answer"), text("The whole."))
    with client.responses.create(input=question(1), stream=True, **sent) as stream:
        response_id = next(iter(stream)).response.id
        next(event for event in stream if event.type == "response.output_text.delta")
        running = reader.responses.retrieve(response_id)
        assert (running.id, running.status, running.output, running.usage) == (response_id, "in_progress", [], None)
        cancelled: Any = reader.responses.cancel(response_id)
        assert (cancelled.status, cancelled.output_text) == ("cancelled", "Half an answer")
        assert cancelled.output[0].status == "incomplete"
    assert (
        fixed(reader.responses.cancel(response_id)) == fixed(cancelled) == fixed(client.responses.retrieve(response_id))
    )
    following = client.responses.create(input="Go on.", previous_response_id=response_id, **sent)
    assert (following.status, session_of(following)) == ("completed", session_of(cancelled))
    # One that has ended is as it was.
    assert fixed(reader.responses.cancel(following.id)) == fixed(following)
    assert reader.responses.retrieve(response_id).status == "cancelled"


def test_a_response_that_failed_says_why(server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]) -> None:
    server.script(close_early("Half"))
    with pytest.raises(openai.InternalServerError) as failed:
        client.responses.create(input=question(1), **sent)
    session_id = failed.value.response.headers["x-turnfold-session"]
    response = client.responses.retrieve(f"resp_{session_id}_1_1_1")
    assert (response.status, response.output_text) == ("failed", "Half")
    assert response.error is not None
    assert failed.value.body == {**response.error.to_dict(), "type": "server_error", "param": None}


def test_a_response_whose_server_died_was_interrupted(chat: Chat, client: openai.OpenAI, sent: dict[str, Any]) -> None:
    told = client.responses.create(input=question(1), **sent)
    of_it = f"WHERE session_id = '{session_of(told)}'"
    chat.change(f"DELETE FROM message {of_it} AND position > 1")  # noqa: S608  # a name of our own
    chat.change(f"UPDATE turn SET status = 'running', partial_text = 'Half' {of_it}")  # noqa: S608  # a name of our own
    response: Any = client.responses.retrieve(told.id)
    assert (response.status, response.output_text, response.error.code) == ("failed", "Half", "interrupted")
    assert fixed(client.responses.cancel(told.id)) == fixed(response)


def test_what_a_response_answers_is_listed_in_pages(
    server: FakeOpenAI, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    calls = [ScriptedCall("look", "{}", f"call-{number}") for number in range(3)]
    server.script(tools(*calls), text("Done."), text("Again."))
    parts = [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
    ]
    asked: Any = [{"role": "user", "content": parts}]
    called = client.responses.create(input=asked, tools=[LOOK], **sent)
    made = [item for item in called.output if item.type == "function_call"]
    results = [output(call.call_id, str(number) * 20_000) for number, call in enumerate(made)]
    answered = client.responses.create(input=results, tools=[LOOK], previous_response_id=called.id, **sent)
    again = client.responses.create(input=asked, tools=[LOOK], **sent)
    for response in (called, again):
        (item,) = client.responses.input_items.list(response.id).data
        assert item.to_dict() == {
            "id": item.id,
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": parts,
        }
    pages = client.responses.input_items.list(answered.id, order="asc", limit=2)
    assert (pages.has_more, len(pages.data)) == (True, 2)
    told: list[Any] = list(pages)
    assert [(item.call_id, item.output) for item in told] == [(each["call_id"], each["output"]) for each in results]
    assert [item.id for item in client.responses.input_items.list(answered.id)] == [item.id for item in told][::-1]
    last = client.responses.input_items.list(answered.id, after=told[1].id)
    assert ([item.id for item in last.data], last.has_more) == ([told[0].id], False)
    assert client.responses.input_items.list(answered.id, after=told[0].id).data == []
    for wrong, name in (({"after": "canary"}, "after"), ({"limit": 0}, "limit"), ({"order": "canary"}, "order")):
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.input_items.list(answered.id, **wrong)
        assert (refused.value.code, refused.value.param) == ("invalid_value", name)
        assert "canary" not in refused.value.message


def test_a_response_is_deleted_with_its_session_if_that_is_all_of_it(
    chat: Chat, client: openai.OpenAI, sent: dict[str, Any]
) -> None:
    alone = client.responses.create(input=question(1), **sent)
    client.responses.delete(alone.id)
    with pytest.raises(NotFoundError):
        chat.service.sessions.get(session_of(alone))
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(alone.id)
    first = client.responses.create(input=question(1), **sent)
    last = client.responses.create(input=question(2), previous_response_id=first.id, **sent)
    for response in (first, last):
        with pytest.raises(openai.BadRequestError, match=f"DELETE /sessions/{session_of(first)} deletes it") as refused:
            client.responses.delete(response.id)
        assert refused.value.code == "invalid_request"
        assert fixed(client.responses.retrieve(response.id)) == fixed(response)


def test_what_is_unknown_without_memory_or_of_others_is_not_found(
    chat: Chat,
    servers: tuple[Chat, ServedPrograms, ServedPrograms],
    server: FakeOpenAI,
    client: openai.OpenAI,
    sent: dict[str, Any],
) -> None:
    known = client.responses.create(input=question(1), **sent)
    plain = client.responses.create(input="Hi", model="turnfold:plain")
    session_id, of_the_page = session_of(known), Chat(chat.service)
    of_the_page.ask(1, 1)
    server.script(hang("Half"))
    stream = client.responses.create(input=question(2), stream=True, **sent)
    running: Any = next(iter(stream))
    told = set()
    with client_of(servers[1], STRANGER) as stranger:
        attempts = [(stranger, known.id), (stranger, running.response.id), (client, plain.id)]
        attempts += [(client, f"resp_{of_the_page.session_id}_1_1_1"), (client, "canary"), (client, "resp_1")]
        attempts += [(client, f"resp_{session_id}_{rest}") for rest in ("1_1_0", "1_1_2", "1_2_1", "2_1_1", "0_0_0")]
        for who, name in attempts:
            for ask in (
                who.responses.retrieve,
                who.responses.cancel,
                who.responses.delete,
                who.responses.input_items.list,
            ):
                with pytest.raises(openai.NotFoundError) as missing:
                    ask(name)
                told.add(str(missing.value.body))
    assert len(told) == 1
    assert "'response_not_found'" in told.pop()
    assert client.responses.retrieve(running.response.id).status == "in_progress"
    with pytest.raises(openai.BadRequestError, match=r"stream: It isn't supported\."):
        client.responses.retrieve(known.id, stream=True)
    assert client.responses.retrieve(known.id, stream=False, include=["reasoning.encrypted_content"]).id == known.id
    stream.close()
