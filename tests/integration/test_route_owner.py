from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest

from api.program_routes import OPERATIONS
from api.route_table import Operation
from tests.fake.chat import Chat, question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import withdrawn
from tests.fake.served_programs import STRANGER, ServedPrograms

TABLES = ("session", "turn", "message", "record", "context_reset", "model_call", "context_block", "anchor", "lease")
MESSAGES = [{"role": "user", "content": question(9)}]
# How a request names the session, where its path doesn't.
NAMED_BESIDE_THE_PATH: dict[str, Any] = {
    "createChatCompletion": lambda session_id: {
        "json": {"model": "turnfold", "messages": MESSAGES},
        "headers": {"X-Turnfold-Session": session_id},
    },
    "sendMessage": lambda session_id: {"json": {"message": question(9), "session_id": session_id}},
}
# What is sent besides.
BODIES: dict[str, Any] = {
    "changeSession": {"title": "내 것", "compression_rate": 0.5},
    "updateContext": {"currentFile": "a.py"},
    "restoreContext": {"record_id": "rec-1"},
}
# These name no session; what they tell of sessions is checked below.
OF_NO_SESSION = {"listModels", "getModel", "summarize", "listSessions", "getDocument", "getDocs"}


class Owners(NamedTuple):
    """`chat` has four turns, and is that of the first program's owner."""

    chat: Chat
    own: httpx2.Client
    stranger: httpx2.Client


@pytest.fixture(scope="module")
def owners(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owners]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("owners"), endpoint.url)) as open_chat:
        chat = open_chat()
        chat.ask(1, 4)
        with ServedPrograms(chat.service) as served, served.client() as own, served.client(STRANGER) as stranger:
            yield Owners(chat, own, stranger)


def rows(chat: Chat) -> dict[str, list[Any]]:
    return {table: chat.rows(f"SELECT * FROM {table}") for table in TABLES}  # noqa: S608  # names of our own


def asked(client: httpx2.Client, operation: Operation, session_id: str) -> tuple[int, str]:
    """Asks for the operation on this session; returns the status and what is said, without the session's name."""
    path = operation.path.format(session_id=session_id, turn="1", model_id="turnfold")
    sent = NAMED_BESIDE_THE_PATH.get(operation.name, lambda _: {"json": BODIES.get(operation.name)})(session_id)
    answer = client.request(operation.method, path, **sent)
    return answer.status_code, answer.text.replace(session_id, "<session>")


def of_a_session() -> list[Operation]:
    return [operation for operation in OPERATIONS if operation.name not in OF_NO_SESSION]


def test_every_operation_that_takes_a_session_is_asked_for_one() -> None:
    for operation in of_a_session():
        assert "{session_id}" in operation.path or operation.name in NAMED_BESIDE_THE_PATH


@pytest.mark.parametrize("whose", ["own", "other's", "unknown"])
@pytest.mark.parametrize("operation", of_a_session(), ids=lambda operation: operation.name)
def test_only_an_owners_own_session_is_answered_for(owners: Owners, operation: Operation, whose: str) -> None:
    before = rows(owners.chat)
    if whose == "own":
        mine = Chat(owners.chat.service)
        mine.ask(1, 1)
        status, text = asked(owners.own, operation, mine.session_id)
        assert (status, "(<session>)" in text) != (404, True)
        if operation.method == "GET":
            assert status in (200, 204)
        mine.wait_for_folds()
        owners.own.delete(f"/sessions/{mine.session_id}")
        return
    unknown = asked(owners.own, operation, "no-such-session")
    named = owners.chat.session_id if whose == "other's" else "no-such-session"
    foreign = asked(owners.stranger, operation, named)
    assert foreign == unknown
    assert foreign[0] == 404
    assert question(1) not in foreign[1]
    assert rows(owners.chat) == before


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.needs_token], ids=lambda operation: operation.name
)
def test_a_withdrawn_owners_token_is_answered_like_one_of_nobody(owners: Owners, operation: Operation) -> None:
    before = rows(owners.chat)
    with withdrawn(owners.chat.service, "stranger"):
        refused = asked(owners.stranger, operation, owners.chat.session_id)
    nobody = {"Authorization": "Bearer token-of-nobody-0123456789"}
    path = operation.path.format(session_id=owners.chat.session_id, turn="1", model_id="turnfold")
    answer = owners.own.request(operation.method, path, headers=nobody)
    assert refused == (answer.status_code, answer.text)
    assert refused[0] == 401
    assert rows(owners.chat) == before


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("token", ["", "Bearer", "token-of-nobody-0123456789"])
def test_nothing_is_told_without_a_token(owners: Owners, operation: Operation, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}" if token else ""}
    path = operation.path.format(session_id=owners.chat.session_id, turn="1", model_id="turnfold")
    answer = owners.own.request(operation.method, path, headers=headers)
    if operation.needs_token:
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    else:
        assert answer.status_code == 200
        assert owners.chat.session_id not in answer.text


def test_each_owner_lists_what_is_his(owners: Owners) -> None:
    for search in ("", "김민수"):
        assert owners.stranger.get("/sessions", params={"search": search}).json() == {"sessions": [], "next": None}
        (item,) = owners.own.get("/sessions", params={"search": search}).json()["sessions"]
        assert item["session_id"] == owners.chat.session_id
