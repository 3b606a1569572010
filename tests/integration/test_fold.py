from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from graph.fold.fact_line import without_line
from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.model.summariser import Summariser
from graph.server.settings import Settings
from graph.value.event import Event, Folded
from tests.fake.body import content_of, raw_turns, roles, shape, summaries, tool_names
from tests.fake.caching import ALWAYS
from tests.fake.chat import Chat, names, question
from tests.fake.draft import korean
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.scripted_model import ScriptedChat, ScriptedModels, ScriptedSummariser
from tests.integration.test_distribution import statements

TOO_LONG = failure(400, "maximum context length exceeded", code="context_length_exceeded")
TOO_SHORT = text("너무 짧은 요약문 하나입니다.")
# Far from both what is right (a second or two) and what is wrong (the deadline below).
SOON_SECONDS = 15
HASTY = {"fold_wait_seconds": 0.2, "fold_deadline_seconds": 60}


def say_all(chat: Chat, first: int, last: int) -> list[Event]:
    """Has these turns without a wait for what they fold."""
    return [event for number in range(first, last + 1) for event in chat.say(question(number))]


def held(gate: threading.Event, reply: Reply | None = None) -> Callable[[Body], Reply]:
    """A reply that is given once the event is set: the default responder's, or this one."""
    return lambda body: (reply or answer_body(body)) if gate.wait(60) else failure(500)


def summaries_get(reply: Callable[[Body], Reply] | Reply) -> Callable[[Body], Reply]:
    """A responder that answers chats as ever, and every request for a summary so."""

    def respond(body: Body) -> Reply:
        if kind_of(body) != "summary":
            return answer_body(body)
        return reply(body) if callable(reply) else reply

    return respond


@contextmanager
def held_summaries(server: FakeOpenAI) -> Iterator[threading.Event]:
    """No summary is answered before the event is set."""
    gate = threading.Event()
    server.respond_with(summaries_get(held(gate)))
    try:
        yield gate
    finally:
        gate.set()


def wait_for_requests(server: FakeOpenAI, count: int) -> None:
    server.wait_until(lambda fake: len(fake.bodies("summary")) >= count)


def kinds(server: FakeOpenAI) -> list[str]:
    return [exchange.kind for exchange in server.exchanges]


def outcomes(chat: Chat) -> list[str | None]:
    return [record.outcome for record in chat.service.folds.records(chat.session_id)]


def rows(chat: Chat, columns: str) -> list[tuple[object, ...]]:
    query = f"SELECT {columns} FROM record WHERE session_id = ? ORDER BY sequence"  # noqa: S608  # the test's own
    return chat.rows(query, chat.session_id)


def test_a_block_is_summarised_once_and_before_its_turn_comes(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    assert kinds(server) == ["chat", "chat", "chat", "summary", "chat"]
    summary, fourth = server.exchanges[3:]
    assert summary.finished_at is not None
    assert summary.finished_at < fourth.started_at
    assert all(question(number) in str(summary.body) for number in (1, 2, 3))


# Waiting


def test_a_turn_that_comes_early_waits_for_the_summary_that_is_being_made(chat: Chat, server: FakeOpenAI) -> None:
    gate = threading.Event()
    server.script(held(gate), kind="summary")
    say_all(chat, 1, 3)
    chat.start(question(4))
    chat.wait_until_live(lambda live: live.phase == "folding")
    gate.set()
    assert names(chat.events())[:3] == ["TurnStarted", "FoldWaiting", "Folded"]
    assert len(server.bodies("summary")) == 1
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]


def test_a_summariser_that_hangs_is_waited_for_once_in_a_session(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**HASTY)
    server.respond_with(summaries_get(hang(is_silent=True)))
    say_all(chat, 1, 3)
    # The wait for the block and that of the guard are one; the guard then picks sentences.
    server.script(TOO_LONG)
    began = time.monotonic()
    events = chat.say(question(4))
    assert names(events).count("FoldWaiting") == 1
    assert [event.turns for event in events if isinstance(event, Folded)] == [(1, 2, 3)]
    assert outcomes(chat) == ["picked"]
    assert time.monotonic() - began < SOON_SECONDS
    # No later turn waits, whatever waits for the summariser, and none loses a turn.
    events = say_all(chat, 5, 7)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5, 6, 7]
    server.script(TOO_LONG)
    events += chat.say(question(8))
    assert "FoldWaiting" not in names(events)
    assert set(outcomes(chat)) == {"picked"}


def test_a_summary_past_its_deadline_has_failed_and_folds_catch_up(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(fold_wait_seconds=0.3, fold_deadline_seconds=2)
    server.script(hang(is_silent=True), kind="summary")
    chat.ask(1, 3)
    assert chat.view.fold_error_code == "deadline"
    chat.ask(4, 7)
    assert [shape(body) for body in server.bodies("chat")[3:]] == [
        [1, 2, 3, 4],
        [(1, 3), 4, 5],
        [(1, 3), 4, 5, 6],
        [(1, 3), (4, 6), 7],
    ]
    assert chat.view.fold_failures == 0


def test_turns_wait_again_once_the_summariser_delivers(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**HASTY)
    gates = [threading.Event(), threading.Event()]
    server.script(*map(held, gates), kind="summary")
    waits = []
    for number in range(1, 8):
        waits.append(names(chat.say(question(number))).count("FoldWaiting"))
        if number == 5:
            gates[0].set()
            chat.wait_for_folds()
    gates[1].set()
    assert waits == [0, 0, 0, 1, 0, 0, 1]
    chat.wait_for_folds()
    chat.say(question(8))
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_a_turn_that_waits_asks_the_database_a_few_times_a_second(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(fold_wait_seconds=1.0, fold_deadline_seconds=60)
    server.respond_with(summaries_get(hang(is_silent=True)))
    say_all(chat, 1, 3)
    with statements() as found:
        chat.say(question(4))
    asked = [statement for statement in found if "FROM record" in statement and "source_key = ?" in statement]
    assert 2 < len(asked) < 18


@pytest.mark.slow
def test_hanging_folds_of_other_sessions_hold_up_neither_folds_nor_the_guard(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(fold_wait_seconds=4, fold_deadline_seconds=60)
    server.respond_with(summaries_get(hang(is_silent=True)))
    for _ in range(6):
        say_all(Chat(chat.service), 1, 3)
    wait_for_requests(server, 4)
    server.respond_with(answer_body)
    say_all(chat, 1, 3)
    began = time.monotonic()
    server.script(TOO_LONG)
    events = chat.say(question(4))
    assert next(event.turns for event in events if isinstance(event, Folded)) == (1, 2, 3)
    assert outcomes(chat)[0] == "compressed"
    assert time.monotonic() - began < SOON_SECONDS
    server.respond_with(summaries_get(hang(is_silent=True)))
    say_all(chat, 5, 6)
    server.script(TOO_LONG)
    began = time.monotonic()
    chat.say(question(7))
    assert outcomes(chat)[-1] == "picked"
    assert time.monotonic() - began < SOON_SECONDS


def test_small_talk_is_one_call_over_the_same_input_and_takes_a_fold_that_is_ready(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 3)
    assert names(chat.say("thanks a lot!")) == ["TurnStarted", "Folded", "TokenDelta", "TurnFinished"]
    assert shape(server.bodies("chat")[-1]) == [(1, 3)]
    chat.ask(5, 5)
    server.script(failure(500))
    chat.say("고마워요!")
    assert chat.last_turn.status == "failed"
    chat.retry()
    chat.ask(7, 7)
    asked, _, casual, after = server.bodies("chat")[-4:]
    assert casual["tool_choice"] == "none"
    assert casual["messages"][: len(asked["messages"])] == asked["messages"]
    assert after["tools"] == asked["tools"]
    assert raw_turns(after) == [7]


def test_small_talk_waits_when_two_blocks_are_due_and_not_before(chat: Chat, server: FakeOpenAI) -> None:
    gates = [threading.Event(), threading.Event()]
    server.script(*map(held, gates), kind="summary")
    say_all(chat, 1, 3)
    for _ in range(3):
        assert names(chat.say("고마워요!")) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    assert raw_turns(server.bodies("chat")[-1]) == [1, 2, 3]
    chat.start("고마워요!")
    chat.wait_until_live(lambda live: live.phase == "folding")
    gates[0].set()
    assert names(chat.events()) == ["TurnStarted", "FoldWaiting", "Folded", "TokenDelta", "TurnFinished"]
    gates[1].set()
    assert chat.covered == [(1, 2, 3)]


def test_a_yes_to_an_offered_search_is_no_small_talk(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("시간대를 알아보겠습니다. 괜찮으면 '네'라고 답해 주세요."))
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1")), text("알아보았습니다."))
    chat.say(question(1))
    assert "ToolFinished" in names(chat.say("네"))
    assert tool_names(server.bodies("chat")[-1])
    assert "tool_choice" not in server.bodies("chat")[-1]


class HeldModels(ScriptedModels):
    """Which model summarises is told only when the test lets it, as if an endpoint had to be asked for it."""

    def __init__(self, settings: Settings, caller: ModelCaller, gate: threading.Event) -> None:
        super().__init__(settings, caller, ScriptedChat(), ScriptedSummariser())
        self.gate = gate
        self.is_asked = threading.Event()

    def summariser(self, name: str) -> Summariser:
        self.is_asked.set()
        assert self.gate.wait(60)
        return super().summariser(name)


def test_an_answer_that_is_out_waits_for_no_look_at_the_folds(open_chat: OpenChat) -> None:
    gate, made = threading.Event(), list[HeldModels]()

    @contextmanager
    def held_models(settings: Settings) -> Iterator[ChatModels]:
        with ModelCaller() as caller:
            made.append(HeldModels(settings, caller, gate))
            yield made[0]

    chat = open_chat(concurrent_turns=1, models=held_models)
    # The third answer makes a fold due: whoever is to make it can't be told now.
    say_all(chat, 1, 3)
    assert made[0].is_asked.wait(30)
    assert not chat.view.is_running
    say_all(Chat(chat.service), 1, 1)
    gate.set()
    chat.wait_for_folds()
    assert rows(chat, "turns, status") == [("[1,2,3]", "COMPLETED")]


# One maker


def test_a_new_rate_before_the_fold_makes_the_summary_anew(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 3)
    chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
    chat.wait_for_folds()
    assert "FoldWaiting" not in names(chat.say(question(4)))
    (record,) = chat.service.folds.records(chat.session_id)
    assert (record.compression_rate, record.target_chars) == (0.5, int(record.original_chars * 0.5))
    assert len(server.bodies("summary")) == 2
    spent = rows(chat, "sum(input_tokens + output_tokens), count(*)")
    assert spent == [(chat.service.folds.statistics(chat.session_id).fold_tokens, 2)]


def test_a_summary_prepared_for_an_old_attempt_is_thrown_away_but_paid_for(chat: Chat, server: FakeOpenAI) -> None:
    old, new = "옛 답은 파랑입니다. " * 12, "새 답은 초록입니다. " * 12
    chat.ask(1, 2)
    server.script(text(old), text(new))
    chat.ask(3, 3)
    chat.regenerate()
    chat.wait_for_folds()
    events = chat.say(question(4))
    assert [event.turns for event in events if isinstance(event, Folded)] == [(1, 2, 3)]
    first, second = (str(body) for body in server.bodies("summary"))
    assert "파랑" in first
    assert "초록" in second
    assert "파랑" not in second
    costs = rows(chat, "status, input_tokens + output_tokens")
    assert [status for status, _ in costs] == ["COMPLETED"] * 2
    assert chat.service.folds.statistics(chat.session_id).fold_tokens == sum(int(str(cost)) for _, cost in costs)


def test_summaries_that_new_answers_make_useless_are_paid_for_and_are_no_failures(
    chat: Chat, server: FakeOpenAI
) -> None:
    gates = [threading.Event() for _ in range(4)]
    server.script(*(held(gate, TOO_SHORT) for gate in gates[:3]), held(gates[3]), kind="summary")
    say_all(chat, 1, 3)
    for count, gate in enumerate(gates[:3], start=1):
        wait_for_requests(server, count)
        chat.regenerate()
        gate.set()
    wait_for_requests(server, 4)
    # Too short as they were, none was asked for a second time: it would have been thrown away as well.
    thrown = rows(chat, "status, error_code, input_tokens + output_tokens > 0")
    assert thrown[:3] == [("FAILED", "discarded", 1)] * 3
    assert (chat.view.fold_failures, chat.view.fold_error_code) == (0, "")
    gates[3].set()
    chat.ask(4, 4)
    assert chat.covered == [(1, 2, 3)]
    assert [len(body["messages"]) for body in server.bodies("summary")] == [2] * 4


class LeapingClock:
    """The computer's clock and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def test_a_queued_fold_is_claimed_when_its_making_begins(open_chat: OpenChat, server: FakeOpenAI) -> None:
    clock = LeapingClock()
    chat = open_chat(clock=clock, fold_wait_seconds=0.1, fold_deadline_seconds=30, context_strategy="window")
    with held_summaries(server) as gate:
        say_all(chat, 1, 9)
        for _ in range(3):
            chat.service.sessions.configure(chat.session_id, strategy="interval")
        wait_for_requests(server, 1)
        assert len(rows(chat, "id")) == 1
        clock.ahead = timedelta(seconds=100)
        gate.set()
        chat.wait_for_folds()
        made = chat.rows("SELECT status, created_at FROM record ORDER BY sequence")
        assert [status for status, _ in made] == ["COMPLETED"] * 3
        assert len(server.bodies("summary")) == 3
        first, second, third = (created for _, created in made)
        assert min(second, third) - first >= 100 * 10**6  # in microseconds


def test_a_fold_that_another_server_makes_is_waited_for_and_not_made_again(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat(fold_wait_seconds=10)
    there = open_chat(chat.session_id, fold_wait_seconds=10)
    with held_summaries(server) as gate:
        say_all(chat, 1, 3)
        wait_for_requests(server, 1)
        there.service.sessions.configure(chat.session_id, strategy="interval")
        there.wait_until(lambda: there.service._engine.fold_worker.is_idle(chat.session_id))  # noqa: SLF001  # as Chat.wait_for_folds
        there.start(question(4))
        there.wait_until_live(lambda live: live.phase == "folding")
        gate.set()
        assert [event.turns for event in there.events() if isinstance(event, Folded)] == [(1, 2, 3)]
        assert len(server.bodies("summary")) == 1
        assert len(rows(chat, "id")) == 1


# Small enough that the open question would make each fold due, large enough that the answered turns alone don't.
DUE = {
    "interval": {},
    "rolling": {"app_context_threshold": 1_000},
    "compaction": {"max_context_tokens": 2_000, "preserve_recent_messages": 1},
}


@pytest.mark.parametrize("strategy", DUE)
def test_an_open_turn_is_not_folded_when_settings_change(
    chat_with: OpenChat, server: FakeOpenAI, strategy: str
) -> None:
    chat = chat_with(context_strategy=strategy, **DUE[strategy])
    chat.ask(1, 2)
    server.script(hang("쓰는 중"))
    chat.start("아직 답이 없는 질문입니다. " + "이 내용이 요약에 들어가면 안 됩니다. " * 200)
    chat.wait_until_live(lambda live: live.text == "쓰는 중")
    chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
    chat.wait_for_folds()
    assert server.bodies("summary") == []
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.wait_for_folds()
    # Its answer is out now, if only as far as it came: now the question is folded with it.
    chat.ask(4, 4)
    assert "요약에 들어가면" in str(server.bodies("summary"))


# Restart, deletion, a lost endpoint


def test_a_prepared_summary_outlives_its_server(open_chat: OpenChat, server: FakeOpenAI) -> None:
    with open_chat() as chat:
        chat.ask(1, 3)
    assert "FoldWaiting" not in names(open_chat(chat.session_id).say(question(4)))
    assert len(server.bodies("summary")) == 1


def test_a_summary_that_ends_with_its_server_is_made_anew_and_is_no_failure(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(summaries_get(hang(is_silent=True)))
    with open_chat(fold_wait_seconds=0.1) as chat:
        say_all(chat, 1, 3)
        wait_for_requests(server, 1)
    for number in (4, 5, 6):
        assert set(rows(chat, "status")) == {("FAILED",)}
        with open_chat(chat.session_id, fold_wait_seconds=0.1) as chat:
            chat.say(question(number))
            server.wait_until(lambda fake: fake.hanging_count > 0)
            assert (chat.view.fold_failures, chat.covered) == (0, [])
    server.respond_with(answer_body)
    with open_chat(chat.session_id) as chat:
        chat.say(question(7))
        assert set(outcomes(chat)) == {"compressed"}


@pytest.mark.parametrize("deleted_by", ["the same server", "another server"])
def test_a_deleted_session_has_its_summary_ended_and_no_second_draft_made(
    open_chat: OpenChat, server: FakeOpenAI, deleted_by: str
) -> None:
    gate = threading.Event()
    is_same = deleted_by == "the same server"
    server.script(hang(is_silent=True) if is_same else held(gate, TOO_SHORT), kind="summary")
    chat = open_chat()
    say_all(chat, 1, 3)
    wait_for_requests(server, 1)
    (chat if is_same else open_chat()).service.sessions.delete(chat.session_id)
    gate.set()
    fold_worker = chat.service._engine.fold_worker  # noqa: SLF001  # as Chat.wait_for_folds, but its session is gone
    chat.wait_until(lambda: fold_worker.is_idle(chat.session_id))
    server.wait_until(lambda fake: fake.open_count == 0)
    assert server.exchanges[-1].is_closed_early is is_same
    assert len(server.bodies("summary")) == 1


def test_nothing_of_a_deleted_session_is_kept_in_memory(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    server.script(text(ENGLISH), kind="summary")
    chat.ask(1, 3)
    engine = chat.service._engine  # noqa: SLF001  # nobody else can see that it grows
    drafts, inputs = engine.fold_worker._unmended, engine.fold_worker.last_inputs  # noqa: SLF001  # the same
    assert (len(drafts), chat.session_id in inputs) == (1, True)
    chat.service.sessions.delete(chat.session_id)
    assert (len(drafts), chat.session_id in inputs) == (0, False)
    assert engine.access.runner.log(chat.session_id) is None


def test_settings_are_changed_while_the_endpoint_is_gone(
    open_chat: OpenChat, server: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = {"chat_model": None, "openai_api_key": None, "model_window_tokens": None}
    with open_chat(**nowhere) as chat:
        server.script(failure(500), kind="summary")
        chat.ask(1, 3)
    server.model_list_reply = failure(500)
    with open_chat(chat.session_id, **nowhere) as chat:
        assert chat.service.sessions.configure(chat.session_id, compression_rate=0.5).compression_rate == 0.5
    server.model_list_reply = None
    assert f"folds of session={chat.session_id} not prepared: " in caplog.text
    with open_chat(chat.session_id, **nowhere) as chat:
        chat.ask(4, 5)
        assert [record.compression_rate for record in chat.service.folds.records(chat.session_id)] == [0.5]


# Failure

ENGLISH = "The user moves a server in October and Kim is in charge of it; the database is copied first. " * 3


def tries(chat: Chat) -> list[int]:
    """How often each block was tried in vain, oldest first."""
    failed = (
        "SELECT count(*) FROM record WHERE status = 'FAILED' AND session_id = ? "
        "GROUP BY from_position ORDER BY from_position"
    )
    return [int(str(count)) for (count,) in chat.rows(failed, chat.session_id)]


def calls_by_turn(chat: Chat, server: FakeOpenAI, first: int, last: int) -> list[int]:
    """Has these turns, and returns how many requests for summaries came after each."""
    calls = []
    for number in range(first, last + 1):
        before = len(server.bodies("summary"))
        chat.ask(number, number)
        calls.append(len(server.bodies("summary")) - before)
    return calls


@pytest.mark.parametrize("reply", [failure(500), text(ENGLISH), text("")], ids=["failure", "language", "empty"])
def test_a_summariser_that_never_worked_costs_one_call_a_turn_and_three_a_block(
    chat_with: OpenChat, server: FakeOpenAI, reply: Reply
) -> None:
    server.respond_with(summaries_get(reply))
    # Calls of the chat are made three times at most; one for a summary in the background is made once.
    chat = chat_with(model_attempts=3)
    assert calls_by_turn(chat, server, 1, 10) == [0, 0, *[1] * 8]
    assert tries(chat) == [3, 3, 2]
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    assert {(r.outcome, r.model) for r in chat.service.folds.records(chat.session_id)} == {("picked", "extractive")}
    if reply.status == 200:
        # Of each block's three calls the second is the repair behind the draft of the first.
        assert [len(body["messages"]) for body in server.bodies("summary")[:6]] == [2, 4, 2] * 2


def test_a_summariser_that_fails_after_it_worked_costs_three_calls_a_block(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    server.respond_with(summaries_get(text(ENGLISH)))
    # The first draft is mended at once, as drafts were until then.
    assert calls_by_turn(chat, server, 5, 11) == [0, 2, 1, 0, 1, 1, 1]
    assert tries(chat) == [2, 3]
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]


def test_a_first_draft_that_is_none_is_mended_after_the_next_answer(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text(ENGLISH), failure(500), kind="summary")
    chat.ask(1, 6)
    assert kinds(server)[2:] == ["chat", "summary", "chat", "summary", "chat", "summary", "chat", "summary"]
    first, second, third, _ = (body["messages"] for body in server.bodies("summary"))
    assert second[:-2] == first
    assert roles({"messages": second[-2:]}) == ["assistant", "user"]
    assert [message["content"] for message in second[-2:-1]] == [ENGLISH.strip()]
    assert second[-1]["content"].startswith("같은 내용을 한국어로 옮기세요.")
    assert third == second  # a repair that got no answer is asked for again
    assert chat.covered == [(1, 2, 3)]


def test_a_draft_that_is_taken_anyhow_is_mended_at_once(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("(1턴) 서버를 옮기는 날을 정함. " + korean(1_200)), kind="summary")
    chat.ask(1, 3)
    assert [len(body["messages"]) for body in server.bodies("summary")] == [2, 4]
    assert tries(chat) == []


def test_another_server_writes_a_draft_anew(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.script(text(ENGLISH), kind="summary")
    with open_chat() as chat:
        chat.ask(1, 3)
    later = open_chat(chat.session_id)
    later.ask(4, 5)
    assert [len(body["messages"]) for body in server.bodies("summary")] == [2, 2]
    assert later.covered == [(1, 2, 3)]


def test_three_failures_are_told_and_picked_and_a_summariser_that_works_again_is_used(
    chat: Chat, server: FakeOpenAI
) -> None:
    server.script(*[text(ENGLISH)] * 3, kind="summary")
    chat.ask(1, 5)
    # After the answer, and not before it, too.
    assert kinds(server)[3:] == ["summary", "chat", "summary", "chat", "summary"]
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3, 4, 5]
    assert (tries(chat), chat.view.fold_failures, chat.view.fold_error_code) == ([3], 3, "summary_language")
    assert "FoldWaiting" not in names(chat.say(question(6)))
    chat.wait_for_folds()
    assert outcomes(chat) == ["picked"]
    server.script(text(ENGLISH), kind="summary")
    chat.ask(7, 10)
    assert len(server.bodies("summary")) == 6
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    assert (outcomes(chat), chat.view.fold_failures) == (["picked", "compressed", "compressed"], 0)


def test_failures_are_counted_across_restarts(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.respond_with(summaries_get(failure(500)))
    session_id = ""
    for number in (3, 4, 5):
        with open_chat(session_id) as chat:
            session_id = chat.session_id
            chat.ask(1 if number == 3 else number, number)
            assert (chat.view.fold_failures, chat.view.fold_error_code) == (number - 2, "provider")
    with open_chat(session_id) as chat:
        events = chat.say(question(6))
        assert [event.turns for event in events if isinstance(event, Folded)] == [(1, 2, 3)]
        assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5, 6]
        (record,) = chat.service.folds.records(session_id)
        assert (record.outcome, record.kind) == ("picked", "interval")
        assert record.summary_chars <= record.target_chars * 1.25


def test_the_oldest_block_alone_is_tried_while_it_fails_and_the_rest_follows_once_it_works(
    chat: Chat, server: FakeOpenAI
) -> None:
    chat.ask(1, 1)
    chat.service.sessions.configure(chat.session_id, strategy="window")
    chat.ask(2, 9)
    server.script(failure(500), failure(500), kind="summary")
    chat.service.sessions.configure(chat.session_id, strategy="interval")
    chat.wait_for_folds()
    assert [question(1) in str(body) for body in server.bodies("summary")] == [True]
    chat.ask(10, 10)
    assert [question(1) in str(body) for body in server.bodies("summary")] == [True, True]
    chat.ask(11, 12)
    assert chat.covered == [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    assert set(outcomes(chat)) == {"compressed"}


def test_a_fold_that_nobody_can_do_without_is_asked_for_again_at_once(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(model_attempts=2)
    chat.ask(1, 6)
    server.script(failure(500), kind="summary")
    assert chat.service.folds.compact(chat.session_id).outcome != "picked"
    assert len(server.bodies("summary")) == 4


# Merges

MERGING = {
    "records_budget_tokens": 500,
    "merged_together": 2,
    "newest_records": 1,
    "merged_tokens": 200,
    "fold_wait_seconds": 0.1,
    "fold_deadline_seconds": 60,
}


def is_merge(body: Body) -> bool:
    rules = content_of(body["messages"][0])
    return kind_of(body) == "summary" and rules.startswith("<source>에는 한 대화의 이어지는 요약들이")


def merge_prompts(server: FakeOpenAI) -> list[str]:
    """What was asked for each merge, behind its rules."""
    return [content_of(body["messages"][1]) for body in server.bodies("summary") if is_merge(body)]


def ask_until(chat: Chat, is_time: Callable[[], bool]) -> int:
    """Has turns until it is so; returns the number of the last one."""
    for number in range(1, 40):
        chat.ask(number, number)
        if is_time():
            return number
    raise AssertionError


def test_old_summaries_become_one_in_the_background_and_the_sources_stay_readable(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**MERGING)
    ask_until(chat, lambda: any(record.kind == "merge" for record in chat.service.folds.records(chat.session_id)))
    first, *rest = chat.service.folds.records(chat.session_id)
    assert (first.kind, first.turns) == ("merge", (1, 2, 3, 4, 5, 6))
    assert first.outcome in ("compressed", "shortened")
    assert [record.turns[0] for record in rest] == list(range(7, rest[-1].turns[0] + 1, 3))
    sources = chat.rows(
        "SELECT turns, summary, original_chars FROM record WHERE superseded_by = ? ORDER BY from_position", first.id
    )
    assert [turns for turns, *_ in sources] == ["[1,2,3]", "[4,5,6]"]
    assert first.original_chars == sum(chars for *_, chars in sources)
    assert all(without_line(summary) in merge_prompts(server)[0] for _, summary, _ in sources)
    assert summaries(server.bodies("chat")[-1])[0] == (1, 6)
    last_message = "SELECT message_id FROM message WHERE session_id = ? AND position = ?"
    assert chat.rows(last_message, chat.session_id, first.to_position) == [(first.covered_until_message_id,)]


def test_a_merge_reads_the_summaries_behind_it_and_brings_no_older_value_back(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**MERGING)
    said = {
        1: "예산은 97만 원이고 설치는 3월 6일이에요.",
        7: "예산은 97만 원 말고 120만 원으로, 설치는 3월 13일로 해요.",
    }
    noted = {1: "(1턴) 예산 97만 원, 설치 3월 6일.", 7: "(7턴) 예산 120만 원(이전 97만 원), 설치 3월 13일."}

    def respond(body: Body) -> Reply:
        if kind_of(body) != "summary":
            return answer_body(body)
        asked = "\n".join(map(content_of, body["messages"]))
        turn = next((turn for turn, words in said.items() if words in asked), 0)
        return text(
            f"(1-6턴) 행사 준비. {korean(150)}" if is_merge(body) else f"{noted.get(turn, '(4턴)')} {korean(240)}"
        )

    server.respond_with(respond)
    for number in range(1, 20):
        chat.say(f"{said.get(number, '')} {korean(300)}".strip())
        chat.wait_for_folds()
        merges = [record for record in chat.service.folds.records(chat.session_id) if record.kind == "merge"]
        if merges:
            break
    asked, merge = merge_prompts(server)[0], merges[0]
    assert merge.turns == (1, 2, 3, 4, 5, 6)
    after = asked.partition("<after>\n")[2].partition("\n</after>")[0]
    assert after.startswith("[7-9턴] (")
    assert noted[7] in after
    assert noted[1] in asked.partition("</source>")[0]
    assert "97만 원" not in asked.partition("</after>")[2]  # the facts to keep
    assert "97만 원" not in merge.summary
    assert "3월 6일" not in merge.summary
    assert not {"97만 원", "3월 6일"} & {*merge.kept_facts, *merge.missing_facts}


def test_a_merge_that_fails_leaves_the_summaries_as_they_are_and_is_picked_after_three_tries(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**MERGING)
    server.respond_with(lambda body: failure(500) if is_merge(body) else answer_body(body))
    number = ask_until(chat, lambda: len(merge_prompts(server)) == 3)
    assert chat.covered == [(k, k + 1, k + 2) for k in range(1, chat.covered[-1][-1], 3)]
    chat.say(question(number + 1))
    first, *_ = chat.service.folds.records(chat.session_id)
    assert (first.kind, first.outcome, first.turns) == ("merge", "picked", (1, 2, 3, 4, 5, 6))
    assert len(merge_prompts(server)) == 3


def test_a_merge_that_hangs_leaves_the_summaries_as_they_are_and_holds_up_no_block(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**MERGING)
    server.respond_with(lambda body: hang(is_silent=True) if is_merge(body) else answer_body(body))
    blocks = "SELECT count(*) FROM record WHERE session_id = ? AND status = 'COMPLETED' AND kind = 'interval'"
    number, more = 0, 6
    while more:
        number += 1
        more -= bool(merge_prompts(server))
        assert "FoldWaiting" not in names(chat.say(question(number)))
        chat.wait_until(lambda: chat.rows(blocks, chat.session_id) == [(number // 3,)])  # noqa: B023  # it ends before
    assert chat.covered == [(k, k + 1, k + 2) for k in range(1, number - 2, 3)]
    assert shape(server.bodies("chat")[-1])[-1] == number
