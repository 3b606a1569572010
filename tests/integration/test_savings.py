from __future__ import annotations

import pytest

from graph.error import DatabaseError
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, text
from tests.fake.openai_server import FakeOpenAI


def test_folds_in_time_lose_no_cache(chat: Chat) -> None:
    chat.ask(1, 8)
    savings, sums = chat.service.folds.savings(chat.session_id), chat.service.folds.statistics(chat.session_id)
    assert savings.lost_tokens == 0
    assert (savings.unsent_tokens, savings.fold_tokens) == (sums.unsent_tokens, sums.fold_tokens)
    assert savings.net_tokens == savings.unsent_tokens - savings.fold_tokens


def test_a_late_fold_loses_what_was_sent_behind_its_source(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(500), kind="summary")
    chat.ask(1, 5)
    (late,) = chat.service.folds.inputs(chat.session_id, 5)
    again = next(block for block in late.blocks if block.text == question(4))
    savings = chat.service.folds.savings(chat.session_id)
    assert savings.lost_tokens == again.tokens
    assert savings.net_tokens == savings.unsent_tokens - savings.fold_tokens - again.tokens


def test_a_rolling_input_that_only_grows_loses_no_cache(open_chat: OpenChat) -> None:
    chat = open_chat(context_strategy="rolling")
    chat.ask(1, 4)
    assert chat.service.folds.savings(chat.session_id).lost_tokens == 0


def test_turns_that_are_left_out_lose_the_cache_of_those_behind_them(open_chat: OpenChat) -> None:
    chat = open_chat(context_strategy="window", window_turns=2)
    chat.ask(1, 4)
    sent = chat.service.folds.inputs(chat.session_id, 4)[0].blocks
    assert chat.service.folds.savings(chat.session_id).lost_tokens == sum(block.tokens for block in sent[1:4])


def test_nothing_before_a_reset_counts(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(500), kind="summary")
    chat.ask(1, 5)
    chat.service.folds.reset(chat.session_id)
    chat.ask(6, 6)
    savings = chat.service.folds.savings(chat.session_id)
    assert (savings.unsent_tokens, savings.lost_tokens) == (0, 0)


def test_a_cost_that_its_provider_did_not_report_is_an_estimate(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    assert chat.service.folds.savings(chat.session_id).is_fold_usage
    server.script(text("질문 4번에서 6번까지 서버 이전 일정과 예산을 이야기했다. " * 8, usage=None), kind="summary")
    chat.ask(5, 7)
    assert not chat.service.folds.savings(chat.session_id).is_fold_usage


def test_a_list_that_somebody_spoilt_is_told(chat: Chat) -> None:
    chat.ask(1, 2)
    chat.change("UPDATE model_call SET manifest = '[5]' WHERE turn = 1")
    with pytest.raises(DatabaseError):
        chat.service.folds.savings(chat.session_id)
