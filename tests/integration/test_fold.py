from __future__ import annotations

import threading
import time

from graph.event import Folded, FoldWaiting
from graph.record import Record
from tests.fake.body import content_of, shape, system_prompt
from tests.fake.chat import Chat, names, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, hang, text
from tests.fake.openai_responder import answer_body
from tests.fake.openai_server import FakeOpenAI

KOREAN = "서버 이전은 김민수가 맡아 10월에 하기로 했습니다. 예산이 정해졌고 데이터베이스를 먼저 복제합니다. "


def only_record(chat: Chat) -> Record:
    (record,) = chat.service.folds.records(chat.session_id)
    return record


def test_the_block_is_summarised_once_and_before_its_turn_comes(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    assert [exchange.kind for exchange in server.exchanges] == ["chat", "chat", "chat", "summary", "chat"]
    summary, fourth = server.exchanges[3:]
    assert summary.is_finished
    assert summary.finished_at is not None
    assert summary.finished_at < fourth.started_at
    assert all(question(number) in str(summary.body) for number in (1, 2, 3))


def test_a_turn_that_comes_early_waits_for_the_same_summary(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    gate = threading.Event()
    server.script(lambda body: answer_body(body) if gate.wait(30) else failure(500), kind="summary")
    chat.say(question(3))
    chat.start(question(4))
    chat.wait_until_live(lambda live: live.phase == "folding")
    gate.set()
    events = chat.events()
    assert names(events)[:3] == ["TurnStarted", "FoldWaiting", "Folded"]
    assert len(server.bodies("summary")) == 1
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]


def test_a_summariser_that_hangs_holds_one_turn_and_leaves_no_gap(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(fold_wait_seconds=0.1, fold_deadline_seconds=30)
    server.script(hang(is_silent=True), kind="summary")
    for number in (1, 2, 3):
        chat.say(question(number))
    began = time.monotonic()
    fourth = chat.say(question(4))
    assert FoldWaiting((1, 2, 3)) in fourth
    assert server.exchanges[-1].started_at - began < 10
    fifth = chat.say(question(5))
    assert "FoldWaiting" not in names(fifth)
    assert [shape(body) for body in server.bodies("chat")[3:]] == [[1, 2, 3, 4], [1, 2, 3, 4, 5]]


def test_folds_catch_up_once_the_summariser_works_again(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(fold_wait_seconds=0.3, fold_deadline_seconds=6)
    server.script(hang(is_silent=True), kind="summary")
    for number in range(1, 6):
        chat.say(question(number))
    chat.wait_for_folds()
    assert chat.view.fold_error_code == "deadline"
    chat.ask(6, 7)
    assert [shape(body) for body in server.bodies("chat")[5:]] == [[1, 2, 3, 4, 5, 6], [(1, 3), (4, 6), 7]]
    assert chat.view.fold_failures == 0


def test_three_failures_in_a_row_are_told_and_the_chat_goes_on(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(500), failure(500), failure(500), kind="summary")
    chat.ask(1, 5)
    assert (chat.view.fold_failures, chat.view.fold_error_code) == (3, "provider")
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3, 4, 5]
    chat.ask(6, 7)
    assert [shape(body) for body in server.bodies("chat")[5:]] == [[(1, 3), 4, 5, 6], [(1, 3), (4, 6), 7]]
    assert [record.outcome for record in chat.service.folds.records(chat.session_id)] == ["picked", "compressed"]
    assert chat.view.fold_failures == 0


def test_a_draft_of_the_wrong_length_is_asked_for_again_with_the_reason(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    server.script(text("너무 짧은 요약문 하나입니다."), kind="summary")
    chat.ask(4, 7)
    _, first, second = (body["messages"] for body in server.bodies("summary"))
    assert second[:2] == first
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert content_of(second[2]) == "너무 짧은 요약문 하나입니다."
    assert content_of(second[3]).startswith("방금 요약은 16자입니다.")
    _, record = chat.service.folds.records(chat.session_id)
    assert record.outcome == "compressed"
    assert record.summary_chars > 100
    # The first try's usage is the script's, the second's is counted by the default responder.
    assert record.input_tokens == 100 + sum(len(content_of(message)) for message in second) // 3
    assert record.is_usage


def test_two_drafts_too_long_are_cut_at_a_sentence_end(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(KOREAN * 14), text(KOREAN * 12), kind="summary")
    chat.ask(1, 4)
    record = only_record(chat)
    assert record.outcome == "shortened"
    assert record.summary_chars <= record.target_chars * 1.25
    assert record.summary.endswith("다.")
    assert len(server.bodies("summary")) == 2


def test_a_tiny_block_stands_word_for_word_without_a_call(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("하나."), text("둘."), text("셋."))
    for words in ("일은 뭐지?", "이는 뭐지?", "삼은 뭐지?"):
        chat.say(words)
    chat.wait_for_folds()
    chat.say(question(4))
    record = only_record(chat)
    assert (record.kind, record.outcome) == ("verbatim", "inflated")
    prompt = system_prompt(server.bodies("chat")[-1])
    assert all(f"사용자: {words}" in prompt for words in ("일은 뭐지?", "이는 뭐지?", "삼은 뭐지?"))
    assert all(f"AI: {words}" in prompt for words in ("하나.", "둘.", "셋."))
    assert server.bodies("summary") == []
    assert (record.input_tokens, record.output_tokens, record.turns) == (0, 0, (1, 2, 3))
    assert chat.covered == [(1, 2, 3)]


def test_a_summary_in_the_wrong_language_is_not_adopted(chat: Chat, server: FakeOpenAI) -> None:
    english = "The user moves a server in October and Kim is in charge of it; the database is copied first. " * 3
    server.script(text(english), text(english), kind="summary")
    chat.ask(1, 3)
    assert chat.view.fold_error_code == "summary_language"
    chat.say(question(4))
    chat.wait_for_folds()
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3, 4]
    assert content_of(server.bodies("summary")[1]["messages"][-1]).startswith("같은 내용을 한국어로 옮기세요.")
    assert chat.covered == []


def test_a_new_rate_before_the_fold_makes_the_summary_anew(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
    chat.wait_for_folds()
    events = chat.say(question(4))
    assert "FoldWaiting" not in names(events)
    record = only_record(chat)
    assert record.compression_rate == 0.5
    assert record.target_chars == int(record.original_chars * 0.5)
    assert len(server.bodies("summary")) == 2
    spent = chat.rows("SELECT sum(input_tokens + output_tokens), count(*) FROM record")
    assert spent == [(chat.service.folds.statistics(chat.session_id).fold_tokens, 2)]


def test_what_was_prepared_for_an_old_attempt_is_thrown_away_but_paid_for(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 2)
    old, new = "옛 답은 파랑입니다. " + KOREAN, "새 답은 초록입니다. " + KOREAN
    server.script(text(old), text(new))
    chat.ask(3, 3)
    chat.regenerate()
    chat.wait_for_folds()
    events = chat.say(question(4))
    assert [event.turns for event in events if isinstance(event, Folded)] == [(1, 2, 3)]
    first, second = (str(body) for body in server.bodies("summary"))
    assert old.strip() in first
    assert new.strip() in second
    assert old.strip() not in second
    costs = chat.rows("SELECT input_tokens + output_tokens FROM record WHERE status = 'COMPLETED'")
    assert len(costs) == 2
    assert chat.service.folds.statistics(chat.session_id).fold_tokens == sum(cost for (cost,) in costs)


def test_folds_survive_a_restart_between_the_answer_and_the_next_turn(open_chat: OpenChat, server: FakeOpenAI) -> None:
    with open_chat() as chat:
        chat.ask(1, 3)
    events = open_chat(chat.session_id).say(question(4))
    assert "FoldWaiting" not in names(events)
    assert len(server.bodies("summary")) == 1


def test_closing_the_server_ends_a_summary_in_the_making(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.script(hang(is_silent=True), kind="summary")
    with open_chat() as chat:
        for number in (1, 2, 3):
            chat.say(question(number))
        server.wait_until(lambda fake: len(fake.bodies("summary")) == 1)
    assert chat.rows("SELECT status FROM record") == [("FAILED",)]
    with open_chat(chat.session_id) as chat:
        chat.ask(4, 4)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]
