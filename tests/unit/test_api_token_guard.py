from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from api.middleware import OPEN_ANSWERS, ApiClients, Guard
from graph.server.identity import ApiToken
from graph.server.settings import Settings
from tests.fake.programs import NoPrograms, OneProgram

CANARY = "canary-0123456789-abcdef"
OTHER = "another-0123456789-abcdef"
MADE = "tf-made-0123456789-abcdef"
LISTED = f"editor:kim:{CANARY}:recall,script:lee:{OTHER}"


def settings_of(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values


async def who(scope: Scope, receive: Receive, send: Send) -> None:
    client = Request(scope).state.client
    tools = None if client.tools is None else sorted(client.tools)
    told = {"name": client.name, "owner": client.owner, "tools": tools, "is_personal": client.is_personal}
    await JSONResponse(told)(scope, receive, send)


def guarded(**values: object) -> TestClient:
    settings = settings_of(**values)
    return TestClient(Guard(who, lambda: settings, NoPrograms))


def test_without_a_token_in_the_settings_nothing_is_there() -> None:
    for method in ("GET", "POST", "OPTIONS", "DELETE"):
        answer = guarded().request(method, "/v1/models", headers={"Authorization": f"Bearer {CANARY}"})
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "unknown_url"


def test_a_request_is_that_of_its_tokens_program() -> None:
    client = guarded(chat_api_tokens=LISTED, chat_api_personal="editor")
    for sent, told in (
        (f"Bearer {CANARY}", {"name": "editor", "owner": "kim", "tools": ["recall"], "is_personal": True}),
        (f"bearer  {OTHER} ", {"name": "script", "owner": "lee", "tools": None, "is_personal": False}),
    ):
        assert client.post("/", headers={"Authorization": sent}).json() == told


def test_any_other_header_is_no_token() -> None:
    client, token = guarded(chat_api_tokens=LISTED), CANARY.encode()
    wrong = [b"", b"Bearer", b"Bearer ", token, b"Basic " + token, b"Bearer " + token[:-1], b"Bearer " + token + b"x"]
    wrong += [b"Bearer " + token.upper(), b"Bearer " + token + b"\xff\xed\x95\x9c"]
    for sent in ([], *([value] for value in wrong), [b"Bearer " + token] * 2, [b"Bearer " + token, b""]):
        answer = client.get("/v1/models", headers=[(b"Authorization", value) for value in sent])
        assert answer.status_code == 401, sent
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["x-request-id"]
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert "canary" not in answer.text.lower()
    for url in (f"/v1/models?api_key={CANARY}", f"/v1/models?access_token={CANARY}", f"/v1/{CANARY}"):
        assert client.get(url).status_code == 401


@given(st.lists(st.binary(max_size=40), max_size=3))
def test_no_bytes_but_the_token_are_one(sent: list[bytes]) -> None:
    clients = ApiClients(settings_of(chat_api_tokens=LISTED).api_tokens, NoPrograms)
    assert clients.find(sent) is None


class Answering:
    """Routes whose answers wait until they may end; those of `quick` addresses don't."""

    def __init__(self, quick: str = "") -> None:
        self.ended = asyncio.Event()
        self.guard = Guard(self.answer, lambda: settings_of(chat_api_tokens=LISTED), NoPrograms)
        self._quick = quick
        self._waiting = asyncio.Semaphore(0)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._waiting.release()
        if scope["path"] != self._quick:
            await self.ended.wait()
        await JSONResponse({})(scope, receive, send)

    async def begin(self, *request: str) -> asyncio.Task[Message]:
        """Sends a request and returns once it is being answered."""
        task = asyncio.create_task(status(self.guard, *request))
        assert await self._is_let_in(task), task.result()
        return task

    async def refuse(self, *request: str) -> Message:
        """Sends a request that isn't answered by the routes and returns the start of its answer."""
        task = asyncio.create_task(status(self.guard, *request))
        assert not await self._is_let_in(task), "it is being answered"
        return task.result()

    async def _is_let_in(self, task: asyncio.Task[Message]) -> bool:
        """Whether a request comes to the routes before it has its answer; waits for either."""
        answering = asyncio.create_task(self._waiting.acquire())
        await asyncio.wait({task, answering}, return_when=asyncio.FIRST_COMPLETED)
        is_let_in = answering.done()
        answering.cancel()
        return is_let_in


def test_a_program_has_so_many_answers_under_way_and_others_are_not_held_up() -> None:
    async def crowd() -> None:
        answering = Answering()
        waiting = [await answering.begin("POST", CANARY) for _ in range(OPEN_ANSWERS)]
        refused = await answering.refuse("POST", CANARY)
        assert refused["status"] == 429
        assert dict(refused["headers"])[b"retry-after"] == b"5"
        others = [await answering.begin(*other) for other in (("GET", CANARY), ("POST", OTHER))]
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        again = await answering.begin("POST", CANARY)
        answering.ended.set()
        assert [(await task)["status"] for task in (*waiting[1:], *others, again)] == [200] * (OPEN_ANSWERS + 2)

    asyncio.run(crowd())


def test_a_program_that_has_so_many_can_still_stop_one_but_follow_none() -> None:
    async def crowd() -> None:
        answering = Answering(quick="/sessions/s1/stop")
        following = ("GET", CANARY, "/chat/s1/events")
        waiting = [await answering.begin(*following) for _ in range(OPEN_ANSWERS)]
        assert (await answering.refuse(*following))["status"] == 429
        assert (await answering.refuse("POST", CANARY, "/chat"))["status"] == 429
        assert (await status(answering.guard, "POST", CANARY, "/sessions/s1/stop"))["status"] == 200
        answering.ended.set()
        assert [(await task)["status"] for task in waiting] == [200] * OPEN_ANSWERS

    asyncio.run(crowd())


def test_a_token_that_an_owner_made_lets_its_program_in_without_any_in_the_settings() -> None:
    made = OneProgram(ApiToken("notes", "kim", SecretStr(MADE), frozenset(), is_personal=True))
    client = TestClient(Guard(who, settings_of, lambda: made))
    answer = client.get("/v1/models", headers={"Authorization": f"Bearer {MADE}"})
    assert answer.json() == {"name": "notes", "owner": "kim", "tools": [], "is_personal": True}
    assert client.get("/v1/models").status_code == 401


async def status(guard: Guard, method: str, token: str, path: str = "/") -> Message:
    """Sends one request and returns the start of its answer."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": headers}
    await guard(scope, receive, send)
    return sent[0]
