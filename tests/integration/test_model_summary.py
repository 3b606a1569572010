from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.fold_spec import Asked
from graph.core.review import Flaw
from graph.core.token import estimate_tokens
from graph.error import TurnStoppedSignal
from graph.model.factory import ChatModels, open_models
from graph.model.summariser import ModelSummariser, SummaryDraft
from graph.model_error import DeadlineError
from graph.settings import Settings
from prompt.summary import summary_generator
from tests.fake.body import content_of, roles
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


def test_a_summary_is_asked_for_by_rules_and_material(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(text("  배포는 10월 14일, 담당은 민지.\n"), kind="summary")
    draft = summarise(models, asked=Asked(before="그 전의 요약", turns=(4, 4, 5, 5, 6, 6)))
    assert draft == SummaryDraft("배포는 10월 14일, 담당은 민지.", 100, 20, is_usage=True)
    (body,) = server.bodies("summary")
    assert roles(body) == ["system", "user"]
    rules, material = (content_of(message) for message in body["messages"])
    assert rules == summary_generator.get_rules("ko")
    assert material.startswith('<before>\n그 전의 요약\n</before>\n<source>\n<m turn="4" from="user">배포는')
    assert material.endswith("많아도 112자. 넘치면 6, 5, 4번부터 덜고 1, 2, 3번은 빼지 마세요.")
    assert "롤백 기준은 오류율" in material
    assert "temperature" not in body


def test_a_session_in_english_is_asked_in_english(server: FakeOpenAI, models: ChatModels) -> None:
    talk: list[AnyMessage] = [HumanMessage("When do we deploy and who does it?"), AIMessage("Minji, on 14 October.")]
    models.summariser("m").summarise(talk, 90, asked=Asked(language="en"), stop=threading.Event(), deadline_seconds=10)
    prompt = "\n".join(content_of(message) for message in server.bodies("summary")[0]["messages"])
    assert "In the language of the user's own messages, about 76 characters, 112 characters at most." in prompt
    assert not re.search("[가-힣]", prompt)


def test_without_usage_the_cost_is_estimated(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(text("짧은 요약입니다.", usage=None), kind="summary")
    draft = summarise(models)
    asked = sum(estimate_tokens(content_of(message)) for message in server.bodies("summary")[0]["messages"])
    assert draft == SummaryDraft("짧은 요약입니다.", asked, estimate_tokens("짧은 요약입니다."), is_usage=False)


def test_a_summary_that_stopped_at_the_length_limit_is_known_as_such(server: FakeOpenAI, models: ChatModels) -> None:
    said = "배포는 10월 14일입니다. 담당은 민지이고 롤백 기"
    server.script(text(said, finish_reason="length"), kind="summary")
    draft = summarise(models)
    assert (draft.text, draft.is_cut) == (said, True)


def test_what_stands_around_a_summary_is_cleaned_away(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(text("<think>\nhm\n</think>\n\n**요약:** 배포는 10월 14일.\n\n(총 612자)"), kind="summary")
    assert summarise(models).text == "배포는 10월 14일."


def test_tags_in_the_models_thoughts_are_none_of_its_answer(server: FakeOpenAI, models: ChatModels) -> None:
    said = "<think>I write <summary>...</summary> then.</think>\n<summary>\n배포는 10월 14일.\n</summary>"
    server.script(text(said), kind="summary")
    assert summarise(models, asked=Asked("structured")).text == "배포는 10월 14일."


@pytest.mark.parametrize("words", ["", " \n", "<think>only thoughts"])
def test_an_empty_answer_is_an_empty_draft(server: FakeOpenAI, models: ChatModels, words: str) -> None:
    server.script(text(words), kind="summary")
    draft = summarise(models)
    assert draft.text == ""
    assert draft.input_tokens > 0


def test_a_tagged_summary_that_is_whole_is_not_cut_by_what_is_said_behind_it(
    server: FakeOpenAI, models: ChatModels
) -> None:
    server.script(text("<summary>배포는 10월 14일</summary> 그리고 더", finish_reason="length"), kind="summary")
    draft = summarise(models, asked=Asked("structured"))
    assert (draft.text, draft.is_cut) == ("배포는 10월 14일", False)


def test_no_more_than_six_thousand_characters_are_asked_for_over_all_parts(
    server: FakeOpenAI, models: ChatModels
) -> None:
    summariser = ModelSummariser(models.chat("m"), models.caller, "m", attempts=1, window_tokens=4_000)
    long: list[AnyMessage] = [HumanMessage("배포 날짜를 정합니다. " * 600)]
    summariser.summarise(long, 9_900, stop=threading.Event(), deadline_seconds=60)
    prompts = [content_of(body["messages"][1]) for body in server.bodies("summary")]
    assert len(prompts) > 1
    aims = [int(prompt.rsplit("공백 포함 ", 1)[1].split("자")[0]) for prompt in prompts]
    assert 5_000 <= sum(aims) <= 5_100
    assert all("\n</before>\n<source>" in prompt for prompt in prompts[1:])


def test_what_is_wrong_is_said_behind_the_draft(server: FakeOpenAI, models: ChatModels) -> None:
    first = summarise(models)
    summarise(models, flawed=(first, Flaw("long", missing=("K7QX2M",))))
    before, after = (body["messages"] for body in server.bodies("summary"))
    assert after[:2] == before
    assert [message["role"] for message in after[2:]] == ["assistant", "user"]
    assert content_of(after[2]) == first.text
    assert content_of(after[3]).endswith("빠진 것: K7QX2M.")


def test_each_part_of_a_large_source_is_mended_behind_its_own_draft(server: FakeOpenAI, models: ChatModels) -> None:
    summariser = ModelSummariser(models.chat("m"), models.caller, "m", attempts=1, window_tokens=4_000)
    long: list[AnyMessage] = [HumanMessage("배포 날짜를 정합니다. " * 600)]
    first = summariser.summarise(long, 3_000, stop=threading.Event(), deadline_seconds=60)
    parts = len(server.bodies("summary"))
    assert parts == len(first.parts) > 1
    summariser.summarise(long, 3_000, flawed=(first, Flaw("short")), stop=threading.Event(), deadline_seconds=60)
    bodies = server.bodies("summary")
    for place, part in enumerate(first.parts):
        before, after = bodies[place]["messages"], bodies[parts + place]["messages"]
        assert after[: len(before)] == before
        assert content_of(after[2]) == part


def test_the_answers_limit_leaves_room_for_a_reasoning_models_thoughts(server: FakeOpenAI, models: ChatModels) -> None:
    summarise(models, asked=Asked("rolling", answer_tokens=1_024))
    summarise(models)
    limits = [body.get("max_tokens", body.get("max_completion_tokens")) for body in server.bodies("summary")]
    assert limits == [4_096, None]


def test_the_default_responder_writes_summaries_near_the_target(models: ChatModels) -> None:
    assert 0.6 * 90 <= len(summarise(models).text) <= 1.25 * 90


def test_a_summary_ends_with_stop(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(hang(is_silent=True), kind="summary")
    stop = threading.Event()

    def press() -> None:
        server.wait_until(lambda s: s.hanging_count == 1)
        stop.set()

    threading.Thread(target=press).start()
    with pytest.raises(TurnStoppedSignal):
        summarise(models, stop=stop, deadline_seconds=60)
    server.wait_until(lambda s: s.open_count == 0)
    assert server.exchanges[0].is_closed_early


def test_a_summary_has_one_deadline_for_all_its_parts(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(hang("half"), kind="summary")
    with pytest.raises(DeadlineError):
        summarise(models, deadline_seconds=2)


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
    draft = summariser.summarise(messages, 1_000, asked=Asked(language="en"), stop=stop, deadline_seconds=60)
    prompts = ["\n".join(content_of(message) for message in body["messages"]) for body in server.bodies("summary")]
    assert len(prompts) > 3
    assert all(estimate_tokens(prompt) <= 4_000 for prompt in prompts)
    sent = " ".join(prompts)
    for piece in ("first words", "last words", *words.split(), *arguments["text"].split()):
        assert piece in sent
    assert draft.text.count("\n") >= len(prompts) - 1
    aims = [int(prompt.rsplit("about ", 1)[1].split()[0]) for prompt in prompts]
    assert 800 <= sum(aims) <= 850
    assert draft.is_usage


def test_the_summary_model_may_be_another(server: FakeOpenAI) -> None:
    settings = settings_of(openai_base_url=server.url, chat_model="big", chat_summary_model="small")
    with open_models(settings) as models:
        summariser = models.summariser("big")
        summariser.summarise(TALK, 90, stop=threading.Event(), deadline_seconds=10)
        assert summariser.name == "small"
    assert server.bodies("summary")[0]["model"] == "small"
