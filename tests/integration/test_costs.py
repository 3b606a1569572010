from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

import pytest

from graph.service import ChatService
from graph.value.view import CostView, SavingsMoney
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import CACHED_USAGE, DEFAULT_USAGE, ScriptedCall, close_early, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

INPUT, CACHED, OUTPUT = Decimal(2), Decimal("0.5"), Decimal(8)
PRICES: Final = (
    '{"currency": "USD", "models": {"scripted-model": {"input": 2, "output": 8, "cached": 0.5},'
    ' "small": {"input": 0.1, "output": 0.4}}}'
)


@pytest.fixture(scope="module")
def module_service(endpoint: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatService]:
    with chat_opener(settings_maker(tmp_path_factory.mktemp("priced") / "data", endpoint.url)) as opened:
        yield opened(model_prices=PRICES, chat_summary_model="small").service


def cost_of(chat: Chat) -> CostView:
    cost = chat.service.costs.of_session(chat.session_id)
    assert cost is not None
    return cost


def all_of(chat: Chat) -> CostView:
    cost = chat.service.costs.of_all()
    assert cost is not None
    return cost


def rows(chat: Chat, query: str, order: str = "") -> list[Any]:
    """What a query with a condition finds of this session."""
    return chat.rows(f"{query} AND session_id = ? {order}", chat.session_id)


def dollars(read: int, written: int, cached: int = 0) -> Decimal:
    return (read * INPUT + cached * CACHED + written * OUTPUT) / 1_000_000


def reported(chat: Chat) -> Decimal:
    query = "SELECT sum(usage_input_tokens), sum(usage_output_tokens) FROM model_call WHERE session_id = ?"
    ((read, written),) = chat.rows(query, chat.session_id)
    assert read
    return dollars(read, written)


def test_answers_cost_what_their_provider_reported_and_at_most_what_was_read(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("하나", usage=CACHED_USAGE), text("둘"))
    chat.say("안녕하세요?")
    chat.say("오늘은 무엇을 할까요?")
    cost = cost_of(chat)
    assert (cost.total.amount, cost.total.is_estimate) == (dollars(36 + 100, 40, cached=64), False)
    assert (cost.currency, cost.unpriced_calls, cost.summaries.amount) == ("USD", 0, Decimal(0))
    server.script(text("셋", usage={**DEFAULT_USAGE, "prompt_tokens_details": {"cached_tokens": 640}}))
    chat.say("그다음은요?")
    assert cost_of(chat).total.amount == dollars(36 + 100, 60, cached=64 + 100)


def test_what_was_not_reported_is_estimated_call_by_call(chat: Chat, server: FakeOpenAI) -> None:
    call = ScriptedCall("get_current_time", "{}", "call-1")
    server.script(tools(call, usage=None), text("낮입니다."), text("아닙니다.", usage=None))
    chat.say("지금 몇 시인가요?")
    chat.say("밤인가요?")
    sent = rows(chat, "SELECT sent_tokens FROM model_call WHERE usage_input_tokens IS NULL", "ORDER BY turn")
    said = rows(chat, "SELECT tokens FROM message WHERE role = 'ai'", "ORDER BY position")
    assert len(said) == 3
    cost = cost_of(chat)
    written = 20 + said[0][0] + said[2][0]
    assert (cost.total.amount, cost.total.is_estimate) == (dollars(100 + sent[0][0] + sent[1][0], written), True)


def test_a_turn_tells_what_its_last_attempt_took(chat: Chat, server: FakeOpenAI) -> None:
    call = ScriptedCall("get_current_time", "{}", "call-1")
    server.script(text("아닙니다."), tools(call), text("낮입니다."), text("밤입니다.", usage=None))
    chat.say("지금 몇 시인가요?")
    chat.regenerate()
    chat.say("정말인가요?")
    reported, estimated = chat.turns
    read, written = DEFAULT_USAGE["prompt_tokens"], DEFAULT_USAGE["completion_tokens"]
    assert (reported.input_tokens, reported.output_tokens, reported.is_usage) == (2 * read, 2 * written, True)
    ((sent,),) = rows(chat, "SELECT sent_tokens FROM model_call WHERE usage_input_tokens IS NULL")
    ((said,),) = rows(chat, "SELECT tokens FROM message WHERE turn = 2 AND role = 'ai'")
    assert (estimated.input_tokens, estimated.output_tokens, estimated.is_usage) == (sent, said, False)
    ((began, ended),) = rows(chat, "SELECT started_at, finished_at FROM turn WHERE number = 2")
    assert estimated.started_at is not None
    assert began <= ended
    assert estimated.seconds > 0
    assert {turn.model for turn in chat.turns} == {"scripted-model"}
    newest = chat.service.turns.transcript(chat.session_id, last=1)
    assert (newest.previous_at, [turn.number for turn in newest.turns]) == (reported.started_at, [2])
    assert chat.service.turns.transcript(chat.session_id).previous_at is None


def test_every_attempt_and_every_call_of_a_tool_counts(chat: Chat, server: FakeOpenAI) -> None:
    asked = ScriptedCall("reasoning", '{"material": "갑은 을보다 크다.", "question": "누가 더 큰가?"}', "call-1")
    server.script(tools(asked), text("갑이다."), text("갑입니다."))
    chat.say(question(1))
    chat.regenerate()
    assert rows(chat, "SELECT attempt, kind FROM model_call WHERE true", "ORDER BY attempt, ordinal") == [
        (1, "answer"),
        (1, "reasoning"),
        (1, "answer"),
        (2, "answer"),
    ]
    assert cost_of(chat).total.amount == reported(chat)
    assert cost_of(chat).total.amount > dollars(300, 60)


def test_a_call_that_failed_costs_nothing_unless_its_words_were_cut_off(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(401))
    chat.say(question(1))
    assert (cost_of(chat).total.amount, cost_of(chat).total.is_estimate) == (Decimal(0), False)
    server.script(close_early("이것은 끊긴 답이고"))
    chat.retry()
    cut = cost_of(chat).total
    ((sent,),) = rows(chat, "SELECT sent_tokens FROM model_call WHERE error_code = 'cut_stream'")
    assert cut.is_estimate
    assert cut.amount > dollars(sent, 0)


def test_an_answer_that_was_stopped_costs_what_was_sent_and_said(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("여기까지 말했습니다"))
    chat.start(question(1))
    chat.stop_when(lambda live: bool(live.text))
    ((sent,),) = rows(chat, "SELECT sent_tokens FROM model_call WHERE true")
    ((said,),) = rows(chat, "SELECT tokens FROM message WHERE role = 'ai'")
    assert cost_of(chat).total.amount == dollars(sent, said)


def test_summaries_cost_what_their_own_model_does_the_discarded_ones_too(chat: Chat) -> None:
    chat.ask(1, 7)
    record = chat.service.folds.records(chat.session_id)[0]
    chat.service.folds.remake(chat.session_id, record.id, rate=0.5)
    chat.service.folds.undo(chat.session_id, chat.service.folds.records(chat.session_id)[0].id)
    chat.service.folds.reset(chat.session_id)
    ((read, written),) = rows(chat, "SELECT sum(input_tokens), sum(output_tokens) FROM record WHERE true")
    assert read >= 300
    cost = cost_of(chat)
    assert cost.summaries.amount == (read * Decimal("0.1") + written * Decimal("0.4")) / 1_000_000
    assert cost.total.amount == cost.summaries.amount + reported(chat)
    assert not cost.total.is_estimate


def test_a_draft_that_broke_off_costs_what_was_sent_and_said(chat: Chat, server: FakeOpenAI) -> None:
    server.script(close_early("서버 이전은 10월이고 담당자는"), failure(500), kind="summary")
    chat.ask(1, 4)
    broken, failed = rows(
        chat, "SELECT error_code, input_tokens, output_tokens FROM record WHERE true", "ORDER BY sequence"
    )
    assert (broken[0], failed) == ("cut_stream", ("provider", 0, 0))
    assert min(broken[1:]) > 0
    cost = cost_of(chat).summaries
    assert cost.amount == (broken[1] * Decimal("0.1") + broken[2] * Decimal("0.4")) / 1_000_000
    assert cost.is_estimate


def test_calls_of_models_without_a_price_are_counted(open_chat: OpenChat) -> None:
    chat = open_chat(model_prices=PRICES, chat_summary_model="other")
    chat.ask(1, 4)
    cost = cost_of(chat)
    assert (cost.total.amount, cost.summaries.amount, cost.unpriced_calls) == (reported(chat), Decimal(0), 1)
    assert chat.service.folds.savings(chat.session_id).money is None


def test_the_model_of_a_call_stays_the_one_that_was_asked(open_chat: OpenChat) -> None:
    chat = open_chat(model_prices=PRICES)
    chat.say(question(1))
    before = cost_of(chat)
    chat.close()
    again = open_chat(chat.session_id, model_prices=PRICES, chat_model="other")
    assert cost_of(again) == before
    again.change("UPDATE model_call SET model = ''")  # as earlier versions have it
    assert cost_of(again).unpriced_calls == 1


def test_an_owners_sessions_cost_what_each_of_them_does_and_those_of_others_are_not_told(
    service: ChatService, server: FakeOpenAI
) -> None:
    chat, stranger = Chat(service.for_owner("payer")), Chat(service.for_owner("stranger"))
    server.script(text("하나", usage=None), to="질문 2번")
    chat.ask(1, 7)
    fork = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=5))
    assert cost_of(fork).total.amount == 0
    fork.ask(6, 7)
    other = Chat(chat.service)
    other.ask(1, 1)
    chats = [chat, fork, other]
    assert all_of(chat).total.amount == sum(cost_of(each).total.amount for each in chats)
    assert all_of(chat).summaries.amount == sum(cost_of(each).summaries.amount for each in chats)
    assert all_of(chat).total.is_estimate
    assert (all_of(stranger).total.amount, all_of(stranger).unpriced_calls) == (Decimal(0), 0)
    gone = chat.service.sessions.delete_many([chat.session_id])
    assert all_of(other).total.amount == cost_of(fork).total.amount + cost_of(other).total.amount
    assert not all_of(other).total.is_estimate
    chat.service.sessions.undo_delete(gone)
    assert all_of(other).total.amount == sum(cost_of(each).total.amount for each in chats)


def test_what_an_export_brings_back_was_paid_for_once(service: ChatService) -> None:
    chat = Chat(service.for_owner("importer"))
    chat.ask(1, 7)
    before, exported = all_of(chat), chat.service.sessions.export(chat.session_id)
    copies = [Chat(chat.service, *chat.service.sessions.import_session(exported)) for _ in range(2)]
    assert all_of(chat) == before == cost_of(chat)
    assert cost_of(copies[0]) == before
    copies[0].ask(8, 8)
    assert all_of(chat).total.amount == cost_of(copies[0]).total.amount > before.total.amount
    chat.service.sessions.delete(chat.session_id)
    assert all_of(chat).total.amount == cost_of(copies[0]).total.amount


def test_without_prices_no_money_is_told(open_chat: OpenChat) -> None:
    chat = open_chat()
    chat.say(question(1))
    assert chat.service.costs.of_session(chat.session_id) is None
    assert chat.service.costs.of_all() is None
    assert chat.service.folds.savings(chat.session_id).money is None


def test_savings_are_told_in_money_too(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 8)
    savings, cost = chat.service.folds.savings(chat.session_id), cost_of(chat)
    unsent = savings.unsent_tokens * INPUT / 1_000_000
    assert savings.money == SavingsMoney("USD", unsent, cost.summaries.amount, Decimal(0))
    server.script(text("아홉", usage=CACHED_USAGE), to="질문 9번")
    chat.ask(9, 9)
    money = chat.service.folds.savings(chat.session_id).money
    assert money is not None
    assert money.unsent == chat.service.folds.savings(chat.session_id).unsent_tokens * CACHED / 1_000_000
