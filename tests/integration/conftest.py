from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from pydantic import SecretStr

from graph.model.factory import ChatModels, open_models
from graph.service import ChatService
from graph.store.database import Database
from tests.fake.caching import CachingResponder
from tests.fake.chat import Chat
from tests.fake.compacting import with_true_usage
from tests.fake.context_source import ScriptedContext
from tests.fake.model_caller import Caller
from tests.fake.model_caller import settings_of as caller_settings
from tests.fake.open_chat import MakeSettings, OpenChat, chat_opener, settings_maker
from tests.fake.openai_server import FakeOpenAI
from tests.fake.postgres import PostgresServer
from tests.fake.rooted import Rooted, wait_for_notes
from tests.fake.store import MovableClock, StoreSet, empty, open_database, open_store_set, stores_over

OpenedDatabase = tuple[Database, MovableClock, Path, SecretStr | None]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out a file whose tests are all slow: what they try is drawn while they are collected, for seconds."""
    is_left_out = collection_path.name == "test_api_schema.py" and config.option.markexpr == "not slow"
    return True if is_left_out else None


@pytest.fixture
def server(endpoint: FakeOpenAI) -> Iterator[FakeOpenAI]:
    with endpoint.lent(is_alone=True) as lent:
        yield lent


@pytest.fixture(scope="module")
def opened_databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., OpenedDatabase]]:
    """Opens a database of either engine once, for all tests of the module."""
    with ExitStack() as stack:

        @cache
        def opened(server: PostgresServer | None = None, template: str = "") -> OpenedDatabase:
            folder, url = tmp_path_factory.mktemp("stores"), None
            if server is not None:
                url = SecretStr(server.make_database(template))
                stack.callback(server.drop_database, url.get_secret_value())
            return *stack.enter_context(open_database(folder, url)), folder, url

        yield opened


@pytest.fixture
def stores(
    opened_databases: Callable[..., OpenedDatabase], engine: str, request: pytest.FixtureRequest
) -> Iterator[StoreSet]:
    """Stores over an empty database, which is the module's: what isn't rows stays behind the test."""
    names = ("postgres", "postgres_template") if engine == "postgres" else ()
    opened = opened_databases(*(request.getfixturevalue(name) for name in names))
    empty(opened[0])
    with stores_over(*opened) as stores:
        yield stores


@pytest.fixture
def own_stores(tmp_path: Path, database_url: SecretStr | None) -> Iterator[StoreSet]:
    """Stores over a database of the test's own."""
    with open_store_set(tmp_path, database_url) as opened:
        yield opened


@pytest.fixture
def make_settings(tmp_path: Path, server: FakeOpenAI, database_url: SecretStr | None) -> MakeSettings:
    return settings_maker(tmp_path / "data", server.url, database_url)


@pytest.fixture
def open_chat(make_settings: MakeSettings) -> Iterator[OpenChat]:
    with chat_opener(make_settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def module_service(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("module") / "data", endpoint.url)) as opened:
        yield opened().service


@pytest.fixture
def chat(module_service: ChatService, server: FakeOpenAI) -> Iterator[Chat]:
    chat = Chat(module_service)
    yield chat
    server.end_hanging(for_good=True)
    chat.wait_for_folds()


@pytest.fixture(scope="module")
def module_services(
    endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., ChatService]]:
    services: dict[str, ChatService] = {}
    with ExitStack() as stack:

        def service_with(**settings: object) -> ChatService:
            key = repr(sorted(settings.items()))
            if key not in services:
                maker = settings_maker(tmp_path_factory.mktemp("module") / "data", endpoint.url)
                services[key] = stack.enter_context(chat_opener(maker))(**settings).service
            return services[key]

        yield service_with


@pytest.fixture
def chat_with(module_services: Callable[..., ChatService], server: FakeOpenAI) -> Iterator[OpenChat]:
    """Makes a new session of the module's service that has these settings; it is opened once for each set."""
    made: list[Chat] = []

    def make(**settings: object) -> Chat:
        made.append(Chat(module_services(**settings)))
        return made[-1]

    yield make
    server.end_hanging(for_good=True)
    for chat in made:
        chat.wait_for_folds()


@pytest.fixture
def service(chat: Chat) -> ChatService:
    return chat.service


@pytest.fixture
def true_usage(server: FakeOpenAI) -> None:
    server.respond_with(with_true_usage)


@pytest.fixture
def cached(server: FakeOpenAI) -> FakeOpenAI:
    server.respond_with(CachingResponder())
    return server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def endpoint_models(endpoint: FakeOpenAI) -> Iterator[ChatModels]:
    with open_models(caller_settings(endpoint)) as models:
        yield models


@pytest.fixture
def call(endpoint: FakeOpenAI, endpoint_models: ChatModels) -> Iterator[Caller]:
    # Words of its own: a request of an earlier test that is still on its way is none of this one's.
    question = f"question {uuid.uuid4().hex}"
    with endpoint.lent(to=question):
        yield Caller(endpoint, endpoint_models, question)


@pytest.fixture
def rooted(tmp_path: Path, open_chat: OpenChat) -> Rooted:
    return Rooted(tmp_path, open_chat)


@pytest.fixture(scope="module")
def project_service(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    folder = tmp_path_factory.mktemp("projects")
    with chat_opener(settings_maker(folder / "data", endpoint.url)) as opened:
        yield opened(project_roots=(folder / "roots",)).service


@pytest.fixture
def project_folder(
    request: pytest.FixtureRequest, project_service: ChatService, open_chat: OpenChat, server: FakeOpenAI
) -> Iterator[Rooted]:
    """A folder of this test's own, which the one service of its module may use."""
    (roots,) = project_service.settings.project_roots
    yield Rooted(roots / hashlib.sha256(request.node.name.encode()).hexdigest()[:8], open_chat, project_service)
    server.end_hanging(for_good=True)
    wait_for_notes(Chat(project_service))


@pytest.fixture
def source() -> ScriptedContext:
    return ScriptedContext()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "가게"
    folder.mkdir(parents=True)
    return folder
