"""The clients that people use, over the real routes, the real service and a scripted endpoint."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graph.service import ChatService
from graph.value.event import TurnFinished
from tests.fake import served_programs
from tests.fake.body import content_of, faults, shape, system_prompt, tool_names
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.resending import counts
from tests.fake.served_api import OTHER_OWNER, OTHER_TOKEN, OWNER, TOKEN, ServedApi, serve
from tests.fake.served_app import KEY, ask_health
from tests.fake.served_app import served as served_app
from tests.fake.served_programs import ServedPrograms

MODELS: Final = ["scripted-model", "another-model"]
TITLE: Final = "### Task:\nGenerate a concise title.\n<chat_history>\nUSER: Hi\n</chat_history>"
CHAT_ID: Final = "X-OpenWebUI-Chat-Id"
TOOLS: Final[Any] = [dict(tool("look", path={"type": "string"}, depth={"type": "integer"}))]
# Clients send arguments back as JSON of their own: in another order, with other spaces.
FIRST: Final = ScriptedCall("look", '{"path":"a.py",  "depth":1}', "call-1")
SECOND: Final = ScriptedCall("look", '{"path":"나.py"}', "call-2")
CLOCK: Final = ScriptedCall("get_current_time", "{}", "call-clock")
PATIENCE_SECONDS: Final = 60.0


class ReceivedAnswer(NamedTuple):
    """An answer and what its headers say; `calls` are (id, name, arguments)."""

    text: str
    session_id: str
    turn: int
    matched: str
    calls: tuple[tuple[str, str, Any], ...] = ()


class OpenAIChat:
    """A chat of the openai client, which reads streams.

    Attributes:
        messages: All that it has, and all that it sends.
        headers: What each request has beside the token.
        fields: What each request's body has beside the messages; the default model unless one is named.
    """

    def __init__(self, url: str, *, token: str = TOKEN, retries: int = 2, seconds: float = 60.0) -> None:
        self.client = openai.OpenAI(base_url=url, api_key=token, max_retries=retries, timeout=seconds)
        self.messages: list[Any] = []
        self.headers: Mapping[str, str] = {}
        self.fields: Mapping[str, Any] = {}

    def ask(self, words: str) -> ReceivedAnswer:
        """Sends the chat with a question, and keeps both."""
        self.messages.append({"role": "user", "content": words})
        return self.send()

    def answer(self, results: Mapping[str, str]) -> ReceivedAnswer:
        """Sends the chat with the results of tools, by the ids of their calls."""
        self.keep(results)
        return self.send()

    def keep(self, results: Mapping[str, str]) -> None:
        """Keeps the results of tools, which are sent with what comes next."""
        self.messages += [
            {"role": "tool", "tool_call_id": call_id, "content": said} for call_id, said in results.items()
        ]

    def send(self) -> ReceivedAnswer:
        """Sends the chat, and keeps the answer."""
        raw = self.client.chat.completions.with_raw_response.create(
            messages=self.messages,
            stream=True,
            extra_headers=dict(self.headers),
            **{"model": "turnfold", **self.fields},
        )
        said, calls = "", dict[int, list[str]]()
        for chunk in raw.parse():
            for choice in chunk.choices:
                said += choice.delta.content or ""
                for part in choice.delta.tool_calls or ():
                    assert part.function is not None
                    call = calls.setdefault(part.index, ["", "", ""])
                    for index, piece in enumerate((part.id, part.function.name, part.function.arguments)):
                        call[index] += piece or ""
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if calls:
            message["tool_calls"] = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call_id, name, arguments in calls.values()
            ]
        self.messages.append(message)
        told = tuple((call_id, name, json.loads(arguments)) for call_id, name, arguments in calls.values())
        return _received_answer(said, raw.headers, told)


class LangChainChat:
    """A chat of LangChain's client, which waits for whole answers; its attributes are those of `OpenAIChat`."""

    def __init__(self, url: str, *, token: str = TOKEN, retries: int = 2, seconds: float = 60.0) -> None:
        self._connect: Callable[..., ChatOpenAI] = lambda **more: ChatOpenAI(
            base_url=url,
            api_key=SecretStr(token),
            model="turnfold",
            max_retries=retries,
            timeout=seconds,
            include_response_headers=True,
            **more,
        )
        self.messages: list[Any] = []
        self.headers: Mapping[str, str] = {}
        self.fields: Mapping[str, Any] = {}

    def ask(self, words: str) -> ReceivedAnswer:
        """Sends the chat with a question, and keeps both."""
        self.messages.append(HumanMessage(words))
        return self.send()

    def answer(self, results: Mapping[str, str]) -> ReceivedAnswer:
        """Sends the chat with the results of tools, by the ids of their calls."""
        self.keep(results)
        return self.send()

    def keep(self, results: Mapping[str, str]) -> None:
        """Keeps the results of tools, which are sent with what comes next."""
        self.messages += [ToolMessage(said, tool_call_id=call_id) for call_id, said in results.items()]

    def send(self) -> ReceivedAnswer:
        """Sends the chat, and keeps the answer."""
        message = self._connect(default_headers=dict(self.headers)).invoke(self.messages, **self.fields)
        assert isinstance(message, AIMessage)
        self.messages.append(message)
        calls = tuple((str(call["id"]), call["name"], call["args"]) for call in message.tool_calls)
        return _received_answer(str(message.content), message.response_metadata["headers"], calls)


RealChat = OpenAIChat | LangChainChat
REAL_CHATS: Final[Sequence[type[RealChat]]] = (OpenAIChat, LangChainChat)


def _received_answer(said: str, headers: Mapping[str, str], calls: tuple[tuple[str, str, Any], ...]) -> ReceivedAnswer:
    session_id, turn = headers.get("x-turnfold-session", ""), int(headers.get("x-turnfold-turn", "0"))
    return ReceivedAnswer(said, session_id, turn, headers["x-turnfold-matched"], calls)


NewClient = Callable[..., RealChat]


@pytest.fixture(scope="module")
def module_service(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    endpoint.models = list(MODELS)
    with chat_opener(settings_maker(tmp_path_factory.mktemp("module") / "data", endpoint.url)) as open_chat:
        yield open_chat().service


@pytest.fixture(scope="module")
def served(module_service: ChatService) -> Iterator[ServedApi]:
    with serve(module_service) as http_api:
        yield http_api


@pytest.fixture(params=REAL_CHATS)
def kind(request: pytest.FixtureRequest) -> type[RealChat]:
    client: type[RealChat] = request.param
    return client


@pytest.fixture
def new_client(served: ServedApi, kind: type[RealChat]) -> NewClient:
    """Makes clients of one end user, whom no other test has."""
    user = uuid.uuid4().hex

    def make(**options: Any) -> RealChat:  # noqa: ANN401  # those of the client
        program = kind(served.url, **options)
        program.fields = {"user": user}
        return program

    return make


def session_of(chat: Chat, session_id: str, owner: str = OWNER) -> Chat:
    return Chat(chat.service.for_owner(owner), session_id)


def last_body(server: FakeOpenAI) -> Body:
    body = server.bodies("chat")[-1]
    assert faults(body["messages"]) == []
    return body


def sessions(chat: Chat) -> int:
    return counts(chat)[0]


class Gated:
    """Answers a chat once its gate is opened."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def __call__(self, body: Body) -> Reply:
        assert self.gate.wait(PATIENCE_SECONDS)
        return answer_body(body)


def test_a_chat_stays_in_one_session_whatever_a_front_end_adds_or_leaves_out(
    chat: Chat, server: FakeOpenAI, new_client: NewClient
) -> None:
    """Titles, the time in a system prompt, documents around a question, another model, only the newest messages."""
    program, titles, before = new_client(), new_client(), sessions(chat)
    program.headers = titles.headers = {CHAT_ID: uuid.uuid4().hex}
    server.script(text("Moving a server"))
    assert titles.ask(TITLE) == ReceivedAnswer("Moving a server", "", 0, "aside")
    assert sessions(chat) == before
    first = program.ask(question(1))
    assert first[2:4] == (1, "new")
    held = Gated()
    server.script(held, to=question(2))
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(program.ask, question(2))
        server.wait_until(lambda _: len(server.bodies("chat", to=question(2))) == 1)
        titles.messages, titles.headers = [], {**titles.headers, "X-Turnfold-Task": "title_generation"}
        assert titles.ask("Name this chat.").matched == "aside"
        held.gate.set()
        assert asking.result(PATIENCE_SECONDS)[1:4] == (first.session_id, 2, "hint")
    program.messages.insert(0, {"role": "system", "content": "It is 12:03."})
    wrapped = f"Use the context.\n<context>\n문서\n</context>\n{question(3)}"
    assert program.ask(wrapped)[1:3] == (first.session_id, 3)
    assert "It is 12:03." in system_prompt(last_body(server))
    assert "문서" in str(last_body(server)["messages"][-1])
    program.messages[0] = {"role": "system", "content": "It is 12:04."}
    program.messages[-2] = {"role": "user", "content": question(3)}
    program.fields = {**program.fields, "model": "turnfold/another-model"}
    session_of(chat, first.session_id).wait_for_folds()
    assert program.ask(question(4))[1:3] == (first.session_id, 4)
    assert "It is 12:04." in system_prompt(last_body(server))
    assert "It is 12:03." not in system_prompt(last_body(server))
    assert last_body(server)["model"] == "another-model"
    program.messages = program.messages[-4:]
    assert program.ask(question(5))[1:4] == (first.session_id, 5, "tail")
    assert shape(last_body(server)) == [(1, 3), 4, 5]
    assert sessions(chat) == before + 1


@pytest.mark.parametrize("is_plain", [False, True])
def test_what_the_model_s_server_refuses_is_told_as_that_and_asked_once(
    served: ServedApi, server: FakeOpenAI, *, is_plain: bool
) -> None:
    asked: Any = {"model": "turnfold:plain" if is_plain else "turnfold", "user": uuid.uuid4().hex}
    words = f"Unsupported schema: 'anyOf'. The key is {KEY}."
    with openai.OpenAI(base_url=served.url, api_key=TOKEN, max_retries=2) as client:
        for stream in (False, True):
            before = len(server.bodies())
            server.script(failure(400, words))
            with pytest.raises(openai.BadRequestError) as refused:
                client.chat.completions.create(messages=[{"role": "user", "content": "Hi"}], stream=stream, **asked)
            assert refused.value.code == "invalid_request"
            assert "server refuses this request. (HTTP 400: Unsupported schema: 'anyOf'." in refused.value.message
            assert KEY not in refused.value.response.text
            assert len(server.bodies()) == before + 1


def stop(program: RealChat, words: str, url: str) -> Any:  # noqa: ANN401  # a message of the client's own
    """Asks, reads the first words, closes the stream as a Stop button does, and returns them as an answer."""
    if isinstance(program, OpenAIChat):
        program.messages.append({"role": "user", "content": words})
        stream = program.client.chat.completions.create(
            model="turnfold", messages=program.messages, stream=True, user=program.fields["user"]
        )
        said = next(text for chunk in stream if (text := chunk.choices[0].delta.content))
        stream.close()
        return {"role": "assistant", "content": said}
    program.messages.append(HumanMessage(words))
    model = ChatOpenAI(base_url=url, api_key=SecretStr(TOKEN), model="turnfold")
    pieces = model.stream(program.messages, user=program.fields["user"])
    said = next(str(piece.content) for piece in pieces if piece.content)
    pieces.close()  # type: ignore[attr-defined]  # a generator, though it is declared as an iterator
    return AIMessage(said)


def test_a_client_that_stops_an_answer_or_wants_another_one_stays_in_its_session(
    chat: Chat, served: ServedApi, server: FakeOpenAI, new_client: NewClient
) -> None:
    program = new_client()
    first = program.ask(question(1))
    for number in (2, 4):
        server.script(hang("Half of"), to=question(number))
        part = stop(program, question(number), served.url)
        program.messages += [part] * (number == 2)
        assert program.ask(question(number + 1))[1:3] == (first.session_id, number + 1)
        session_of(chat, first.session_id).wait_for_folds()
    turns = session_of(chat, first.session_id).turns
    assert [turn.status for turn in turns] == ["finished", *["stopped", "finished"] * 2]
    assert "Half of" in str(last_body(server)["messages"][-2])
    server.script(text("Another answer."))
    program.messages, program.headers = program.messages[:-1], {"Idempotency-Key": uuid.uuid4().hex}
    again = program.send()
    assert again == ReceivedAnswer("Another answer.", first.session_id, 5, "history")
    sent = len(server.bodies("chat"))
    program.messages = program.messages[:-1]
    assert program.send() == again._replace(matched="retry")
    assert len(server.bodies("chat")) == sent


def test_parallel_calls_are_answered_in_any_order_and_several_rounds_are_one_turn(
    chat: Chat, server: FakeOpenAI, new_client: NewClient
) -> None:
    program = new_client(token=OTHER_TOKEN)  # its token has all of the server's own tools
    program.fields = {**program.fields, "tools": TOOLS}
    server.script(tools(CLOCK, FIRST, SECOND, answer="보겠습니다."))
    asked = program.ask(question(1))
    assert (asked.text, asked.turn) == ("보겠습니다.", 1)
    assert [call[1:] for call in asked.calls] == [("look", {"path": "a.py", "depth": 1}), ("look", {"path": "나.py"})]
    one, two = (call[0] for call in asked.calls)
    assert {"look", "get_current_time", "recall"} <= set(tool_names(last_body(server)))
    retained = list(program.messages)
    with pytest.raises(openai.BadRequestError) as refused:
        program.answer({two: "둘"})
    assert (refused.value.code, one in refused.value.message) == ("unanswered_call", True)
    program.messages = retained
    server.script(tools(ScriptedCall("look", "{}", "call-3")), text("끝났습니다."))
    (three,) = (call[0] for call in program.answer({two: "둘", one: "하나"}).calls)
    results = [message for message in last_body(server)["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ["call-clock", "call-1", "call-2"]
    assert [content_of(message) for message in results[1:]] == ["하나", "둘"]
    assert program.answer({three: "셋"}) == ReceivedAnswer("끝났습니다.", asked.session_id, 1, "history")
    server.script(tools(ScriptedCall("look", "{}", "call-4")))
    assert program.ask(question(2))[1:4] == (asked.session_id, 2, "history")
    program.keep({"call-4": "취소됨"})  # a new message instead closes what waits
    assert program.ask(question(3))[1:4] == (asked.session_id, 3, "history")
    assert last_body(server)["messages"][-1]["content"] == question(3)
    turns = session_of(chat, asked.session_id, OTHER_OWNER).turns
    assert [turn.status for turn in turns] == ["finished"] * 3


def test_a_client_that_finds_its_session_busy_is_answered_beside_it(
    chat: Chat, served: ServedApi, server: FakeOpenAI, new_client: NewClient
) -> None:
    program, held = new_client(), Gated()
    first = program.ask(question(1))
    page = session_of(chat, first.session_id)
    server.script(held, to=question(2))
    page.start(question(2))
    server.wait_until(lambda _: len(server.bodies("chat", to=question(2))) == 1)
    asked = len(served.owners)
    beside = program.ask(question(3))
    assert (beside.session_id != first.session_id, beside.turn, beside.matched) == (True, 2, "fork")
    assert (len(served.owners) - asked, shape(last_body(server))) == (1, [1, 3])
    held.gate.set()
    assert isinstance(page.events()[-1], TurnFinished)
    assert program.ask(question(4))[1:3] == (beside.session_id, 3)
    assert [turn.user_text for turn in page.turns] == [question(number) for number in (1, 2)]


def test_a_client_that_lost_its_patience_and_sends_again_is_given_the_same_turn(
    chat: Chat, served: ServedApi, server: FakeOpenAI, new_client: NewClient, kind: type[RealChat]
) -> None:
    program, held = new_client(retries=10, seconds=0.5), Gated()
    server.script(held, to=question(1))
    asked = len(served.owners)
    with ThreadPoolExecutor() as pool:
        asking = pool.submit(program.ask, question(1))
        server.wait_until(lambda _: len(served.owners) - asked >= 2, PATIENCE_SECONDS)
        held.gate.set()
        told = asking.result(PATIENCE_SECONDS)
    assert told.turn == 1
    assert question(1)[:20] in told.text
    (turn,) = session_of(chat, told.session_id).turns
    assert (turn.answer_text, turn.status) == (told.text, "finished")
    # Closing a stream is Stop, so what is sent again is answered anew; a whole answer is waited for by the next try.
    assert turn.attempt == 1 or kind is OpenAIChat


@pytest.mark.slow
def test_fifteen_seconds_before_the_first_token_break_neither_client(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat, over = open_chat(fold_wait_seconds=10.0), threading.Event()

    def respond(body: Body) -> Reply:
        if kind_of(body) == "summary":
            over.wait(PATIENCE_SECONDS)
        elif question(4) in str(body["messages"][-1]):
            over.wait(5)
        return answer_body(body)

    server.respond_with(respond)
    with serve(chat.service) as served, ThreadPoolExecutor() as pool:
        programs = [client(served.url, retries=0) for client in REAL_CHATS]
        for program in programs:
            program.fields = {**program.fields, "user": type(program).__name__}  # they hold the same chat
            for number in range(1, 4):
                program.ask(question(number))
        for told in pool.map(lambda program: program.ask(question(4)), programs):
            assert (told.turn, question(4)[:20] in told.text) == (4, True)
            assert names(session_of(chat, told.session_id).events()).count("FoldWaiting") == 1
        over.set()
    assert [shape(body) for body in server.bodies("chat")[-2:]] == [[1, 2, 3, 4]] * 2
    assert counts(chat)[:3] == [2, 8, 16]


@pytest.mark.slow
@pytest.mark.parametrize("client", REAL_CHATS)
def test_a_long_chat_of_a_real_client_is_folded_like_the_pages(
    open_chat: OpenChat, server: FakeOpenAI, client: type[RealChat]
) -> None:
    chat = open_chat(turns_per_minute=10_000)
    chat.ask(1, 50)
    page, page_folds = server.bodies("chat"), server.bodies("summary")
    with serve(chat.service) as served:
        program = client(served.url, token=OTHER_TOKEN)
        for number in range(1, 51):
            told = program.ask(question(number))
            assert (told.turn, told.matched) == (number, "new" if number == 1 else "history")
            session_of(chat, told.session_id, OTHER_OWNER).wait_for_folds()
    bodies = server.bodies("chat")[50:]
    assert bodies == page
    assert shape(bodies[-1]) == [*((first, first + 2) for first in range(1, 48, 3)), 49, 50]
    assert server.bodies("summary")[len(page_folds) :] == page_folds
    assert counts(chat) == [2, 100, 200, 32]


@pytest.mark.slow
def test_a_chat_goes_on_in_its_session_after_the_whole_server_was_killed(server: FakeOpenAI, tmp_path: Path) -> None:
    """Each request is of another client, which takes over what the one before has."""
    programs: list[type[RealChat]] = [OpenAIChat, LangChainChat]
    messages: list[object] = []
    told: list[ReceivedAnswer] = []
    for life, client in enumerate(programs):
        settings = {"CHAT_API_TOKENS": f"editor:kim:{TOKEN}", "MODEL_WINDOW_TOKENS": "100000"}
        log = tmp_path / f"log-{life}"
        with served_app("app.py", tmp_path / "data", server.url, log, **settings) as (process, port):
            assert ask_health(port, process) == (200, "ok")
            program = client(f"http://127.0.0.1:{port}{'/' * life}/v1", token=TOKEN)  # the second has a slash too many
            program.messages = messages
            told += [program.ask(question(2 * life + number)) for number in (1, 2)]
    assert [answer.turn for answer in told] == [1, 2, 3, 4]
    assert [answer.matched for answer in told] == ["new", *["history"] * 3]
    assert len({answer.session_id for answer in told}) == 1
    assert shape(server.bodies("chat")[-1])[-1] == 4


LONG: Final = "x" * 1_001
HALF: Final[Any] = {"role": "user", "content": "x" * 600}
LOOKED: Final[Any] = {"type": "function", "function": {"name": "look", "arguments": "{}"}, "id": "call-1"}
# A conversation with a message that is too long: for chat completions, for Responses, and how each names it.
TOO_LONG: Final[Mapping[str, tuple[list[Any], str, list[Any], str]]] = {
    "a question behind a long answer": (
        [HALF, {"role": "assistant", "content": LONG}, {"role": "user", "content": LONG}],
        "messages.3.content",
        [HALF, {"type": "reasoning", "summary": []}, {"role": "user", "content": LONG}],
        "input.2.content",
    ),
    "two questions that are one": ([HALF, HALF], "messages.2.content", [HALF, HALF], "input.1.content"),
    "a result": (
        [
            HALF,
            {"role": "assistant", "content": "", "tool_calls": [LOOKED]},
            {"role": "tool", "tool_call_id": "call-1", "content": LONG},
        ],
        "messages.3.content",
        [
            HALF,
            {"type": "function_call", "call_id": "call-1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call-1", "output": LONG},
        ],
        "input.2.output",
    ),
}


@pytest.mark.parametrize("case", TOO_LONG)
def test_a_message_that_is_too_long_is_named_by_its_place(open_chat: OpenChat, server: FakeOpenAI, case: str) -> None:
    messages, message_place, items, item_place = TOO_LONG[case]
    chat = open_chat(message_chars=1_000)
    with ServedPrograms(chat.service) as served, served.client() as http:
        client = openai.OpenAI(base_url=f"{served.url}/v1", api_key=served_programs.TOKEN, max_retries=0)
        messages = [{"role": "system", "content": "Be brief."}, *messages]
        server.script(tools(ScriptedCall("look", "{}", "call-1")))
        called = client.chat.completions.create(model="turnfold", messages=messages[:2], tools=TOOLS)
        call = (called.choices[0].message.tool_calls or [])[0]
        messages, items = json.loads(json.dumps([messages, items]).replace("call-1", call.id))
        sent: Sequence[tuple[Callable[[], object], str]] = (
            (lambda: client.chat.completions.create(model="turnfold", messages=messages), message_place),
            (lambda: client.responses.create(model="turnfold", input=items, instructions="Be brief."), item_place),
        )
        for send, place in sent:
            with pytest.raises(openai.BadRequestError) as refused:
                send()
            assert (refused.value.code, refused.value.param) == ("context_length_exceeded", place)
            assert "MESSAGE_CHARS" in refused.value.message
        told = http.post("/chat", json={"message": LONG}).json()["error"]
        assert (told["code"], told["param"]) == ("context_length_exceeded", "message")
