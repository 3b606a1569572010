"""Text that some databases refuse, wherever it comes from, is stored as plain text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from langchain_core.tools import StructuredTool
from pydantic import SecretStr
from sqlalchemy import inspect, select

from graph.core.text import plain_text
from graph.node.recovery import config_of
from graph.server.settings import Settings
from graph.service import ChatService
from graph.store.archive import Archive
from graph.store.database import Database, utc_now
from graph.store.schema import METADATA
from graph.store.stores import open_database
from graph.store.transfer import import_lines
from graph.value.client import ClientMessage
from graph.value.error import InputError
from graph.value.event import TurnFinished
from tests.fake.chat import Chat
from tests.fake.drawn import at_most
from tests.fake.open_chat import chat_opener, settings_maker
from tests.fake.openai_reply import Reply, ScriptedCall, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.postgres import PostgresServer
from tests.fake.resending import Program
from tests.fake.served_programs import ServedPrograms
from tests.fake.store import lay_empty_database

DRAWN = settings(max_examples=at_most(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
# What no database takes stands beside what only looks dangerous.
HOSTILE_TEXTS = st.text(
    st.sampled_from("\x00\ud83d\ude00\udc00\udfff")
    | st.sampled_from("가각 a\"'\\%_\u202e\ufeff😀\n")
    | st.characters(),
    max_size=30,
)
MakeDatabase = Callable[[], SecretStr | None]
NUL_AND_HALVES = "\x00 \ud83d \ude00\ud83d\ude00"


def rows_of(database: Database) -> list[tuple[Any, ...]]:
    """Every row of every table."""
    with database.read() as connection:
        there = set(inspect(connection).get_table_names())
        tables = [table for table in METADATA.sorted_tables if table.name in there]
        return [tuple(row) for table in tables for row in connection.execute(select(table))]


def stored_values(service: ChatService) -> list[Any]:
    """Every row, and the state of every session."""
    stores = service._engine.stores.chat  # noqa: SLF001  # nobody but a test has to know
    with stores.checkpoints.saver() as saver:
        retained = [saver.get_tuple(config_of(session.session_id)) for session in service.sessions.list()]
    return [*rows_of(stores.database), *(found.checkpoint["channel_values"] for found in retained if found is not None)]


def unplain(value: Any) -> Iterator[str]:  # noqa: ANN401  # of any shape
    """The texts within a value that have NUL or half a character."""
    if isinstance(value, BaseMessage):
        value = value.model_dump()
    if isinstance(value, str):
        if value != plain_text(value):
            yield value
    elif isinstance(value, Mapping):
        yield from unplain([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from unplain(part)


class EchoTool:
    """A tool whose next result a test says, and what it was asked last."""

    def __init__(self) -> None:
        self.result = ""
        self.asked = ""

    def look_up(self, words: str) -> str:
        self.asked = words
        return self.result


@pytest.fixture(scope="module")
def echo() -> EchoTool:
    return EchoTool()


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.slow])]
)
def make_database(request: pytest.FixtureRequest) -> MakeDatabase:
    """Returns what makes an empty database and returns its URL, None for a file."""
    if request.param == "sqlite":
        return lambda: None
    postgres: PostgresServer = request.getfixturevalue("postgres")
    template: str = request.getfixturevalue("postgres_template")
    return lambda: SecretStr(postgres.make_database(template))


@pytest.fixture(scope="module")
def chats(
    endpoint: FakeOpenAI, echo: EchoTool, tmp_path_factory: pytest.TempPathFactory, make_database: MakeDatabase
) -> Iterator[Chat]:
    tool = StructuredTool.from_function(echo.look_up, name="look_up", description="Looks it up.")
    make_settings = settings_maker(tmp_path_factory.mktemp("plain") / "data", endpoint.url)
    with chat_opener(make_settings) as open_chat:
        yield open_chat(tools=[tool], turns_per_minute=10_000, chat_database_url=make_database())


def escaped(reply: Reply) -> Reply:
    """The reply with its texts as escapes, as no wire takes half a character."""
    return replace(reply, events=tuple(json.dumps(json.loads(event)) for event in reply.events))


def assert_plain(chat: Chat) -> None:
    assert list(unplain(stored_values(chat.service))) == []


@DRAWN
@given(HOSTILE_TEXTS, HOSTILE_TEXTS, HOSTILE_TEXTS, HOSTILE_TEXTS)
@example(NUL_AND_HALVES, NUL_AND_HALVES, NUL_AND_HALVES, NUL_AND_HALVES)
def test_whatever_user_model_and_tool_say_a_turn_stores_plain_text(
    endpoint: FakeOpenAI, chats: Chat, echo: EchoTool, asked: str, argument: str, found: str, answer: str
) -> None:
    chat = Chat(chats.service)
    echo.result = f"결과 {found}"
    call = ScriptedCall("look_up", json.dumps({"words": f"말 {argument}", argument: argument}), "call-1")
    with endpoint.lent():
        endpoint.script(escaped(tools(call)), escaped(text(f"답 {answer} 끝")), to=plain_text(f"질문 {asked}"))
        assert isinstance(chat.say(f"질문 {asked}")[-1], TurnFinished)
        chat.service.sessions.rename(chat.session_id, f"제목 {asked}")
        assert isinstance(chat.say("다음 질문입니다.")[-1], TurnFinished)
    assert echo.asked == plain_text(f"말 {argument}")
    turn = chat.turns[0]
    assert turn.user_text == plain_text(f"질문 {asked}")
    assert turn.steps[0].result == plain_text(echo.result)
    assert turn.answer_text == plain_text(f"답 {answer} 끝")
    assert_plain(chat)


def test_ids_and_names_that_a_caller_chooses_are_stored_as_plain_text(endpoint: FakeOpenAI, chats: Chat) -> None:
    with endpoint.lent():
        number = chats.service.turns.send(f"s{NUL_AND_HALVES}", "안녕하세요", message_id=f"m{NUL_AND_HALVES}")
        chat = Chat(chats.service, plain_text(f"s{NUL_AND_HALVES}"))
        assert isinstance(chat.events()[-1], TurnFinished)
        again = chats.service.turns.send(f"s{NUL_AND_HALVES}", "안녕하세요", message_id=f"m{NUL_AND_HALVES}")
    assert (number, again, len(chat.turns)) == (1, 1, 1)
    assert_plain(chat)


@DRAWN
@given(HOSTILE_TEXTS, HOSTILE_TEXTS)
@example(NUL_AND_HALVES, NUL_AND_HALVES)
def test_whatever_a_program_sends_is_stored_as_plain_text_and_recognised_again(
    endpoint: FakeOpenAI, chats: Chat, asked: str, answer: str
) -> None:
    program = Program(chats.service, options={"system": f"규칙 {asked}"})
    program.messages.append(ClientMessage("user", f"전에 {asked}"))
    program.messages.append(ClientMessage("assistant", f"답 {answer}"))
    with endpoint.lent():
        first = program.ask(f"질문 {asked}")
        assert program.ask(f"또 {asked}").session_id == first.session_id
    assert_plain(chats)


def test_hostile_text_comes_through_the_door_as_plain_text(endpoint: FakeOpenAI, chats: Chat) -> None:
    message = {"role": "user", "content": f"질문 {NUL_AND_HALVES}"}
    body = {"model": "turnfold", "messages": [message], "user": NUL_AND_HALVES, "metadata": {"a": NUL_AND_HALVES}}
    with endpoint.lent(), ServedPrograms(chats.service) as served, served.client() as client:
        answer = client.post("/v1/chat/completions", content=json.dumps(body).encode())
    assert answer.status_code == 200
    assert_plain(chats)


@pytest.fixture(scope="module")
def exported(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("exported") / "data", endpoint.url)) as open_chat:
        chat = open_chat("exported")
        chat.ask(1, 4)
        return list(chat.service.sessions.export("exported"))


def with_said(line: str, said: str, *, is_escaped: bool) -> str:
    """The line of an export with a text in each column that may have any."""
    entry = json.loads(line)
    row = entry.get("row", {})
    changes = {
        "session": {"title": said, "title_folded": said, "session_id": f"s{said}"},
        "message": {"content": json.dumps(said, ensure_ascii=is_escaped), "session_id": f"s{said}"},
        "turn": {"error_detail": said, "partial_text": said},
        "record": {"summary": said, "kept_facts": json.dumps([said])},
    }
    row.update({"session_id": f"s{said}", **changes.get(entry.get("table"), {})})
    return json.dumps(entry)


@contextmanager
def empty_database(url: SecretStr | None) -> Iterator[Database]:
    with TemporaryDirectory() as folder:
        if url is None:
            lay_empty_database(Path(folder))
        settings = Settings(_env_file=None, turnfold_data_dir=Path(folder), chat_database_url=url)  # type: ignore[call-arg]  # the base class's own argument
        with closing(open_database(settings)) as database:
            yield database


@DRAWN
@given(HOSTILE_TEXTS, st.booleans())
@example(NUL_AND_HALVES, True)  # noqa: FBT003  # as drawn
@example(NUL_AND_HALVES, False)  # noqa: FBT003  # as drawn
def test_an_import_stores_plain_text_whatever_its_lines_say(
    make_database: MakeDatabase,
    exported: list[str],
    said: str,
    is_escaped: bool,  # noqa: FBT001  # drawn
) -> None:
    lines = [exported[0], *(with_said(line, said, is_escaped=is_escaped) for line in exported[1:])]
    with empty_database(make_database()) as database:
        assert import_lines(database, lines, owner="me").session_count == 1
        assert list(unplain(rows_of(database))) == []
        archive = Archive(database, clock=utc_now)
        assert {entry.message.content for entry in archive.live(plain_text(f"s{said}"))} == {plain_text(said)}


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 10**5_000], ids=["over", "under", "endless"])
def test_an_import_refuses_a_number_that_only_some_databases_take(
    make_database: MakeDatabase, exported: list[str], number: int
) -> None:
    message = next(line for line in exported if json.loads(line).get("table") == "message")
    changed = json.loads(message)
    changed["row"]["tokens"] = "NUMBER"
    line = json.dumps(changed).replace('"NUMBER"', str(Decimal(number)))
    lines = [line if each == message else each for each in exported]
    assert refusal(lines, make_database()) == ("not_an_export", str(lines.index(line) + 1))


def test_an_import_refuses_a_line_that_nests_too_deep(make_database: MakeDatabase, exported: list[str]) -> None:
    assert refusal([*exported, "[" * 100_000], make_database()) == ("not_an_export", str(len(exported) + 1))


def refusal(lines: list[str], url: SecretStr | None) -> tuple[str, str]:
    with empty_database(url) as database, pytest.raises(InputError) as caught:
        import_lines(database, lines, owner="me")
    return caught.value.reason, caught.value.detail
