from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from graph.error import NotFoundError, SignInError, TurnRateError
from tests.fake.chat import question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import Owners, withdrawn

NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)


def test_an_owner_who_is_not_let_in_has_no_service(owners: Owners) -> None:
    service = owners.chat.service
    with pytest.raises(SignInError, match="sign_in") as ended:
        service.for_owner("first", until=NOW)
    assert ended.value.reason == "ended"
    with withdrawn(service, "first"):
        for until in (None, datetime.now(UTC) + timedelta(hours=1)):
            with pytest.raises(SignInError) as caught:
                service.for_owner("first", until=until)
            assert caught.value.reason == "withdrawn"
        assert service.for_owner("second").sessions.list() == ()
    assert service.for_owner("first") is service
    assert service.for_owner("first", until=datetime.now(UTC) + timedelta(hours=1)).sessions.count() == 1


def test_a_turn_that_runs_is_kept_while_its_owner_is_withdrawn(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(turnfold_owner="leaver")
    server.script(hang("여기까지"))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "여기까지")
    with withdrawn(chat.service, "leaver"), pytest.raises(NotFoundError):
        chat.service.turns.live(chat.session_id, seen=None, wait_seconds=1)
    chat.stop_when(lambda live: live.text == "여기까지")
    assert (chat.last_turn.status, chat.last_turn.answer_text) == ("stopped", "여기까지")


def test_a_message_that_another_has_sent_is_not_known_to_whoever_sends_it_again(owners: Owners) -> None:
    sent = owners.chat.rows("SELECT message_id FROM message WHERE position = 1")[0][0]
    with pytest.raises(NotFoundError):
        owners.other.turns.send(owners.chat.session_id, question(1), message_id=sent)
    with withdrawn(owners.chat.service, "first"), pytest.raises(NotFoundError):
        owners.chat.service.turns.send(owners.chat.session_id, question(1), message_id=sent)
    assert owners.chat.service.turns.send(owners.chat.session_id, question(1), message_id=sent) == 1


def test_that_another_is_answered_just_now_is_not_told(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    server.script(hang("여기까지"))
    chat.start(question(1))
    chat.wait_until_live(lambda live: live.text == "여기까지")
    with pytest.raises(NotFoundError):
        chat.service.for_owner("second").turns.send(chat.session_id, question(1))
    chat.stop_when(lambda live: live.text == "여기까지")


def test_each_owner_lists_and_reads_what_is_his(owners: Owners) -> None:
    assert owners.other.sessions.list() == ()
    assert owners.other.sessions.list(also=owners.chat.session_id) == ()
    assert owners.other.sessions.list(search="김민수") == ()
    assert owners.other.sessions.count(search="김민수") == 0
    assert [item.session_id for item in owners.chat.service.sessions.list()] == [owners.chat.session_id]
    assert owners.chat.service.folds.statistics(owners.chat.session_id).record_count == 1
    assert len(owners.chat.service.folds.chart(owners.chat.session_id)) == 4
    assert owners.chat.events()


def test_each_owner_agrees_to_the_rules_of_a_project(owners: Owners) -> None:
    mine, theirs, root = owners.chat.service.projects, owners.other.projects, str(owners.root)
    mine.agree(root, mine.rules(root).digest)
    assert (mine.rules(root).state, theirs.rules(root).state) == ("agreed", "new")


def test_each_owner_lists_and_withdraws_his_own_programs(owners: Owners) -> None:
    mine, theirs = owners.chat.service.programs, owners.other.programs
    made = mine.admit("editor")
    assert theirs.list() == ()
    theirs.withdraw(made.shown.id)
    theirs.withdraw("no-such-token")
    assert mine.list() == (made.shown,)
    mine.withdraw(made.shown.id)
    assert mine.list() == ()


def test_each_owner_has_an_example_of_his_own(owners: Owners) -> None:
    theirs = owners.other.sessions.open_example("ko")
    mine = owners.chat.service.sessions.open_example("ko")
    assert theirs != mine
    for service, session_id in ((owners.other, theirs), (owners.chat.service, mine)):
        service.sessions.delete(session_id)


def test_two_owners_of_one_server_share_its_limits(open_chat: OpenChat) -> None:
    first = open_chat(turns_per_minute=1)
    first.ask(1, 1)
    with pytest.raises(TurnRateError):
        first.service.for_owner("second").turns.send("theirs", question(1))
    assert first.service.for_owner("second").sessions.list() == ()
