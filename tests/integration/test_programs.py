from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.core.text import plain_text
from graph.error import InputError
from graph.service import ChatService
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.served_programs import STRANGER, ServedPrograms

NAME = "편집기"


class Server(NamedTuple):
    chat: Chat
    programs: ServedPrograms

    def status(self, token: str, path: str = "/sessions") -> int:
        with self.programs.client(token) as client:
            return client.get(path).status_code


@pytest.fixture
def served(open_chat: OpenChat) -> Iterator[Server]:
    chat = open_chat()
    with ServedPrograms(chat.service, tokens="") as programs:
        yield Server(chat, programs)


@pytest.fixture
def served_with_settings(open_chat: OpenChat) -> Iterator[Server]:
    chat = open_chat()
    with ServedPrograms(chat.service) as programs:
        yield Server(chat, programs)


def test_a_program_works_with_its_owners_sessions_until_its_token_is_withdrawn(served: Server) -> None:
    chat = served.chat
    chat.ask(1, 1)
    made = chat.service.programs.admit(NAME)
    with served.programs.client(made.secret.get_secret_value()) as client:
        (item,) = client.get("/sessions").json()["sessions"]
        assert item["session_id"] == chat.session_id
        client.post("/chat", json={"message": question(2)})
        assert NAME in {item.client for item in chat.service.sessions.list()}
        chat.service.programs.withdraw(made.shown.id)
        assert client.get("/sessions").status_code in (401, 404)


def test_a_token_of_another_owner_shows_nothing_of_the_first(served: Server) -> None:
    served.chat.ask(1, 1)
    made = served.chat.service.for_owner("second").programs.admit(NAME)
    with served.programs.client(made.secret.get_secret_value()) as client:
        assert client.get("/sessions").json()["sessions"] == []
        assert client.get(f"/sessions/{served.chat.session_id}").status_code == 404
    assert served.chat.service.programs.list() == ()


def test_the_door_opens_with_the_first_token_and_closes_with_the_last(served: Server) -> None:
    programs = served.chat.service.programs
    paths = ("/v1/models", "/sessions", "/openapi.json", "/docs")
    assert [served.status("", path) for path in paths] == [404, 404, 404, 404]
    made = programs.admit(NAME)
    assert [served.status("", path) for path in paths] == [401, 401, 200, 200]
    assert served.status(made.secret.get_secret_value(), "/v1/models") == 200
    programs.withdraw(made.shown.id)
    assert [served.status("", path) for path in paths] == [404, 404, 404, 404]


def test_tokens_of_the_settings_go_on_to_work_beside_those_of_the_page(served_with_settings: Server) -> None:
    made = served_with_settings.chat.service.programs.admit(NAME)
    tokens = (made.secret.get_secret_value(), STRANGER)
    assert [served_with_settings.status(token) for token in tokens] == [200, 200]


@pytest.mark.parametrize("name", ["", "  ", "a" * 33, "a\nb", "edi\u202etor", "\u3000"])
def test_a_name_that_cannot_be_seen_is_refused(open_chat: OpenChat, name: str) -> None:
    programs = open_chat().service.programs
    with pytest.raises(InputError) as caught:
        programs.admit(name)
    assert caught.value.reason == "bad_program_name"
    assert programs.list() == ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(name=st.text(max_size=40))
def test_a_name_is_listed_as_it_was_given_or_refused(service: ChatService, name: str) -> None:
    try:
        made = service.programs.admit(name)
    except InputError as error:
        assert error.reason in ("bad_program_name", "token_name_taken")  # noqa: PT017  # most are refused, some are taken
    else:
        assert made.shown.name == plain_text(name).strip()
        assert made.shown in service.programs.list()
        service.programs.withdraw(made.shown.id)


def test_a_name_of_the_settings_is_taken(open_chat: OpenChat) -> None:
    programs = open_chat(chat_api_token="token-of-the-settings-0123").service.programs  # noqa: S106  # of this test
    with pytest.raises(InputError) as caught:
        programs.admit("api")
    assert caught.value.reason == "token_name_taken"
    assert open_chat().service.for_owner("second").programs.admit("api").shown.name == "api"


def test_a_made_token_isnt_printed(open_chat: OpenChat) -> None:
    made = open_chat().service.programs.admit(NAME)
    assert made.secret.get_secret_value() not in f"{made!r} {made}"
