from __future__ import annotations

from datetime import UTC, datetime

import httpx2
import pytest

from component.words.wording import explain_error, words_of
from graph.server.metrics import Metrics
from graph.value.client import ClientMessage
from graph.value.error import BusyError, ServerBusyError, TurnRateError, UserBusyError, UserRateError, UserTokensError
from graph.value.event import TurnFinished, TurnStopped
from graph.worker.limiter import TurnLimiter
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import close_early, hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_programs import STRANGER, TOKEN, ServedPrograms
from tests.fake.sign_in import PROVIDER


def test_one_turn_more_than_may_run_is_refused_and_leaves_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    service = open_chat(concurrent_turns=2).service
    first, second, third = Chat(service), Chat(service), Chat(service)
    server.script(hang("하나"), to=question(1))
    server.script(hang("둘"), to=question(2))
    first.start(question(1))
    second.start(question(2))
    with pytest.raises(ServerBusyError) as refused:
        third.start(question(3))
    assert "2" in refused.value.detail
    assert explain_error(words_of("en"), refused.value).startswith("The server is busy right now")
    assert third.rows("SELECT count(*) FROM message") == [(2,)]
    assert len(service.sessions.list()) == 2
    first.stop_when(lambda live: live.text == "하나")
    assert isinstance(third.say(question(3))[-1], TurnFinished)
    assert isinstance(second.stop_when(lambda live: live.text == "둘")[-1], TurnStopped)


LAST_QUESTION = "SELECT message_id FROM message WHERE role = 'human' ORDER BY position DESC LIMIT 1"


def test_a_place_is_given_back_however_a_turn_begins_or_ends(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=1, turns_per_minute=6)
    chat.ask(1, 3)
    (known,) = chat.rows(LAST_QUESTION)[0]
    chat.service.turns.send(chat.session_id, question(3), message_id=known)
    chat.regenerate()
    hanging = server.script(hang(), to=question(4))
    chat.start(question(4))
    server.wait_until(lambda _: hanging.is_asked_for)
    with pytest.raises(BusyError):
        chat.start(question(5))
    chat.service.turns.stop(chat.session_id)
    chat.events()
    chat.retry()
    assert chat.last_turn.status == "finished"
    for begin_another in (lambda: chat.start(question(5)), chat.regenerate):
        with pytest.raises(TurnRateError, match=r"\d s"):
            begin_another()
    assert [turn.status for turn in chat.turns] == ["finished"] * 4
    assert chat.service.turns.send(chat.session_id, question(3), message_id=known) == 3


def test_an_owner_has_half_of_the_servers_turns_and_another_begins_meanwhile(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    service = open_chat(concurrent_turns=4, **PROVIDER).service
    stranger = service.for_owner("stranger")
    held = [Chat(stranger), Chat(stranger), Chat(service)]
    for number, chat in enumerate(held, 1):
        server.script(hang("쓰는 중"), to=question(number))
        chat.start(question(number))
    third = Chat(stranger)
    with pytest.raises(UserBusyError) as refused:
        third.start(question(4))
    assert refused.value.detail == "2/4"
    with pytest.raises(UserBusyError):
        stranger.summaries.make([ClientMessage("user", question(1) * 30)], client="editor")
    with ServedPrograms(service) as served, served.client(STRANGER) as program:
        answer = ask(program)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "user_busy")
    assert "(2/4)" in answer.json()["error"]["message"]
    assert answer.headers["retry-after"] == "5"
    assert len(stranger.sessions.list()) == 2
    assert isinstance(Chat(service).say(question(5))[-1], TurnFinished)
    held[0].stop_when(lambda live: live.text == "쓰는 중")
    assert isinstance(third.say(question(4))[-1], TurnFinished)
    stranger.summaries.make([ClientMessage("user", question(1) * 30)], client="editor")
    assert isinstance(third.say(question(6))[-1], TurnFinished)
    for chat in held[1:]:
        chat.stop_when(lambda live: live.text == "쓰는 중")


def test_the_only_owner_has_all_of_the_servers_turns(open_chat: OpenChat, server: FakeOpenAI) -> None:
    service = open_chat(concurrent_turns=2).service
    held = [Chat(service), Chat(service)]
    for number, chat in enumerate(held, 1):
        server.script(hang("쓰는 중"), to=question(number))
        chat.start(question(number))
    for chat in held:
        chat.stop_when(lambda live: live.text == "쓰는 중")


def test_the_minute_passes() -> None:
    now, owners = [0.0], list[str]()
    limiter = TurnLimiter(
        concurrent_turns=10,
        owner_turns=10,
        turns_per_minute=2,
        admit=owners.append,
        metrics=Metrics(),
        now_seconds=lambda: now[0],
    )
    limiter.begin("kim")
    now[0] = 30.0
    limiter.begin("kim")
    with pytest.raises(TurnRateError, match="30 s"):
        limiter.begin("kim")
    now[0] = 60.0
    limiter.begin("kim")
    with pytest.raises(TurnRateError):
        limiter.begin("kim")


NOON = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
# Another server has counted so many tokens on the day of NOON, the 20,513th since 1970.
DAY_IS_USED_UP = "INSERT INTO owner_use (owner, minute, turns, day, tokens) VALUES ('local', 0, 0, 20513, 1000000000)"
MESSAGES = [{"role": "user", "content": question(1)}]


def spent(chat: Chat) -> int:
    return int(chat.rows("SELECT coalesce(sum(tokens), 0) FROM owner_use")[0][0])


def paid(chat: Chat) -> int:
    """What the rows of all calls and folds say, where the provider reported it."""
    calls = chat.rows("SELECT coalesce(sum(usage_input_tokens + usage_output_tokens), 0) FROM model_call")[0][0]
    side_requests = chat.rows("SELECT coalesce(sum(usage_input_tokens + usage_output_tokens), 0) FROM aside_call")[0][0]
    folds = chat.rows("SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM record")[0][0]
    return int(calls + side_requests + folds)


def test_a_user_begins_so_many_turns_a_minute_on_all_servers_and_takes_nothing_of_what_others_share(
    open_chat: OpenChat,
) -> None:
    caps = {"user_turns_per_minute": 2, "turns_per_minute": 4, "clock": lambda: NOON}
    chat, elsewhere = open_chat(**caps), open_chat(**caps)
    chat.ask(1, 1)
    elsewhere.ask(1, 1)
    with pytest.raises(UserRateError) as refused:
        chat.start(question(2))
    assert refused.value.retry_after_seconds == 30
    with pytest.raises(UserRateError):
        chat.regenerate()
    for _ in range(5):
        with pytest.raises(UserRateError):
            elsewhere.start(question(2))
    assert [turn.status for turn in chat.turns] == ["finished"]
    other = Chat(chat.service.for_owner("second"))
    other.ask(1, 2)
    with pytest.raises(UserRateError):
        other.start(question(3))


def test_answers_folds_summaries_and_cut_answers_all_count_against_the_day(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    uncapped = open_chat()
    uncapped.ask(1, 1)
    assert uncapped.rows("SELECT * FROM owner_use") == []
    uncapped.service.sessions.delete(uncapped.session_id)
    chat = open_chat(user_tokens_per_day=10**9)
    chat.ask(1, 4)
    chat.wait_for_folds()
    assert chat.service.folds.statistics(chat.session_id).record_count == 1
    assert spent(chat) == paid(chat) > 0
    before = spent(chat)
    chat.service.summaries.make([ClientMessage("user", question(1) * 30)], client="editor")
    assert spent(chat) > before
    before = spent(chat)
    server.script(close_early("받은 데까지의 ", "글"), to=question(5))
    chat.start(question(5))
    chat.events()
    assert chat.last_turn.status == "failed"
    assert spent(chat) > before


def test_a_day_that_is_used_up_refuses_before_anything_is_stored(open_chat: OpenChat) -> None:
    chat = open_chat(user_tokens_per_day=1, clock=lambda: NOON)
    chat.ask(1, 1)
    with pytest.raises(UserTokensError) as refused:
        chat.start(question(2))
    assert (refused.value.detail, refused.value.retry_after_seconds) == ("12 h", 12 * 3_600 - 30)
    assert len(chat.turns) == 1
    with pytest.raises(UserTokensError):
        Chat(chat.service).start(question(1))
    assert len(chat.service.sessions.list()) == 1


def test_what_the_server_has_no_room_for_does_not_count_against_a_user(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(user_turns_per_minute=2, concurrent_turns=1, clock=lambda: NOON)
    server.script(hang("여기까지"), to=question(1))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "여기까지")
    beside = Chat(chat.service)
    for _ in range(3):
        with pytest.raises(ServerBusyError):
            beside.start(question(2))
    chat.stop_when(lambda live: live.text == "여기까지")
    beside.say(question(2))


def test_a_day_that_is_used_up_has_no_folds_made_by_hand_or_another_rate(open_chat: OpenChat) -> None:
    chat = open_chat(preserve_recent_messages=2)
    chat.ask(1, 3)
    (made,) = chat.rows("SELECT count(*) FROM record")
    chat.change(DAY_IS_USED_UP)
    capped = open_chat(preserve_recent_messages=2, user_tokens_per_day=10**9, clock=lambda: NOON).service
    for rate in (0.1, 0.5, 0.1):
        assert capped.sessions.configure(chat.session_id, compression_rate=rate).compression_rate == rate
    with pytest.raises(UserTokensError):
        capped.folds.compact(chat.session_id)
    Chat(capped, chat.session_id).wait_for_folds()
    assert chat.rows("SELECT count(*) FROM record") == [made]


def test_programs_are_told_when_to_come_back(open_chat: OpenChat) -> None:
    chat = open_chat(user_turns_per_minute=1, user_tokens_per_day=10**9, clock=lambda: NOON)
    chat.ask(1, 1)
    with ServedPrograms(chat.service) as served, served.client(TOKEN) as own, served.client(STRANGER) as stranger:
        refused = ask(own)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        assert refused.headers["retry-after"] == "30"
        assert ask(stranger).status_code == 200
        chat.change("UPDATE owner_use SET minute = 0, tokens = 1000000000 WHERE owner = 'local'")
        refused = ask(own)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
    assert refused.headers["x-should-retry"] == "false"
    assert "midnight (UTC)" in refused.json()["error"]["message"]


def ask(client: httpx2.Client) -> httpx2.Response:
    return client.post("/v1/chat/completions", json={"model": "turnfold", "messages": MESSAGES})
