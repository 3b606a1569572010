from __future__ import annotations

from collections.abc import Iterator

import pytest

from component import service_provider
from tests.fake.chat import Chat
from tests.page.reading import new_page

COUNT = 500


def copy_session(chat: Chat, **changes: str) -> None:
    """Copies the chat's row 499 times, with the SQL expressions of `changes` over the copy's number n."""
    columns = [row[1] for row in chat.rows("PRAGMA table_info(session)")]
    values = ", ".join({"session_id": "'copy-' || n", **changes}.get(column, column) for column in columns)
    numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 499) "
    chat.change(f"{numbers} INSERT INTO session ({', '.join(columns)}) SELECT {values} FROM session, numbers")  # noqa: S608  # names of our own


@pytest.fixture
def many(chat: Chat) -> Iterator[Chat]:
    chat.ask(1, 1)
    title = "'대화 ' || n || '번'"
    copy_session(chat, title=title, title_folded=title, updated_at="updated_at - n * 3600000000")
    service_provider.provide(chat.service)
    yield chat
    service_provider.provide(None)


def test_each_of_many_sessions_is_listed_and_found(many: Chat) -> None:
    service = many.service
    everything = [item.session_id for item in service.sessions.list()]
    assert len(everything) == len(set(everything)) == service.sessions.count() == COUNT
    assert everything[0] == many.session_id
    assert everything[-1] == f"copy-{COUNT - 1}"
    assert [item.session_id for item in service.sessions.list(last=30)] == everything[:30]
    assert [item.session_id for item in service.sessions.list(search="대화 499번")] == ["copy-499"]
    assert service.sessions.count(search="대화 4") == 111
    assert len(service.sessions.list(search="대화 4", last=10)) == 10


@pytest.mark.parametrize("search", ["", "대화 4"])
def test_pages_of_sessions_neither_repeat_nor_leave_out_one(many: Chat, search: str) -> None:
    service = many.service
    many.change("UPDATE session SET updated_at = (SELECT max(updated_at) FROM session) WHERE session_id LIKE '%7'")
    everything = [item.session_id for item in service.sessions.list(search=search)]
    pages, before = [], None
    while page := service.sessions.list(search=search, last=30, before=before):
        pages += [item.session_id for item in page]
        before = page[-1].updated_at, page[-1].session_id
    assert pages == everything


def test_a_session_that_moves_to_the_front_between_two_pages_repeats_nothing(many: Chat) -> None:
    service = many.service
    first = service.sessions.list(last=30)
    many.change(
        "UPDATE session SET updated_at = updated_at + 3600000000 * 600 WHERE session_id IN ('copy-29', 'copy-40')"
    )
    second = service.sessions.list(last=30, before=(first[-1].updated_at, first[-1].session_id))
    assert [item.session_id for item in second] == [f"copy-{number}" for number in range(30, 61) if number != 40]


def test_more_leads_to_the_last_of_many_sessions(many: Chat) -> None:
    page = new_page().run()
    page.session_state["shown_sessions"] = COUNT - 40
    page.run()
    assert page.button(key="more_sessions").label == "대화 40개 더 보기"
    page.button(key="more_sessions").click().run()
    assert page.button(key="more_sessions").label == "대화 10개 더 보기"
    page.button(key="more_sessions").click().run()
    assert "more_sessions" not in {button.key for button in page.button}
    assert page.button(key=f"session_copy-{COUNT - 1}").label == f"대화 {COUNT - 1}번"
    page.text_input(key="search").set_value("대화 321번").run()
    rows = [button.key for button in page.button if str(button.key).startswith("session_")]
    assert rows == ["session_copy-321"]
    assert many.view.turn_count == 1


def test_sessions_whose_first_message_was_refused_hide_no_chat(chat: Chat) -> None:
    chat.ask(1, 1)
    copy_session(chat, turn_count="0", updated_at="updated_at + n * 3600000000")
    assert [item.session_id for item in chat.service.sessions.list()] == [chat.session_id]
    assert [item.session_id for item in chat.service.sessions.list(last=1)] == [chat.session_id]
    assert chat.service.sessions.count() == 1
