from __future__ import annotations

import threading

import pytest

from graph.event import FoldWaiting, TurnFinished
from tests.fake.body import content_of, faults, roles
from tests.fake.chat import Chat, names, question
from tests.fake.compacting import (
    COMPACTING,
    HEADING,
    ask_until_compacted,
    compaction,
    history_tokens,
    with_true_usage,
)
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import split_facts

pytestmark = pytest.mark.usefixtures("true_usage")


def test_checklist_it_starts_by_itself_at_75_percent(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="compaction", max_context_tokens=6_000)
    ask_until_compacted(chat)
    # The summary is asked for when the answer is out: the call before it shows what was said until then.
    before, after = (history_tokens(body) for body in server.bodies("chat")[-2:])
    last_turn = before - history_tokens(server.bodies("chat")[-3])
    assert before + last_turn == pytest.approx(4_500, rel=0.05)
    assert after <= (before + last_turn) / 2


def test_checklist_the_summary_is_made_as_the_seed_asks(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING)
    ask_until_compacted(chat)
    body = server.bodies("summary")[0]
    assert roles(body) == ["system", "user"]
    assert content_of(body["messages"][0]) == "You are a helpful assistant that creates concise summaries."
    prompt = content_of(body["messages"][1])
    assert "**Task Overview**" in prompt
    assert "**Current State**" in prompt
    assert prompt.endswith("characters at most.")
    assert "1000 words" not in prompt
    # The seed's 2,048 tokens bound the summary; a reasoning model's thoughts count as its answer, too.
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 4 * 2_048
    assert compaction(chat).summary_tokens <= 2_048
    assert body["model"] == server.bodies("chat")[0]["model"]
    assert "<summary>" not in compaction(chat).summary


def test_checklist_the_last_four_messages_stay_word_for_word(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING)
    number = ask_until_compacted(chat)
    body = server.bodies("chat")[-1]
    assert roles(body) == ["system", "user", "assistant", "user", "assistant", "user"]
    first, *rest = (content_of(message) for message in body["messages"][1:])
    record = compaction(chat)
    note = f"(위는 1-{record.turns[-1]}턴에 대해 당신이 쓴 요약입니다. 아래가 사용자의 메시지입니다.)"
    assert first == f"{HEADING}\n\n{record.summary}\n\n{note}\n\n---\n\n{question(number - 2)}"
    answers = [turn.answer_text for turn in chat.turns[number - 3 : number - 1]]
    assert rest == [answers[0], question(number - 1), answers[1], question(number)]


def test_checklist_the_chat_goes_on_after_it(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING)
    number = ask_until_compacted(chat)
    chat.ask(number + 1, number + 1)
    assert all(faults(body["messages"]) == [] for body in server.bodies("chat"))


def test_checklist_the_tokens_fall_by_at_least_half_each_time(open_chat: OpenChat) -> None:
    chat = open_chat(**COMPACTING)
    for _ in range(3):
        ask_until_compacted(chat)
        record = compaction(chat)
        assert 0 < record.context_tokens_after <= record.context_tokens / 2


def test_checklist_the_figures_of_a_compaction_are_told(open_chat: OpenChat) -> None:
    chat = open_chat(**COMPACTING)
    number = ask_until_compacted(chat)
    record = compaction(chat)
    assert (record.context_messages, record.context_messages_after) == (2 * (number - 1), 5)
    told = chat.rows("SELECT sum(tokens) FROM message WHERE turn < ?", number)
    kept = chat.rows("SELECT sum(tokens) FROM message WHERE turn BETWEEN ? AND ?", number - 2, number - 1)
    assert record.context_tokens == told[0][0]
    assert record.context_tokens_after == kept[0][0] + record.summary_tokens


def test_the_user_is_told_before_and_after(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING)
    is_waited = threading.Event()
    server.script(lambda body: with_true_usage(body) if is_waited.wait(30) else failure(500), kind="summary")

    def phase() -> str:
        live = chat.service.turns.live(chat.session_id)
        return live.phase if live else "over"

    for number in range(1, 60):
        chat.start(question(number))
        chat.wait_until(lambda: phase() in {"over", "folding"})
        if phase() == "folding":
            break
    is_waited.set()
    events = chat.events()
    assert names(events)[:3] == ["TurnStarted", "FoldWaiting", "Folded"]


def test_checklist_it_comes_again_at_each_75_percent(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING)
    numbers = [ask_until_compacted(chat) for _ in range(3)]
    assert numbers == sorted(set(numbers))
    listed = chat.service.folds.compactions(chat.session_id)
    assert [record.turns[-1] for record in listed] == [number - 3 for number in reversed(numbers)]
    third = content_of(server.bodies("summary")[2]["messages"][1])
    assert listed[1].summary in third
    assert '<m from="previous summary">' in third


def test_an_answer_without_tags_is_taken_whole(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING)
    told = " ".join(f"{n}번은 10월 {n}일에 {n}20만 원." for n in range(1, 6))
    words = " ".join([told, *["서버 이전은 김민수가 맡고 10월에 합니다. 데이터베이스를 먼저 복제합니다."] * 4])
    server.script(text(words), kind="summary")
    ask_until_compacted(chat)
    assert split_facts(compaction(chat).summary)[0] == words


def test_a_summariser_that_fails_leaves_everything_in_and_is_asked_again(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(**COMPACTING)
    server.script(failure(500), failure(500), kind="summary")
    number = ask_until_compacted(chat)
    body = server.bodies("chat")[-2]
    assert all(any(question(n) in content_of(m) for m in body["messages"]) for n in range(1, number))
    assert len(server.bodies("summary")) >= 2


def test_a_summariser_that_hangs_holds_one_turn_and_leaves_no_gap(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**COMPACTING, fold_wait_seconds=0.2, fold_deadline_seconds=30)
    server.script(hang(is_silent=True), kind="summary")
    waited = 0
    for number in range(1, 16):
        events = chat.say(question(number))
        waited += any(isinstance(event, FoldWaiting) for event in events)
        assert isinstance(events[-1], TurnFinished)
    assert waited == 1
    body = server.bodies("chat")[-1]
    assert all(any(question(n) in content_of(m) for m in body["messages"]) for n in range(1, 16))


def total_tokens(chat: Chat) -> int:
    usage = chat.rows("SELECT usage_input_tokens, sent_tokens FROM model_call")
    correction = float(sum(used for used, _ in usage) / sum(sent for _, sent in usage))
    return round(int(chat.rows("SELECT sum(tokens) FROM message")[0][0]) * correction)


@pytest.mark.parametrize(("limit", "notice"), [(20_000, ""), (1_950, "nearly_full"), (1_000, "full")])
def test_switched_off_it_warns_at_80_and_100_percent(
    open_chat: OpenChat, server: FakeOpenAI, *, limit: int, notice: str
) -> None:
    chat = open_chat(context_strategy="compaction", enable_auto_compaction=False, max_context_tokens=limit)
    while not chat.service.sessions.list() or total_tokens(chat) < 1_640:
        chat.say(question(1))
    assert total_tokens(chat) < 1_900
    assert chat.view.context_notice == notice
    assert server.bodies("summary") == []
