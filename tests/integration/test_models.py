from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graph.model.catalog import Catalog, guess_window_tokens
from graph.model.factory import ChatModels, open_models
from graph.model_error import DeadlineError, ProviderError, UnreachableError
from graph.settings import Settings
from graph.view import ModelOption
from tests.fake.openai_reply import Body, Reply, failure, hang
from tests.fake.openai_server import FakeOpenAI

TALK: list[AnyMessage] = [
    HumanMessage("배포는 10월 14일이고 담당은 민지야. 롤백 기준도 정해 줘."),
    AIMessage("롤백 기준은 오류율 2 퍼센트로 하겠습니다. 배포는 10월 14일에 민지 님이 맡습니다."),
] * 3


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(models=["b-model", "a-model", "text-embedding-3-small"]) as server:
        yield server


def settings_of(**values: object) -> Settings:
    given: Mapping[str, Any] = {"openai_api_key": None, "openai_base_url": None, "chat_model": None, **values}
    return Settings(_env_file=None, **given)  # type: ignore[call-arg]  # the base class's own argument


def test_offline_there_is_one_model_whatever_name_is_asked_for() -> None:
    with open_models(settings_of(chat_summary_model="gpt-4o")) as models:
        assert models.options() == (ModelOption("offline-mini", is_offline=True),)
        assert models.default_name == models.resolve("gpt-4o") == "offline-mini"
        assert models.chat("gpt-4o") is models.chat("")
        assert models.window_tokens("gpt-4o") == 8_192
        assert models.summariser("gpt-4o").name == "extractive"


def test_opening_and_naming_sends_nothing(server: FakeOpenAI) -> None:
    with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
        assert models.default_name == "m"
        assert models.chat("m") is models.chat("")
    assert server.model_list_count == 0
    assert server.exchanges == []


def test_a_key_alone_means_the_usual_model() -> None:
    with open_models(settings_of(openai_api_key="sk-x")) as models:
        assert models.default_name == "gpt-4o-mini"
        assert models.window_tokens("gpt-4o-mini") == 128_000


def test_an_address_alone_means_the_first_model_that_it_lists(server: FakeOpenAI) -> None:
    with open_models(settings_of(openai_base_url=server.url)) as models:
        assert models.default_name == "b-model"
        assert [option.name for option in models.options()] == ["b-model", "a-model"]
        assert models.resolve("offline-mini") == "b-model"
    assert server.model_list_count == 1


def test_with_key_and_address_the_usual_model_is_taken_where_it_is_listed(server: FakeOpenAI) -> None:
    with open_models(settings_of(openai_base_url=server.url, openai_api_key="k")) as models:
        assert models.default_name == "b-model"
    server.models.append("gpt-4o-mini")
    with open_models(settings_of(openai_base_url=server.url, openai_api_key="k")) as models:
        assert models.default_name == "gpt-4o-mini"


def test_a_local_server_needs_no_key(server: FakeOpenAI) -> None:
    with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
        assert ask(models, "m") != ""
    assert server.exchanges[0].headers["authorization"].startswith("Bearer ")


def ask(models: ChatModels, name: str) -> str:
    answer = models.caller.call(
        models.chat(name), [HumanMessage("q")], stop=threading.Event(), deadline_seconds=10, attempts=1
    )
    return str(answer.message.content)


def test_other_variables_of_the_client_change_nothing(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
        assert ask(models, "m") != ""


def test_two_services_of_one_process_do_not_share_connections(server: FakeOpenAI) -> None:
    for _ in range(3):
        with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
            assert ask(models, "m") != ""


@pytest.mark.parametrize("reply", [failure(500), failure(404), failure(401)])
def test_an_endpoint_that_lists_nothing_leaves_the_configured_model(server: FakeOpenAI, reply: Reply) -> None:
    server.model_list_reply = reply
    with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
        assert models.options() == (ModelOption("m", is_offline=False),)
        assert models.window_tokens("gpt-4o") == 128_000


def test_a_list_that_hangs_is_given_up(server: FakeOpenAI) -> None:
    server.model_list_reply = hang()
    with open_models(settings_of(openai_base_url=server.url)) as models:
        assert models.default_name == ""
        assert models.options() == ()
        with pytest.raises(DeadlineError):
            models.chat("")
    assert server.model_list_count == 1


def test_an_unreachable_endpoint_is_told_when_a_model_is_needed() -> None:
    with FakeOpenAI() as gone:
        url = gone.url
    with open_models(settings_of(openai_base_url=url)) as models:
        assert models.default_name == ""
        with pytest.raises(UnreachableError):
            models.chat("")


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "m", "context_length": 4_096},
        {"id": "m", "max_model_len": 4_096},
        {"id": "m", "context_window": 4_096},
        {"id": "m", "max_context_length": 4_096},
    ],
)
def test_the_window_is_read_from_the_list(server: FakeOpenAI, entry: Body) -> None:
    server.models[:] = [entry, {"id": "odd", "context_length": "much"}, {"no": "id"}]
    with open_models(settings_of(openai_base_url=server.url)) as models:
        assert models.window_tokens("m") == 4_096
        assert models.window_tokens("odd") == 8_192
    with open_models(settings_of(openai_base_url=server.url, model_window_tokens=9_000)) as models:
        assert models.window_tokens("m") == 9_000


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("gpt-5", 272_000), ("gpt-5-mini", 272_000), ("gpt-5-2025-08-07", 272_000), ("gpt-4.1", 1_047_576),
        ("gpt-4o-2024-08-06", 128_000), ("openai/gpt-4o", 128_000), ("OpenAI/GPT-4o-mini-2024-07-18", 128_000),
        ("chatgpt-4o-latest", 128_000), ("ft:gpt-4o-mini-2024-07-18:acme::abc123", 128_000), ("o3-mini", 200_000),
        ("gpt-3.5-turbo", 16_385), ("gpt-3.5-turbo-0125", 16_385), ("gpt-4-0613", 8_192), ("gpt-image-1", 8_192),
        ("claude-sonnet-4", 8_192), ("llama3.2:3b", 8_192), ("Qwen/Qwen2.5-7B", 8_192), ("unheard-of", 8_192),
        ("", 8_192),
    ],
)  # fmt: skip
def test_the_window_is_that_of_langchains_own_profile(name: str, tokens: int) -> None:
    assert guess_window_tokens(name) == tokens


def test_a_profile_is_the_librarys_and_no_table_of_ours() -> None:
    model = ChatOpenAI(model="gpt-5", api_key=SecretStr("none"))
    assert model.profile is not None
    assert guess_window_tokens("gpt-5") == model.profile["max_input_tokens"]


def test_nothing_of_the_environment_is_needed_or_read_for_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_PROXY", "no proxy at all")
    assert guess_window_tokens("gpt-4.1-nano-2025-04-14") == 1_047_576


def test_the_list_is_kept_for_five_minutes_and_outlives_a_failure() -> None:
    clock = Clock()
    fetch = Fetch([{"id": "one"}])
    catalog = Catalog(fetch, clock=clock)
    assert names(catalog) == ["one"]
    fetch.items = [{"id": "two"}]
    clock.seconds = 299
    assert names(catalog) == ["one"]
    assert fetch.count == 1
    clock.seconds = 301
    # Nobody waits for a renewal.
    assert names(catalog) in (["one"], ["two"])
    wait_for_fetch()
    assert names(catalog) == ["two"]
    fetch.is_failing = True
    clock.seconds = 700
    assert names(catalog) == ["two"]
    wait_for_fetch()
    fetch.is_failing = False
    fetch.items = [{"id": "three"}]
    clock.seconds = 729
    assert names(catalog) == ["two"]
    wait_for_fetch()
    assert fetch.count == 3
    clock.seconds = 731
    names(catalog)
    wait_for_fetch()
    assert names(catalog) == ["three"]
    assert fetch.count == 4


def wait_for_fetch() -> None:
    for thread in threading.enumerate():
        if thread.name == "model-list":
            thread.join(10)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Fetch:
    """A list that the test changes."""

    def __init__(self, items: list[Mapping[str, Any]]) -> None:
        self.items = items
        self.is_failing = False
        self.count = 0

    def __call__(self) -> list[Mapping[str, Any]]:
        self.count += 1
        if self.is_failing:
            raise ProviderError
        return self.items


def names(catalog: Catalog) -> list[str]:
    return [entry.name for entry in catalog.entries()]
