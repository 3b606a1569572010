from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.token import estimate_tokens
from graph.error import DeadlineError, TurnStoppedSignal
from graph.model.factory import ChatModels, open_models
from graph.model.summariser import ModelSummariser, SummaryDraft
from graph.settings import Settings
from tests.fake.openai_reply import hang, text
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


@pytest.fixture
def models(server: FakeOpenAI) -> Iterator[ChatModels]:
    with open_models(settings_of(openai_base_url=server.url, chat_model="m")) as models:
        yield models


def summarise(models: ChatModels, **changes: object) -> SummaryDraft:
    given: dict[str, Any] = {"stop": threading.Event(), "deadline_seconds": 10, **changes}
    return models.summariser("m").summarise(TALK, 90, **given)


def test_a_summary_is_asked_for_in_one_user_message(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(text("  배포는 10월 14일, 담당은 민지.\n"), kind="summary")
    draft = summarise(models)
    assert draft == SummaryDraft("배포는 10월 14일, 담당은 민지.", 100, 20, is_usage=True)
    (body,) = server.bodies("summary")
    (message,) = body["messages"]
    assert message["role"] == "user"
    assert "약 90자" in message["content"]
    assert "롤백 기준은 오류율" in message["content"]
    assert "(한국어)" in message["content"]
    assert "temperature" not in body


def test_without_usage_the_cost_is_estimated(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(text("짧은 요약입니다.", usage=None), kind="summary")
    draft = summarise(models)
    prompt = server.bodies("summary")[0]["messages"][0]["content"]
    assert draft == SummaryDraft(
        "짧은 요약입니다.", estimate_tokens(prompt), estimate_tokens("짧은 요약입니다."), is_usage=False
    )


def test_a_summary_that_stopped_at_the_length_limit_is_known_as_such_and_ends_whole(
    server: FakeOpenAI, models: ChatModels
) -> None:
    server.script(text("배포는 10월 14일입니다. 담당은 민지이고 롤백 기", finish_reason="length"), kind="summary")
    draft = summarise(models)
    assert (draft.text, draft.is_cut) == ("배포는 10월 14일입니다.", True)


def test_a_tagged_summary_that_is_whole_is_not_cut_by_what_is_said_behind_it(
    server: FakeOpenAI, models: ChatModels
) -> None:
    server.script(text("<summary>배포는 10월 14일</summary> 그리고 더", finish_reason="length"), kind="summary")
    draft = summarise(models, style="structured")
    assert (draft.text, draft.is_cut) == ("배포는 10월 14일", False)


def test_no_more_than_six_thousand_characters_are_asked_for_over_all_parts(
    server: FakeOpenAI, models: ChatModels
) -> None:
    summariser = ModelSummariser(models.chat("m"), models.caller, "m", attempts=1, window_tokens=4_000)
    long: list[AnyMessage] = [HumanMessage("배포 날짜를 정합니다. " * 600)]
    summariser.summarise(long, 9_900, stop=threading.Event(), deadline_seconds=60)
    prompts = [body["messages"][0]["content"] for body in server.bodies("summary")]
    assert len(prompts) > 1
    assert 5_900 <= sum(int(prompt.split("약 ")[1].split("자")[0]) for prompt in prompts) <= 6_000


def test_feedback_goes_into_the_prompt(server: FakeOpenAI, models: ChatModels) -> None:
    summarise(models, feedback="The last answer was 40 % too long.")
    assert "40 % too long" in server.bodies("summary")[0]["messages"][0]["content"]


def test_the_default_responder_writes_summaries_near_the_target(models: ChatModels) -> None:
    assert 0.6 * 90 <= len(summarise(models).text) <= 1.25 * 90


def test_a_summary_ends_with_stop(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(hang(is_silent=True), kind="summary")
    stop = threading.Event()

    def press() -> None:
        server.wait_until(lambda s: s.open_count == 1)
        stop.set()

    threading.Thread(target=press).start()
    with pytest.raises(TurnStoppedSignal):
        summarise(models, stop=stop, deadline_seconds=60)
    server.wait_until(lambda s: s.open_count == 0)
    assert server.exchanges[0].is_closed_early


def test_a_summary_has_one_deadline_for_all_its_parts(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(hang("half"), kind="summary")
    with pytest.raises(DeadlineError):
        summarise(models, deadline_seconds=0.4)


def test_a_source_larger_than_the_window_is_condensed_in_parts(server: FakeOpenAI, models: ChatModels) -> None:
    words = " ".join(f"w{number}" for number in range(4_000))
    arguments = {"text": " ".join(f"a{number}" for number in range(2_000))}
    messages: list[AnyMessage] = [
        HumanMessage("first words"),
        AIMessage("", tool_calls=[{"name": "f", "args": arguments, "id": "c"}]),
        ToolMessage(words, tool_call_id="c"),
        AIMessage("last words"),
    ]
    summariser = ModelSummariser(models.chat("m"), models.caller, "m", attempts=1, window_tokens=4_000)
    stop = threading.Event()
    draft = summariser.summarise(messages, 1_000, stop=stop, deadline_seconds=60)
    prompts = [body["messages"][0]["content"] for body in server.bodies("summary")]
    assert len(prompts) > 3
    assert all(estimate_tokens(prompt) <= 4_000 for prompt in prompts)
    sent = " ".join(prompts)
    for piece in ("first words", "last words", *words.split(), *arguments["text"].split()):
        assert piece in sent
    assert draft.text.count("\n") >= len(prompts) - 1
    targets = [int(prompt.split("약 ")[1].split("자")[0]) for prompt in prompts]
    assert 900 <= sum(targets) <= 1_000
    assert draft.is_usage


def test_the_summary_model_may_be_another(server: FakeOpenAI) -> None:
    settings = settings_of(openai_base_url=server.url, chat_model="big", chat_summary_model="small")
    with open_models(settings) as models:
        summariser = models.summariser("big")
        summariser.summarise(TALK, 90, stop=threading.Event(), deadline_seconds=10)
        assert summariser.name == "small"
    assert server.bodies("summary")[0]["model"] == "small"
