"""Which models there are: their names, their windows, and the list of the endpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graph.core.turn import EMBEDDED_MODEL
from graph.model import factory
from graph.model.catalog import UNKNOWN_WINDOW_TOKENS, Catalog, window_of_profile
from graph.model.factory import ChatModels, open_models
from graph.server.settings import Settings
from graph.value.error import DeadlineError, ModelError, SettingsError, UnreachableError
from graph.value.event import TokenDelta, TurnFailed, TurnFinished
from graph.value.view import EndpointProblem, ModelOption
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, hang
from tests.fake.openai_server import FakeOpenAI

# The list may take five seconds and is given one; each of these has what is between them on a machine under load.
SOON_SECONDS = 4.5


@pytest.fixture
def listing(server: FakeOpenAI) -> FakeOpenAI:
    server.models = ["b-model", "a-model", "text-embedding-3-small"]
    return server


def settings_of(**values: object) -> Settings:
    given: Mapping[str, Any] = {"openai_api_key": None, "openai_base_url": None, "chat_model": None, **values}
    return Settings(_env_file=None, **given)  # type: ignore[call-arg]  # the base class's own argument


def ask(models: ChatModels, name: str) -> str:
    answer = models.caller.call(
        models.chat(name), [HumanMessage("q")], stop=threading.Event(), deadline_seconds=10, attempts=1
    )
    return str(answer.message.content)


def test_without_an_address_there_is_the_offline_model_or_with_a_key_the_usual_one() -> None:
    with open_models(settings_of(openai_api_key="sk-x")) as models:
        assert (models.default_name, models.window_tokens("gpt-4o-mini")) == ("gpt-4o-mini", 128_000)
    with open_models(settings_of(chat_summary_model="gpt-4o")) as models:
        assert models.options() == (ModelOption("offline-mini", is_offline=True),)
        assert models.default_name == models.resolve("gpt-4o") == "offline-mini"
        assert models.chat("gpt-4o") is models.chat("")
        assert models.window_tokens("gpt-4o") == 8_192
        assert models.summariser("gpt-4o").name == "extractive"


def test_address_alone_means_the_first_model_that_it_lists_and_with_a_key_the_usual_one(listing: FakeOpenAI) -> None:
    with open_models(settings_of(openai_base_url=listing.url)) as models:
        assert models.default_name == "b-model"
        assert [option.name for option in models.options()] == ["b-model", "a-model"]
        assert models.resolve("offline-mini") == "b-model"
    assert listing.model_list_count == 1
    listing.models.append("gpt-4o-mini")
    with open_models(settings_of(openai_base_url=listing.url, openai_api_key="k")) as models:
        assert models.default_name == "gpt-4o-mini"


def test_named_model_needs_no_list_key_or_other_variable(server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/v1")
    with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
        assert models.default_name == "m"
        assert models.chat("m") is models.chat("")
        assert (server.model_list_count, server.exchanges) == (0, [])
        assert ask(models, "m") != ""
    assert server.exchanges[0].headers["authorization"].startswith("Bearer ")
    # Nor are connections shared by two services of one process.
    with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
        assert ask(models, "m") != ""


def test_endpoint_that_lists_nothing_leaves_the_configured_model(server: FakeOpenAI) -> None:
    for status in (500, 404, 401):
        server.model_list_reply = failure(status)
        with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
            assert models.options() == (ModelOption("m", is_offline=False),)
            assert models.window_tokens("gpt-4o") == 128_000


def test_unreachable_endpoint_is_told_when_a_model_is_needed() -> None:
    with FakeOpenAI() as gone:
        url = gone.url
    key = "sk-scripted-key-of-the-tests"
    secret = url.replace("://", f"://user:{key}@") + f"/?key={key}"
    with open_models(settings_of(openai_base_url=secret, openai_api_key=key)) as models:
        models.options()
        assert models.endpoint_problem() == EndpointProblem(url, "unreachable")
        with pytest.raises(UnreachableError) as refused:
            ask(models, "m")
        assert refused.value.detail == url
    with open_models(settings_of(openai_base_url=url)) as models:
        assert models.default_name == ""
        with pytest.raises(UnreachableError):
            models.chat("")


def test_an_endpoint_without_a_list_says_why_and_where_it_was_asked(server: FakeOpenAI) -> None:
    problems = []
    for reply, models_listed in ((failure(401), ["m"]), (None, []), (None, ["m"])):
        server.model_list_reply, server.models = reply, [*models_listed]
        with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
            assert models.endpoint_problem() is None  # nobody has asked yet
            models.options()
            problems.append(models.endpoint_problem())
    assert problems == [
        EndpointProblem(server.url, "authentication"),
        EndpointProblem(server.url, "model_missing"),
        None,
    ]


def test_pictures_are_known_by_the_list_or_a_refusal(server: FakeOpenAI) -> None:
    kinds = {"input_modalities": ["text", "image"]}
    server.models = [{"id": "sees", "architecture": kinds, "supported_parameters": ["tools"]}, "unknown"]
    with open_models(settings_of(openai_base_url=server.url)) as models:
        takes = {option.name: option.takes_images for option in models.options()}
        assert takes == {"sees": True, "unknown": None}
        models.note_no_images("unknown")
        assert {option.name: option.takes_images for option in models.options()}["unknown"] is False


def test_window_is_read_from_the_list(server: FakeOpenAI) -> None:
    keys = ("context_length", "max_model_len", "context_window", "max_context_length")
    server.models = [*({"id": key, key: 4_096} for key in keys), {"id": "odd", "context_length": "much"}, {"no": "id"}]
    with open_models(settings_of(openai_base_url=server.url)) as models:
        assert [models.window_tokens(key) for key in keys] == [4_096] * 4
        assert models.window_tokens("odd") == 8_192
    with open_models(settings_of(openai_base_url=server.url, model_window_tokens=9_000)) as models:
        assert models.window_tokens("context_length") == 9_000


@pytest.mark.parametrize(
    ("says", "model_slots", "has_one_slot"),
    [(4, None, False), (1, None, True), (4, 1, True), (1, 4, False), (None, None, True), ("many", None, True)],
)
def test_slots_are_those_of_the_setting_else_of_the_server_else_of_its_address(
    server: FakeOpenAI, says: object, model_slots: int | None, *, has_one_slot: bool
) -> None:
    said = {} if says is None else {"total_slots": says}
    server.pages = {"/props": {"default_generation_settings": {"n_ctx": 4_096}, **said}}
    with open_models(settings_of(openai_base_url=server.url, model_slots=model_slots)) as models:
        models.options()
        server.wait_until(lambda _: models.reported_window_tokens("scripted-model") == 4_096)
        assert models.has_one_slot is has_one_slot
        assert models.in_place == ("always" if has_one_slot else "auto")
    with open_models(settings_of(openai_base_url=server.url, model_slots=1, fold_in_place="never")) as models:
        assert (models.has_one_slot, models.in_place) == (True, "never")


def test_nothing_is_asked_in_place_offline() -> None:
    with open_models(settings_of(model_slots=1)) as models:
        assert models.in_place == "never"


WINDOWS = {
    "gpt-5": 272_000, "gpt-5-mini": 272_000, "gpt-5-2025-08-07": 272_000, "gpt-4.1": 1_047_576,
    "gpt-4o-2024-08-06": 128_000, "openai/gpt-4o": 128_000, "OpenAI/GPT-4o-mini-2024-07-18": 128_000,
    "chatgpt-4o-latest": 128_000, "ft:gpt-4o-mini-2024-07-18:acme::abc123": 128_000, "o3-mini": 200_000,
    "gpt-3.5-turbo": 16_385, "gpt-3.5-turbo-0125": 16_385, "gpt-4-0613": 8_192, "gpt-image-1": 8_192,
    "claude-sonnet-4": 8_192, "llama3.2:3b": 8_192, "Qwen/Qwen2.5-7B": 8_192, "unheard-of": 8_192, "": 8_192,
}  # fmt: skip


def test_window_is_that_of_langchains_own_profile_whatever_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ChatOpenAI(model="gpt-5", api_key=SecretStr("none"))
    assert model.profile is not None
    assert model.profile["max_input_tokens"] == WINDOWS["gpt-5"]
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_PROXY", "no proxy at all")
    assert {name: window_of_profile(name) or UNKNOWN_WINDOW_TOKENS for name in WINDOWS} == WINDOWS
    assert window_of_profile("gpt-4.1-nano-2025-04-14") == 1_047_576


class Clock:
    """A clock that the test sets."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Fetch:
    """A list that the test changes, and that comes when its gate is open."""

    def __init__(self, *names: str, error: Exception | None = None) -> None:
        self.names: tuple[str, ...] = names
        self.error = error
        self.count = 0
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self) -> list[Mapping[str, Any]]:
        self.count += 1
        assert self.gate.wait(30)
        if self.error is not None:
            raise self.error
        return [{"id": name} for name in self.names]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fetch() -> Iterator[Fetch]:
    opened = Fetch("one", "two")
    yield opened
    opened.gate.set()


def names(catalog: Catalog) -> list[str]:
    return [entry.name for entry in catalog.entries()]


def wait_for_count(fetch: Fetch, count: int) -> None:
    ends_at = time.monotonic() + 10
    while fetch.count < count:
        assert time.monotonic() < ends_at
        time.sleep(0.005)


def wait_for_fetch() -> None:
    for thread in threading.enumerate():
        if thread.name == "model-list":
            thread.join(10)


def test_list_is_kept_for_five_minutes_and_outlives_a_failure(fetch: Fetch, clock: Clock) -> None:
    catalog = Catalog(fetch, clock=clock)
    assert names(catalog) == ["one", "two"]
    fetch.names = ("three",)
    clock.seconds = 299
    assert (names(catalog), fetch.count) == (["one", "two"], 1)
    clock.seconds = 301
    assert names(catalog) in (["one", "two"], ["three"])  # nobody waits for a renewal
    wait_for_fetch()
    assert names(catalog) == ["three"]
    fetch.error = UnreachableError()
    clock.seconds = 700
    assert names(catalog) == ["three"]
    wait_for_fetch()
    fetch.error, fetch.names = None, ("four",)
    clock.seconds = 729
    assert names(catalog) == ["three"]
    wait_for_fetch()
    assert fetch.count == 3
    clock.seconds = 731
    names(catalog)
    wait_for_fetch()
    assert (names(catalog), fetch.count) == (["four"], 4)


def test_one_fetch_serves_all_and_a_renewal_holds_up_nobody(fetch: Fetch, clock: Clock) -> None:
    catalog = Catalog(fetch, clock=clock)
    fetch.gate.clear()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(names, catalog) for _ in range(8)]
        wait_for_count(fetch, 1)
        fetch.gate.set()
        assert [future.result(10) for future in asked] == [["one", "two"]] * 8
    assert fetch.count == 1
    fetch.gate.clear()
    clock.seconds = 301
    # Would either wait, this would never end: nothing lets the list come.
    assert [entry.name for entry in catalog.known()] == names(catalog) == ["one", "two"]
    wait_for_count(fetch, 2)
    assert (names(catalog), fetch.count) == (["one", "two"], 2)


def test_after_a_failure_only_who_needs_the_list_waits_for_the_next(fetch: Fetch, clock: Clock) -> None:
    catalog = Catalog(fetch, clock=clock, first_wait_seconds=60)
    fetch.error = UnreachableError()
    with pytest.raises(UnreachableError):
        catalog.entries()
    fetch.gate.clear()
    fetch.error = None
    with pytest.raises(UnreachableError):
        catalog.entries()
    clock.seconds = 31
    began = time.monotonic()
    assert list(catalog.known()) == []
    assert time.monotonic() - began < 30
    with ThreadPoolExecutor(1) as pool:
        needed = pool.submit(names, catalog)
        wait_for_count(fetch, 2)
        fetch.gate.set()
        assert needed.result(10) == ["one", "two"]


def test_defect_in_reading_the_list_is_told_and_ends_no_thread_for_good(clock: Clock) -> None:
    catalog = Catalog(Fetch(error=RuntimeError()), clock=clock)
    for _ in range(2):
        with pytest.raises(ModelError):
            catalog.entries()
        clock.seconds += 31


def test_list_that_hangs_holds_up_neither_page_nor_turn_nor_the_end(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.model_list_reply = hang()
    with open_chat(model_window_tokens=None) as chat:
        began = time.monotonic()
        assert chat.service.folds.gauge(None).window_tokens == 8_192
        assert [option.name for option in chat.service.sessions.model_options()] == ["scripted-model"]
        chat.start(question(1))
        log = chat.service.turns.follow(chat.session_id, timeout_seconds=30)
        next(event for event in log if isinstance(event, TokenDelta))
        assert time.monotonic() - began < SOON_SECONDS
        assert isinstance(chat.events()[-1], TurnFinished)
        began = time.monotonic()
    assert time.monotonic() - began < SOON_SECONDS


def test_turn_of_an_unknown_model_waits_for_the_list_once(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.model_list_reply = hang()
    service = open_chat(model_window_tokens=None, chat_model=None, openai_api_key=None).service
    began = time.monotonic()
    assert service.sessions.default_model() == ""
    assert time.monotonic() - began < SOON_SECONDS
    chat = Chat(service)
    ending = chat.say(question(1))[-1]
    assert isinstance(ending, TurnFailed)
    assert ending.code == DeadlineError.code
    assert server.model_list_count == 1
    began = time.monotonic()
    assert isinstance(chat.retry()[-1], TurnFailed)
    assert service.sessions.default_model() == ""
    assert time.monotonic() - began < SOON_SECONDS
    assert server.model_list_count == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://user:secret@127.0.0.1:1"),
        ("https_proxy", "ftp://user:secret@127.0.0.1"),
        ("SSL_CERT_FILE", "/not/there.pem"),
        ("SSL_CERT_FILE", __file__),
    ],
)
def test_proxy_or_certificate_that_no_client_can_be_made_with_is_named_at_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    factory._certificates.cache_clear()  # noqa: SLF001  # as in a server that begins
    monkeypatch.setenv(name, value)
    endpoint = settings_of(openai_base_url="http://127.0.0.1:1/v1")
    with pytest.raises(SettingsError, match=name) as caught, open_models(endpoint):
        pass
    assert "secret" not in str(caught.value)
    with open_models(settings_of()) as models:  # the embedded model needs no connection
        assert models.default_name == EMBEDDED_MODEL
