from __future__ import annotations

from collections.abc import Callable

import pytest

from graph.event import FoldWaiting, TurnFinished
from graph.strategy.base import Limits
from tests.fake.body import raw_turns, summaries, tokens_of
from tests.fake.caching import all_tokens
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI

SENTENCE = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 3일까지 검토합니다. "
ANSWER = (SENTENCE * 30)[:1_200]
UNKNOWN_WINDOW = 8_192


def answers(usage_factor: float = 0, chars: int = 1_200) -> Callable[[Body], Reply]:
    """Answers of so many characters; the usage reported is so many times our estimate, none at all for 0."""

    def reply(body: Body) -> Reply:
        if kind_of(body) == "summary":
            return answer_body(body)
        sent = round(tokens_of(body) * usage_factor)
        usage = {"prompt_tokens": sent, "completion_tokens": 900, "total_tokens": sent + 900}
        return text(ANSWER[:chars], usage=usage if usage_factor else None)

    return reply


def talk(chat: Chat, turns: int, *, times: int = 1) -> int:
    """Has that many turns, each with its question so many times; returns how many of them waited for a fold."""
    waited = 0
    for number in range(1, turns + 1):
        events = chat.say(question(number) * times)
        assert isinstance(events[-1], TurnFinished), events[-1]
        waited += any(isinstance(event, FoldWaiting) for event in events)
        chat.wait_for_folds()
    return waited


def test_in_an_unknown_window_the_seeds_table_holds_with_merged_records(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(answers())
    chat = open_chat(model_window_tokens=UNKNOWN_WINDOW)
    waited = talk(chat, 50)
    for turn, body in enumerate(server.bodies("chat"), start=1):
        covered = (turn - 1) // 3 * 3
        told = summaries(body)
        assert raw_turns(body) == list(range(covered + 1, turn + 1))
        assert [number for first, last in told for number in range(first, last + 1)] == list(range(1, covered + 1))
        assert tokens_of(body) < 0.75 * UNKNOWN_WINDOW
    assert waited == 0
    kinds = chat.rows("SELECT DISTINCT kind FROM record WHERE adopted_at IS NOT NULL ORDER BY kind")
    assert kinds == [("interval",), ("merge",)]
    assert summaries(server.bodies("chat")[-1])[-1] == (46, 48)
    levels = chat.rows("SELECT max(level) FROM record")
    assert levels[0][0] <= 4


def test_compaction_in_an_unknown_window_keeps_the_last_four_messages(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.respond_with(answers())
    chat = open_chat(model_window_tokens=UNKNOWN_WINDOW, context_strategy="compaction")
    talk(chat, 24)
    records = chat.rows("SELECT kind, context_messages_after FROM record WHERE adopted_at IS NOT NULL")
    assert len(records) >= 3
    assert set(records) == {("compaction", 5)}
    assert max(tokens_of(body) for body in server.bodies("chat")) < 0.75 * UNKNOWN_WINDOW
    kept = [sum(message["role"] == "assistant" for message in body["messages"]) for body in server.bodies("chat")]
    assert min(kept[2:]) == 2


@pytest.mark.parametrize("strategy", ["interval", "rolling", "compaction", "window"])
def test_the_limit_holds_in_the_providers_own_count(open_chat: OpenChat, server: FakeOpenAI, strategy: str) -> None:
    server.respond_with(answers(usage_factor=2))
    chat = open_chat(
        model_window_tokens=UNKNOWN_WINDOW,
        context_strategy=strategy,
        window_turns=100,
        rolling_sends_unsummarised=True,
    )
    talk(chat, 15)
    counted = [2 * tokens_of(body) for body in server.bodies("chat")]
    assert max(counted) < 0.75 * UNKNOWN_WINDOW
    assert max(counted) > 0.5 * UNKNOWN_WINDOW


@pytest.mark.parametrize("asked", [question(1) * 2, "When does the server move, and who is in charge of it? " * 4])
def test_the_reserve_holds_the_prompt_the_tools_and_a_question(
    open_chat: OpenChat, server: FakeOpenAI, asked: str
) -> None:
    open_chat().say(asked)
    (body,) = server.bodies("chat")
    assert len(body["tools"]) == 4
    input_tokens = 3_000
    room_tokens = Limits().within(input_tokens).room_tokens
    assert room_tokens is not None
    assert max(tokens_of(body), all_tokens(body)) <= input_tokens - room_tokens


@pytest.mark.parametrize(("strategy", "window_tokens"), [("interval", 3_500), ("compaction", 4_096)])
def test_in_a_small_window_no_turn_waits_for_room(
    open_chat: OpenChat, server: FakeOpenAI, strategy: str, window_tokens: int
) -> None:
    server.respond_with(answers(chars=300))
    chat = open_chat(model_window_tokens=window_tokens, context_strategy=strategy)
    assert talk(chat, 30, times=2) == 0
    assert max(tokens_of(body) for body in server.bodies("chat")) < 0.75 * window_tokens


@pytest.mark.parametrize(("sentences", "has_memory"), [(26, True), (34, True), (42, False)])
def test_a_large_open_turn_leaves_the_memory_what_is_left_and_no_more(
    open_chat: OpenChat,
    server: FakeOpenAI,
    sentences: int,
    has_memory: bool,  # noqa: FBT001 - from the parameters
) -> None:
    server.respond_with(answers())
    chat = open_chat(model_window_tokens=3_000)
    talk(chat, 6)
    chat.say(SENTENCE * sentences)
    body = server.bodies("chat")[-1]
    assert tokens_of(body) < 0.75 * 3_000
    assert bool(summaries(body)) is has_memory
    assert chat.rows("SELECT sent_tokens FROM model_call ORDER BY turn DESC LIMIT 1") == [(tokens_of(body),)]
