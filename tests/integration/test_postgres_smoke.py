"""Shows in a few seconds that the product works over Postgres; each rule's own tests run over SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from langchain_core.messages import AIMessage
from pydantic import SecretStr
from sqlalchemy import text as sql

from graph.core.attached import attachment_of, with_attachments
from graph.server.identity import new_token
from graph.service import ChatService
from graph.store.database import head_revision, read_revision
from graph.store.lease import LeaseStore
from graph.store.owner import OwnerUseStore
from graph.store.postgres.postgres_database import open_postgres
from graph.store.search import Hit
from graph.value.error import BusyError, LeaseLostError, UserRateError
from graph.value.event import TurnFinished, TurnStopped
from tests.fake.body import content_of, faults, shape
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.postgres import PostgresServer, cut_connections
from tests.fake.resending import begin
from tests.fake.store import OWNER, SESSION, StoreSet
from tests.integration.test_store_database import differences

pytestmark = pytest.mark.postgres
PNG = "data:image/png;base64,iVBORw0K"
PRICES = '{"currency": "USD", "models": {"scripted-model": {"input": 2, "output": 8}}}'


@pytest.fixture
def engine() -> str:
    return "postgres"


@pytest.fixture(scope="module")
def url(postgres: PostgresServer, postgres_template: str) -> Iterator[str]:
    url = postgres.make_database(postgres_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="module")
def open_server(endpoint: FakeOpenAI, url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenChat]:
    folder = tmp_path_factory.mktemp("smoke")
    with chat_opener(settings_maker(folder, endpoint.url, SecretStr(url))) as opened:
        yield opened


@pytest.fixture(scope="module")
def module_service(open_server: OpenChat) -> ChatService:
    return open_server(model_prices=PRICES).service


@pytest.fixture(scope="module")
def elsewhere(open_server: OpenChat) -> ChatService:
    """Another server over the same database."""
    return open_server().service


def there(chat: Chat, elsewhere: ChatService) -> Chat:
    """The same session at the other server."""
    return Chat(elsewhere, chat.session_id)


def test_tables_are_made_in_an_empty_database(postgres_url: str) -> None:
    with (
        closing(open_postgres(SecretStr(postgres_url), busy_timeout_seconds=30)) as database,
        database.read() as connection,
    ):
        assert read_revision(connection) == head_revision()
        assert differences(connection) == []


def test_chat_of_seven_turns_has_two_folds_and_tells_what_they_save(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 7)
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    bodies = server.bodies("chat")
    assert all(faults(body["messages"]) == [] for body in bodies)
    assert [shape(body) for body in bodies[3:]] == [[(1, 3), 4], [(1, 3), 4, 5], [(1, 3), 4, 5, 6], [(1, 3), (4, 6), 7]]
    folds = chat.service.folds
    assert all(call.is_verified for turn in range(1, 8) for call in chat.service.inputs.of_turn(chat.session_id, turn))
    assert folds.statistics(chat.session_id).record_count == 2
    savings, cost = folds.savings(chat.session_id), chat.service.costs.of_session(chat.session_id)
    assert savings.unsent_tokens == sum(point.full_tokens - point.sent_tokens for point in folds.chart(chat.session_id))
    assert cost is not None
    assert cost.total.amount > 0
    folds.reset(chat.session_id)
    past = folds.past_statistics(chat.session_id)
    assert (past.record_count, past.unsent_tokens) == (2, savings.unsent_tokens)


def test_turns_go_on_at_another_server(chat: Chat, elsewhere: ChatService, server: FakeOpenAI) -> None:
    other = there(chat, elsewhere)
    for number in range(1, 5):
        (chat, other)[number % 2].ask(number, number)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]
    assert len(server.bodies("summary")) == 1
    assert other.turns == chat.turns


def test_running_turn_is_shown_and_stopped_by_another_server(
    chat: Chat, elsewhere: ChatService, server: FakeOpenAI
) -> None:
    server.script(hang("부분"))
    chat.start(question(1))
    other = there(chat, elsewhere)
    other.wait_until_live(lambda live: live.text == "부분")
    with pytest.raises(BusyError):
        other.start(question(2))
    elsewhere.turns.stop(chat.session_id)
    assert chat.events()[-1] == TurnStopped(1, "부분")
    assert other.last_turn.answer_text == "부분"


def test_session_is_found_in_korean_and_english(chat: Chat) -> None:
    chat.say("낙하산을 타러 제주도에 가요.")
    chat.say("We booked the parachute lesson for Friday.")

    def found(search: str) -> list[str]:
        return [item.session_id for item in chat.service.sessions.list(search=search)]

    assert found("낙하산") == found("제주도에서 낙하산") == found("booking a parachute") == [chat.session_id]
    assert found("열기구") == []


def test_model_recalls_what_was_said(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("적었습니다."), to="예약 번호는")
    chat.say("야간버스 예약 번호는 KX-7781입니다.")
    call = ScriptedCall("recall", json.dumps({"query": "야간버스의 예약"}), "call-1")
    server.script(tools(call), text("KX-7781입니다."), to="몇 번")
    chat.say("몇 번이었죠?")
    assert "KX-7781" in content_of(server.bodies("chat")[-1]["messages"][-1])
    assert chat.last_turn.steps[0].status == "done"


def test_branch_goes_on_from_its_turn_and_a_deleted_session_comes_back(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    sessions = chat.service.sessions
    fork = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=3))
    edited = Chat(chat.service, chat.service.turns.edit(fork.session_id, 3, question(9)))
    assert isinstance(edited.events()[-1], TurnFinished)
    fork.ask(4, 4)
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]
    assert [turn.user_text for turn in edited.turns] == [question(1), question(2), question(9)]
    deleted = sessions.delete_many([chat.session_id])
    assert chat.session_id not in {item.session_id for item in sessions.list()}
    sessions.undo_delete(deleted)
    chat.ask(5, 5)
    sessions.delete(chat.session_id)
    assert chat.rows("SELECT count(*) FROM message WHERE session_id = ?", chat.session_id) == [(0,)]


@pytest.mark.slow
def test_record_is_edited_and_undone_and_a_pinned_message_stands_under_it(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 4)
    folds, session_id = chat.service.folds, chat.session_id
    made = folds.records(session_id)[0]
    folds.pin(session_id, chat.turns[1].user_message_id)
    edited = folds.edit(session_id, made.id, "서버는 10월에 옮깁니다.")
    chat.ask(5, 5)
    sent = content_of(server.bodies("chat")[-1]["messages"][0])
    assert "서버는 10월에 옮깁니다." in sent
    assert f"[2턴 사용자 원문] {question(2)}" in sent
    assert [record.id for record in folds.versions(session_id, edited.id)] == [made.id, edited.id]
    assert folds.use_version(session_id, made.id).summary == made.summary
    folds.undo(session_id, made.id)
    chat.ask(6, 6)
    assert question(1) in str(server.bodies("chat")[-1])


@pytest.mark.slow
def test_context_is_compacted_restored_and_reset(open_server: OpenChat, server: FakeOpenAI) -> None:
    chat = open_server(context_strategy="compaction")
    chat.ask(1, 4)
    folds = chat.service.folds
    record = folds.compact(chat.session_id)
    folds.restore(chat.session_id, record.id)
    assert chat.covered == []
    folds.reset(chat.session_id)
    folds.undo_reset(chat.session_id)
    folds.reset(chat.session_id)
    chat.ask(5, 5)
    assert question(4) not in str(server.bodies("chat")[-1])


@pytest.mark.slow
def test_title_is_made_and_kept(open_server: OpenChat, server: FakeOpenAI) -> None:
    chat = open_server(auto_titles=True)
    server.script(text("서버 이전 계획"), kind="title", may_stay=True)
    chat.ask(1, 2)
    chat.wait_until(lambda: chat.view.title == "서버 이전 계획")
    chat.service.sessions.rename(chat.session_id, "내 제목")
    assert chat.view.title == "내 제목"


def test_long_file_is_kept_beside_the_chat_and_presets_are_their_owners(
    open_server: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_server(model_window_tokens=8_000)
    lines = "\n".join(f"{number}번 요청을 처리했습니다" for number in range(1, 9_001))
    server.script(tools(ScriptedCall("look_in_file", json.dumps({"lines": "7000"}), "call-1")), text("7000줄입니다."))
    chat.say(with_attachments("7000줄은?", [attachment_of("server.log", lines)], "ko"))
    assert "7000: 7000번 요청" in content_of(server.bodies("chat")[-1]["messages"][-1])
    instructions = chat.service.instructions
    instructions.keep_preset("번역", "한국어로")
    instructions.keep_preset("번역", "영어로")
    assert instructions.presets() == {"번역": "영어로"}
    assert chat.service.for_owner("other").instructions.presets() == {}


@pytest.mark.slow
def test_export_comes_back_with_an_image(chat: Chat) -> None:
    chat.ask(1, 4)
    chat.service.turns.send(chat.session_id, question(5), images=[PNG])
    chat.events()
    exported, before = chat.service.sessions.export(chat.session_id), chat.turns
    chat.service.sessions.delete(chat.session_id)
    assert chat.service.sessions.import_session(exported) == (chat.session_id,)
    assert chat.turns == before
    assert all(call.is_verified for turn in range(1, 6) for call in chat.service.inputs.of_turn(chat.session_id, turn))
    chat.ask(6, 6)


def test_chat_of_a_program_is_recognised_by_another_server(chat: Chat, elsewhere: ChatService) -> None:
    program = begin(chat)
    first = program.ask(question(1))
    program.service = elsewhere
    again = program.ask(question(2))
    assert (again.session_id, again.turn, again.matched) == (first.session_id, 2, "history")


def test_users_turns_are_counted_over_all_servers(open_server: OpenChat) -> None:
    one, other = (open_server(user_turns_per_minute=1).service.for_owner("capped") for _ in "12")
    Chat(one).ask(1, 1)
    with pytest.raises(UserRateError):
        Chat(other).start(question(2))


def test_pools_and_health_are_told(chat: Chat) -> None:
    chat.service.health()
    told = chat.service.metrics().decode()
    assert all(f'turnfold_pool_connections{{pool="{pool}"' in told for pool in ("database", "checkpoints"))


@pytest.mark.slow
def test_cut_connections_cost_a_chat_nothing(chat: Chat, server: FakeOpenAI, url: str) -> None:
    chat.ask(1, 1)
    assert cut_connections(url)
    chat.ask(2, 2)
    assert shape(server.bodies("chat")[-1]) == [1, 2]


def test_lease_that_ran_out_is_taken_over_and_its_fence_stops_the_old_holder(stores: StoreSet) -> None:
    old = stores.make_session()
    turn = stores.begin(old, "q1")
    other = LeaseStore(stores.database, lease_seconds=20, heartbeat_seconds=60)
    with pytest.raises(BusyError):
        other.acquire(SESSION)
    stores.clock.move(21)
    new = other.acquire(SESSION)
    assert new.fence == old.fence + 1
    with pytest.raises(LeaseLostError):
        stores.turns.finish(old, turn.number, "finished")
    stores.turns.finish(new, turn.number, "failed", error_code="closed")


def test_fold_is_made_and_adopted_once(stores: StoreSet) -> None:
    stores.leases.release(stores.make_session())
    first, second = stores.make_record("r1"), stores.make_record("r2")
    assert stores.start(first)
    assert not stores.start(second)
    stores.clock.move(60)
    stores.complete(second)
    assert not stores.records.end(first.with_changes(status="COMPLETED", summary="too late"))
    lease = stores.leases.acquire(SESSION)
    for _ in range(2):
        assert stores.records.adopt(lease, "r2")
    assert [record.id for record in stores.records.active(SESSION)] == ["r2"]


def test_token_use_and_search_are_each_owners_own(stores: StoreSet) -> None:
    token, lease = new_token(), stores.make_session()
    stores.tokens.add(OWNER, "편집기", token, {"recall"})
    found = stores.tokens.find(token)
    assert found is not None
    assert (found[0], found[1].name) == (OWNER, "편집기")
    use = OwnerUseStore(stores.database, clock=stores.clock, turns_per_minute=1, tokens_per_day=10)
    use.begin(OWNER)
    with pytest.raises(UserRateError):
        use.begin(OWNER)
    turn = stores.begin(lease, "q1", "예산은 120만 원")
    stores.say(lease, turn, AIMessage("예산을 적었습니다.", id="a1"))
    stores.run_turn(stores.make_session("theirs"), "other")
    assert stores.search.sessions(OWNER, "예산은", limit=5) == {SESSION: Hit(1, 2)}
    assert stores.search.sessions("mallory", "예산", limit=5) == {}


def test_no_statement_has_a_name_on_the_server(stores: StoreSet) -> None:
    # Behind PgBouncer in transaction mode the next statement may run on another connection.
    stores.make_session()
    with stores.database.read() as connection:
        for _ in range(20):
            connection.execute(sql("SELECT title FROM session"))
        assert connection.execute(sql("SELECT count(*) FROM pg_prepared_statements")).scalar() == 0
