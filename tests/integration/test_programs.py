"""Tokens that owners make on the page: what their programs reach, and how long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.text import plain_text
from graph.service import ChatService
from graph.value.error import InputError
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.served_programs import STRANGER, ServedPrograms

NAME = "편집기"


@pytest.fixture(scope="module")
def served(module_service: ChatService) -> Iterator[ServedPrograms]:
    with ServedPrograms(module_service, tokens="") as programs:
        yield programs


def status(served: ServedPrograms, token: str, path: str = "/sessions") -> int:
    with served.client(token) as client:
        return client.get(path).status_code


def test_the_door_opens_with_the_first_token_and_closes_with_the_last(
    served: ServedPrograms, service: ChatService
) -> None:
    paths = ("/v1/models", "/sessions", "/openapi.json")
    assert [status(served, "", path) for path in paths] == [404, 404, 404]
    made = service.programs.admit(NAME)
    secret = made.secret.get_secret_value()
    assert secret not in f"{made!r} {made}"
    assert [status(served, "", path) for path in paths] == [401, 401, 200]
    assert status(served, secret, "/v1/models") == 200
    service.programs.withdraw(made.shown.id)
    assert [status(served, "", path) for path in paths] == [404, 404, 404]
    with ServedPrograms(service) as with_settings:
        made = service.programs.admit(NAME)
        assert [status(with_settings, token) for token in (made.secret.get_secret_value(), STRANGER)] == [200, 200]
    service.programs.withdraw(made.shown.id)


def test_a_program_works_with_its_owners_sessions_alone_until_its_token_is_withdrawn(
    served: ServedPrograms, chat: Chat
) -> None:
    chat.say(question(1))
    made, foreign = (each.programs.admit(NAME) for each in (chat.service, chat.service.for_owner("second")))
    with served.client(made.secret.get_secret_value()) as client:
        (item,) = client.get("/sessions").json()["sessions"]
        assert item["session_id"] == chat.session_id
        client.post("/chat", json={"message": question(2)})
        assert NAME in {item.client for item in chat.service.sessions.list()}
        assert [program.id for program in chat.service.programs.list()] == [made.shown.id]
        chat.service.programs.withdraw(made.shown.id)
        assert client.get("/sessions").status_code == 401
    with served.client(foreign.secret.get_secret_value()) as client:
        assert client.get("/sessions").json()["sessions"] == []
        assert client.get(f"/sessions/{chat.session_id}").status_code == 404
    chat.service.for_owner("second").programs.withdraw(foreign.shown.id)


def test_a_name_that_cannot_be_seen_or_is_one_of_the_settings_is_refused(open_chat: OpenChat) -> None:
    service = open_chat(chat_api_token="token-of-the-settings-0123").service  # noqa: S106  # of this test
    names = ["", "  ", "a" * 33, "a\nb", "edi\u202etor", "\u3000"]
    for name, reason in (*((name, "bad_program_name") for name in names), ("api", "token_name_taken")):
        with pytest.raises(InputError) as caught:
            service.programs.admit(name)
        assert caught.value.reason == reason
    assert service.programs.list() == ()
    assert service.for_owner("second").programs.admit("api").shown.name == "api"


def test_a_token_is_one_persons_as_it_was_made(open_chat: OpenChat) -> None:
    programs = open_chat().service.programs
    for name, is_personal in (("mine", True), ("ours", False)):
        token = programs.find(programs.admit(name, is_personal=is_personal).secret.get_secret_value())
        assert token is not None
        assert (token.name, token.is_personal) == (name, is_personal)


@given(name=st.text(max_size=40))
def test_a_name_is_listed_as_it_was_given_or_refused(module_service: ChatService, name: str) -> None:
    programs = module_service.programs
    try:
        made = programs.admit(name)
    except InputError as error:
        assert error.reason in ("bad_program_name", "token_name_taken")  # noqa: PT017  # most are refused, some are taken
    else:
        assert made.shown.name == plain_text(name).strip()
        assert made.shown in programs.list()
        programs.withdraw(made.shown.id)
