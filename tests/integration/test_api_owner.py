from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest
from httpx2 import Response
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from api.door import Door
from api.edge import Edge
from api.token_guard import Guard
from graph.service import ChatService
from tests.fake.chat import question
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_server import FakeOpenAI

KIM, LEE = "token-of-kim-0123456789", "token-of-lee-0123456789"
MODELS = {"/models", "/models/", "/models/{model_id:path}"}  # the server's, the same for every owner
ANSWERS = {"/chat/completions", "/chat/completions/"}
# The two ways to name a session, each as (headers, fields of the body).
WAYS: Mapping[str, Callable[[str], tuple[dict[str, str], dict[str, object]]]] = {
    "by the header": lambda session_id: ({"X-Turnfold-Session": session_id}, {}),
    "in the metadata": lambda session_id: ({}, {"metadata": {"turnfold_session": session_id}}),
}


class Served(NamedTuple):
    """A server that lets in a program of kim's and one of lee's; `session_id` is kim's."""

    client: TestClient
    routes: Mount
    service: ChatService
    session_id: str


@pytest.fixture(scope="module")
def served(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    listed = f"editor:kim:{KIM},script:lee:{LEE}"
    with chat_opener(settings_maker(tmp_path_factory.mktemp("door"), endpoint.url)) as open_chat:
        service = open_chat(chat_api_tokens=listed).service
        door = Door(lambda owner: service.for_owner(owner).completions)
        routes = door.routes(Middleware(Edge), Middleware(Guard, lambda: service.settings, lambda: service.programs))
        with TestClient(Starlette(routes=[routes])) as client:
            session_id = ask(client, "/chat/completions", KIM, question(1)).headers["X-Turnfold-Session"]
            yield Served(client, routes, service, session_id)
        door.close()


def ask(client: TestClient, path: str, token: str, text: str, *, way: str = "", session_id: str = "") -> Response:
    headers, fields = WAYS[way](session_id) if way else ({}, {})
    body = {"model": "turnfold", "messages": [{"role": "user", "content": text}], **fields}
    return client.post(f"/v1{path}", headers={"Authorization": f"Bearer {token}", **headers}, json=body)


def test_of_every_route_it_is_said_whether_it_takes_a_session(served: Served) -> None:
    assert {route.path for route in served.routes.routes if isinstance(route, Route)} == MODELS | ANSWERS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", sorted(ANSWERS))
def test_a_session_is_its_owners_alone(served: Served, path: str, way: str) -> None:
    before = served.service.for_owner("kim").turns.transcript(served.session_id, last=100)
    foreign = ask(served.client, path, LEE, question(2), way=way, session_id=served.session_id)
    unknown = ask(served.client, path, LEE, question(2), way=way, session_id="no-such-session")
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (404, "session_not_found")
    assert foreign.text.replace(served.session_id, "no-such-session") == unknown.text
    assert "X-Turnfold-Session" not in foreign.headers
    assert served.service.for_owner("kim").turns.transcript(served.session_id, last=100) == before
    own = ask(served.client, path, KIM, question(3), way=way, session_id=served.session_id)
    assert (own.status_code, own.headers["X-Turnfold-Session"]) == (200, served.session_id)
    assert served.service.for_owner("lee").sessions.list() == ()
    assert served.service.sessions.list() == ()


@pytest.mark.parametrize("path", sorted(MODELS))
def test_models_are_told_to_a_token_alone(served: Served, path: str) -> None:
    address = "/v1" + path.replace("{model_id:path}", "turnfold")
    assert served.client.get(address).status_code == 401
    told = [served.client.get(address, headers={"Authorization": f"Bearer {token}"}) for token in (KIM, LEE)]
    assert [answer.status_code for answer in told] == [200, 200]
    assert told[0].json() == told[1].json()


def test_two_owners_who_say_the_same_share_nothing(served: Served) -> None:
    said = [{"role": "user", "content": question(7)}]
    places = []
    for token in (KIM, LEE):
        answer = served.client.post(
            "/v1/chat/completions",
            headers={"Authorization": f"Bearer {token}"},
            json={"model": "turnfold", "messages": said},
        )
        history = [*said, {"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]}]
        following = served.client.post(
            "/v1/chat/completions",
            headers={"Authorization": f"Bearer {token}"},
            json={"model": "turnfold", "messages": [*history, {"role": "user", "content": question(8)}]},
        )
        assert following.headers["X-Turnfold-Session"] == answer.headers["X-Turnfold-Session"]
        places.append(following.headers["X-Turnfold-Session"])
        assert [item.session_id for item in served.service.for_owner("lee").sessions.list()] == places[1:]
    assert places[0] != places[1]
    for session_id in places[1:]:
        served.service.for_owner("lee").sessions.delete(session_id)
