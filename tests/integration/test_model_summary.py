from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.text import estimate_tokens
from graph.fold.review import Flaw
from graph.fold.spec import PromptStyle, fold_of_messages
from graph.model.factory import ChatModels, open_models
from graph.model.summariser import ModelSummariser, SummaryDraft
from graph.server.settings import Settings
from graph.value.error import DeadlineError, TurnStoppedSignal
from prompt.summary import summary_generator
from tests.fake.body import content_of, roles
from tests.fake.openai_reply import hang, text
from tests.fake.openai_server import FakeOpenAI

TALK: list[AnyMessage] = [
    HumanMessage("배포는 10월 14일이고 담당은 민지야. 롤백 기준도 정해 줘."),
    AIMessage("롤백 기준은 오류율 2 퍼센트로 하겠습니다. 배포는 10월 14일에 민지 님이 맡습니다."),
] * 3
LONG: list[AnyMessage] = [HumanMessage("배포 날짜를 정합니다. " * 600)]


def settings_of(**values: object) -> Settings:
    given: Mapping[str, Any] = {"openai_api_key": None, "openai_base_url": None, "chat_model": None, **values}
    return Settings(_env_file=None, **given)  # type: ignore[call-arg]  # the base class's own argument


@pytest.fixture(scope="module")
def models(endpoint: FakeOpenAI) -> Iterator[ChatModels]:
    with open_models(settings_of(openai_base_url=endpoint.url, chat_model="m", chat_summary_model="small")) as models:
        yield models


def summarise(
    models: ChatModels,
    *,
    stop: threading.Event | None = None,
    seconds: float = 10,
    **changes: Any,  # noqa: ANN401  # the fields of the fold
) -> SummaryDraft:
    spec = replace(fold_of_messages(TALK, 90), **changes)
    stop = stop or threading.Event()
    return models.summariser("m").summarise(TALK, 90, spec=spec, stop=stop, deadline_seconds=seconds)


def in_parts(models: ChatModels, messages: list[AnyMessage], target: int, **changes: Any) -> SummaryDraft:  # noqa: ANN401  # the summariser's own
    summariser = ModelSummariser(models.chat("m"), models.caller, "m", attempts=1, window_tokens=4_000)
    return summariser.summarise(messages, target, stop=threading.Event(), deadline_seconds=60, **changes)


def prompts(server: FakeOpenAI) -> list[str]:
    return ["\n".join(content_of(message) for message in body["messages"]) for body in server.bodies("summary")]


def test_a_summary_is_asked_for_by_rules_and_material(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(text("  배포는 10월 14일, 담당은 민지.\n"), kind="summary")
    draft = summarise(models, before="그 전의 요약", message_turns=(4, 4, 5, 5, 6, 6))
    assert draft == SummaryDraft("배포는 10월 14일, 담당은 민지.", 100, 20, is_usage=True)
    (body,) = server.bodies("summary")
    assert (body["model"], models.summariser("m").name) == ("small", "small")
    assert roles(body) == ["system", "user"]
    rules, material = (content_of(message) for message in body["messages"])
    assert rules == summary_generator.get_rules("ko")
    assert material.startswith('<before>\n그 전의 요약\n</before>\n<source>\n<m turn="4" from="user">배포는')
    assert material.endswith("많아도 112자. 넘치면 5, 4, 3번 순으로 덜고 1, 2번과 질문은 남기세요.")
    assert "롤백 기준은 오류율" in material
    assert "temperature" not in body


def test_a_session_in_english_is_asked_in_english(server: FakeOpenAI, models: ChatModels) -> None:
    talk: list[AnyMessage] = [HumanMessage("When do we deploy and who does it?"), AIMessage("Minji, on 14 October.")]
    models.summariser("m").summarise(
        talk, 90, spec=fold_of_messages(talk, 90, language="en"), stop=threading.Event(), deadline_seconds=10
    )
    (prompt,) = prompts(server)
    assert "In English, about 76 characters, 112 characters at most." in prompt
    assert "Code in use: up to 10 lines." in prompt
    assert not re.search("[가-힣]", prompt)


def test_without_usage_the_cost_is_estimated(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(text("짧은 요약입니다.", usage=None), kind="summary")
    draft = summarise(models)
    asked = sum(estimate_tokens(content_of(message)) for message in server.bodies("summary")[0]["messages"])
    assert draft == SummaryDraft("짧은 요약입니다.", asked, estimate_tokens("짧은 요약입니다."), is_usage=False)


THOUGHTS = "<think>I write <summary>...</summary>.</think>\n<summary>\n배포.\n</summary>"


@pytest.mark.parametrize(
    ("said", "finish_reason", "style", "draft", "is_cut"),
    [
        ("배포는 10월 14일입니다. 롤백 기", "length", "plain", "배포는 10월 14일입니다. 롤백 기", True),
        ("<summary>배포는 10월 14일</summary> 그리고 더", "length", "structured", "배포는 10월 14일", False),
        ("<think>\nhm\n</think>\n\n**요약:** 배포는 내일.\n\n(총 612자)", "stop", "plain", "배포는 내일.", False),
        (THOUGHTS, "stop", "structured", "배포.", False),
        ("<think>only thoughts", "stop", "plain", "", False),
        (" \n", "stop", "plain", "", False),
    ],
    ids=["cut", "cut behind its tags", "wrapped", "tags in thoughts", "thoughts alone", "blank"],
)
def test_a_draft_is_what_the_answer_says_of_the_chat_and_knows_whether_it_was_cut(
    server: FakeOpenAI,
    models: ChatModels,
    said: str,
    finish_reason: str,
    style: PromptStyle,
    draft: str,
    *,
    is_cut: bool,
) -> None:
    server.script(text(said, finish_reason=finish_reason), kind="summary")
    made = summarise(models, style=style)
    assert (made.text, made.is_cut) == (draft, is_cut)
    assert made.input_tokens > 0


def test_a_source_larger_than_the_window_is_condensed_in_parts(server: FakeOpenAI, models: ChatModels) -> None:
    words = " ".join(f"w{number}" for number in range(4_000))
    arguments = {"text": " ".join(f"a{number}" for number in range(2_000))}
    messages: list[AnyMessage] = [
        HumanMessage("first words"),
        AIMessage("", tool_calls=[{"name": "f", "args": arguments, "id": "c"}]),
        ToolMessage(words, tool_call_id="c"),
        AIMessage("last words"),
    ]
    draft = in_parts(models, messages, 1_000, spec=fold_of_messages(messages, 1_000, language="en"))
    asked = prompts(server)
    assert len(asked) > 3
    assert all(estimate_tokens(prompt) <= 4_000 for prompt in asked)
    sent = set(re.findall(r"\w+", " ".join(asked)))
    assert {"first", "last", *words.split(), *arguments["text"].split()} <= sent
    assert draft.text.count("\n") >= len(asked) - 1
    assert 800 <= sum(int(prompt.rsplit("about ", 1)[1].split()[0]) for prompt in asked) <= 850
    assert draft.is_usage


def test_no_more_than_six_thousand_characters_are_asked_for_over_all_parts(
    server: FakeOpenAI, models: ChatModels
) -> None:
    in_parts(models, LONG, 9_900)
    asked = prompts(server)
    assert len(asked) > 1
    assert 5_000 <= sum(int(prompt.rsplit("공백 포함 ", 1)[1].split("자")[0]) for prompt in asked) <= 5_100
    assert all("\n</before>\n<source>" in prompt for prompt in asked[1:])


def test_each_part_of_a_large_source_is_mended_behind_its_own_draft(server: FakeOpenAI, models: ChatModels) -> None:
    first = in_parts(models, LONG, 3_000)
    parts = len(server.bodies("summary"))
    assert parts == len(first.parts) > 1
    in_parts(models, LONG, 3_000, flawed=(first, Flaw("short", missing=("K7QX2M",))))
    bodies = server.bodies("summary")
    for index, part in enumerate(first.parts):
        before, after = bodies[index]["messages"], bodies[parts + index]["messages"]
        assert after[: len(before)] == before
        assert roles({"messages": after[2:]}) == ["assistant", "user"]
        assert content_of(after[2]) == part


def test_a_summary_ends_with_stop_and_at_its_deadline(server: FakeOpenAI, models: ChatModels) -> None:
    server.script(hang(is_silent=True), hang("half"), kind="summary")
    stop = threading.Event()

    def press() -> None:
        server.wait_until(lambda s: s.hanging_count == 1)
        stop.set()

    threading.Thread(target=press).start()
    with pytest.raises(TurnStoppedSignal):
        summarise(models, stop=stop, seconds=60)
    server.wait_until(lambda s: s.open_count == 0)
    assert server.exchanges[0].is_closed_early
    with pytest.raises(DeadlineError):
        summarise(models, seconds=1)
