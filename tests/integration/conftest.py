from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from graph.model.factory import ChatModels, open_models
from graph.service import ChatService, open_service
from graph.settings import Settings
from tests.fake.chat import Chat
from tests.fake.compacting import read_file, with_true_usage
from tests.fake.model_caller import Caller
from tests.fake.model_caller import settings_of as caller_settings
from tests.fake.openai_server import FakeOpenAI
from tests.fake.store import lay_empty_database

MakeSettings = Callable[..., Settings]


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as opened:
        yield opened


@pytest.fixture
def make_settings(tmp_path: Path, server: FakeOpenAI) -> MakeSettings:
    def make(**changes: object) -> Settings:
        values: dict[str, object] = {
            "openai_base_url": server.url,
            "openai_api_key": "sk-scripted-key-of-the-tests",
            "chat_model": "scripted-model",
            "turnfold_data_dir": tmp_path / "data",
            "model_window_tokens": 100_000,
            "model_attempts": 1,
            "model_deadline_seconds": 20,
            "fold_wait_seconds": 5,
        }
        if "turnfold_data_dir" not in changes:
            lay_empty_database(tmp_path / "data")
        return Settings(_env_file=None, **{**values, **changes})  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values

    return make


@pytest.fixture
def service(make_settings: MakeSettings) -> Iterator[ChatService]:
    with open_service(make_settings()) as opened:
        yield opened


@pytest.fixture
def chat(service: ChatService) -> Chat:
    return Chat(service)


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


Start = Callable[..., Chat]


@pytest.fixture
def start(make_settings: MakeSettings, server: FakeOpenAI) -> Iterator[Start]:
    """Opens a service with these settings and begins a session; the server reports the true numbers of tokens."""
    server.respond_with(with_true_usage)
    with ExitStack() as stack:

        def begin(*, file_tool: bool = False, **changes: object) -> Chat:
            values = {"context_strategy": "compaction", "max_context_tokens": 2_000, **changes}
            given = {"tools": lambda _: [read_file()]} if file_tool else {}
            return Chat(stack.enter_context(open_service(make_settings(**values), **given)))  # type: ignore[arg-type]  # a subset of its arguments

        yield begin
