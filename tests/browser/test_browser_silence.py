"""Answers and thoughts that take longer than the longest silence: whole on the page, and for a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import openai
import pytest
from playwright.sync_api import Browser, expect

from component.words.wording import words_of
from tests.browser.conftest import scripted_settings, started, visiting
from tests.fake.openai_reply import Reply, chunk, split_words, text, thinking
from tests.fake.openai_server import FakeOpenAI

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

TOKEN: Final = "token-of-a-program-0123456789"  # noqa: S105  # of this server alone
# 120 s of silence are 1.5 s here, and the 150 s of a stream 4 s.
SILENCE_SECONDS: Final = 1.5
PAUSE_SECONDS: Final = 0.1
WORDS: Final = " ".join(f"w{number}" for number in range(40))
THOUGHT: Final = " ".join(f"t{number}" for number in range(35))
ANSWER: Final = "The port is 9090."
SLOW: Final = {
    "words": (text(*split_words(WORDS), pause_seconds=PAUSE_SECONDS), WORDS, ""),
    "thoughts beside the text": (
        thinking("reasoning_content", THOUGHT, ANSWER, most=40, pause_seconds=PAUSE_SECONDS),
        ANSWER,
        THOUGHT,
    ),
    "thoughts within the text": (
        thinking("tags", THOUGHT, ANSWER, most=45, pause_seconds=PAUSE_SECONDS),
        ANSWER,
        THOUGHT,
    ),
    "pings": (
        Reply(
            events=(*[": ping\n\n"] * 35, *(f"data: {event}\n\n" for event in text(ANSWER).events)),
            frame="{}",
            pause_seconds=PAUSE_SECONDS,
        ),
        ANSWER,
        "",
    ),
}


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory, endpoint: FakeOpenAI) -> Iterator[str]:
    settings = {"MODEL_SILENCE_SECONDS": str(SILENCE_SECONDS), "CHAT_API_TOKENS": f"editor:local:{TOKEN}"}
    with started(tmp_path_factory.mktemp("impatient"), {**scripted_settings(endpoint), **settings}) as url:
        yield url


@pytest.mark.parametrize("kind", SLOW)
def test_slow_answer_stands_whole_on_the_page(
    chromium: Browser, impatient: str, fake_openai: FakeOpenAI, kind: str
) -> None:
    reply, answer, thought = SLOW[kind]
    asked = f"What takes so long: {kind}?"
    assert len(reply.events) * PAUSE_SECONDS > 2 * SILENCE_SECONDS
    fake_openai.script(reply, to=asked)
    with visiting(chromium, impatient) as visitor:
        visitor.open().write(asked)
        visitor.wait_for_end(1)
        expect(visitor.turn(1)).to_contain_text(answer)
        expect(visitor.find("retry")).to_have_count(0)
        line = visitor.turn(1).locator("[data-testid='stExpander']")
        expect(line).to_have_count(1 if thought else 0)
        if thought:
            expect(visitor.turn(1)).not_to_contain_text(thought)
            expect(line.locator("summary")).to_contain_text(words_of("ko").thought.split("{seconds}")[1])
            line.locator("summary").click()
            expect(line).to_contain_text(thought)


def test_silent_answer_ends_as_one_that_is_silent(chromium: Browser, impatient: str, fake_openai: FakeOpenAI) -> None:
    asked = "What never comes?"
    fake_openai.script(Reply(events=(chunk({"role": "assistant", "content": "Half"}),), ending="hang"), to=asked)
    with visiting(chromium, impatient) as visitor:
        visitor.open().write(asked)
        visitor.wait_for_end(1)
        expect(visitor.find("retry")).to_have_count(1)


@pytest.mark.parametrize("kind", SLOW)
@pytest.mark.parametrize("is_streamed", [True, False])
def test_slow_answer_is_whole_for_a_program(
    impatient: str, fake_openai: FakeOpenAI, kind: str, *, is_streamed: bool
) -> None:
    reply, answer, thought = SLOW[kind]
    asked = f"What takes a program so long: {kind}, {is_streamed}?"
    fake_openai.script(reply, to=asked)
    client = openai.OpenAI(base_url=f"{impatient}/v1", api_key=TOKEN, max_retries=0, timeout=60)
    sent: dict[str, Any] = {"model": "turnfold", "messages": [{"role": "user", "content": asked}]}
    if is_streamed:
        chunks = [part.model_dump() for part in client.chat.completions.create(**sent, stream=True)]
        choices = [part["choices"][0] for part in chunks if part["choices"]]
        said = "".join(choice["delta"].get("content") or "" for choice in choices)
        thoughts = "".join(choice["delta"].get("reasoning_content") or "" for choice in choices)
        reason = choices[-1]["finish_reason"]
    else:
        whole = client.chat.completions.create(**sent).model_dump()["choices"][0]
        said, thoughts = whole["message"]["content"], whole["message"].get("reasoning_content", "")
        reason = whole["finish_reason"]
    assert (said.strip(), thoughts.strip(), reason) == (answer, thought, "stop")
