from __future__ import annotations

import pytest

from tests.fake.body import content_of, shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import split_facts

WORDS = "서버 이전은 김민수가 맡아 10월에 하기로 했습니다. "
HOLLOW = {
    "zero width": "\u200b\u200b\u200b",
    "full stop": ".",
    "heading": "요약",
    "refusal": "죄송하지만 그 요청은 도와드릴 수 없습니다.",
}


@pytest.mark.parametrize("words", HOLLOW.values(), ids=HOLLOW.keys())
def test_a_summary_that_holds_nothing_takes_no_turns_place(chat: Chat, server: FakeOpenAI, words: str) -> None:
    chat.ask(1, 3)
    server.script(text(words), text(words), kind="summary")
    chat.ask(4, 7)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5, 6, 7]
    assert chat.covered == [(1, 2, 3)]
    ((code,),) = chat.rows("SELECT error_code FROM record WHERE status = 'FAILED'")
    assert code in {"summary_short", "summary_empty"}
    chat.ask(8, 8)
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_a_summary_cut_by_the_providers_limit_is_asked_for_again(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text((WORDS * 12)[:-10], finish_reason="length"), kind="summary")
    chat.ask(1, 4)
    assert "길이 한도에서 끊겼습니다" in content_of(server.bodies("summary")[1]["messages"][-1])
    assert [record.outcome for record in chat.service.folds.records(chat.session_id)] == ["compressed"]


def test_a_rolling_summary_cut_by_its_limit_ends_with_a_whole_sentence_and_is_marked(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    cut = text((WORDS * 12)[:-10], finish_reason="length")
    server.script(cut, cut, kind="summary")
    chat = open_chat(context_strategy="rolling", app_context_threshold=500)
    chat.ask(1, 1)
    while not chat.covered:
        chat.ask(len(chat.turns) + 1, len(chat.turns) + 1)
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.outcome == "shortened"
    assert split_facts(record.summary)[0] == (WORDS * 11).strip()
    assert server.bodies("summary")[0]["max_completion_tokens"] == 4 * 1_024


def test_a_big_block_is_summarised_once(chat: Chat, server: FakeOpenAI) -> None:
    part = "서버를 옮기는 날은 10월 14일이고 담당은 김민수입니다. 빠진 점이 있는지 설명해 주세요. "
    for number in (1, 2, 3):
        chat.say(f"{question(number)} " + (part * 250)[:11_000])
    chat.wait_for_folds()
    chat.say(question(4))
    (record,) = chat.service.folds.records(chat.session_id)
    assert record.target_chars == int(record.original_chars * 0.3) > 9_900
    assert 5_000 < record.summary_chars <= 6_000
    assert record.outcome == "compressed"
    assert len(server.bodies("summary")) == 1
