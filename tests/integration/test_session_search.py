from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from component import service_provider
from tests.fake.chat import Chat
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI
from tests.page.reading import new_page, open_page


@pytest.fixture
def told(chat: Chat, server: FakeOpenAI) -> Iterator[Chat]:
    server.script(text("야간버스는 서면에서 탑니다. 예약 번호는 KX-7781입니다."), text("네."), to="표")
    chat.say("부산 여행 표를 부탁해요.")
    chat.say("표가 하나 더 필요해요.")
    service_provider.provide(chat.service)
    yield chat
    service_provider.provide(None)


def is_shown(page: AppTest, turn: int) -> bool:
    return any(block.proto.id.endswith(f"-turn_{turn}") for block in page.main.get("flex_container"))


def test_a_chat_is_found_by_what_was_said_in_it(told: Chat) -> None:
    (item,) = told.service.sessions.list(search="예약 번호가")
    assert (item.session_id, item.found_turn) == (told.session_id, 1)
    assert item.found_text == "예약 번호는 KX-7781입니다."
    assert told.service.sessions.count(search="예약 번호가") == 1
    (titled,) = told.service.sessions.list(search="부산 여행")
    assert (titled.found_turn, titled.found_text) == (None, "")
    assert told.service.sessions.list(search="낙하산") == ()
    assert told.service.sessions.count(search="낙하산") == 0
    assert told.service.sessions.list()[0].found_turn is None


def test_the_line_that_was_found_shows_the_words_of_a_long_sentence(told: Chat) -> None:
    told.say(f"{'아주 길게 이어지는 이야기 끝에 ' * 8}호텔 이름은 해오름장이라고 적어 둡니다")
    (item,) = told.service.sessions.list(search="해오름장")
    assert "해오름장" in item.found_text
    assert len(item.found_text) <= 50


@pytest.mark.usefixtures("told")
def test_nobody_finds_the_chat_of_another_owner(open_chat: OpenChat) -> None:
    other = open_chat(turnfold_owner="somebody-else")
    assert other.service.sessions.list(search="예약 번호") == ()
    assert other.service.sessions.count(search="예약 번호") == 0


def test_the_list_shows_the_line_and_a_click_opens_the_chat_at_its_turn(told: Chat) -> None:
    page = new_page().run()
    page.text_input(key="search").set_value("예약 번호").run()
    found = page.button(key=f"found_{told.session_id}")
    assert found.label == r"1턴: 예약 번호는 KX-7781입니다."
    found.click().run()
    assert page.query_params["session"] == told.session_id
    assert page.session_state["landing"] == (1, 1)
    page.run()
    assert page.session_state["landing"] == (1, 1)


def test_an_old_turn_is_shown_though_the_page_begins_with_later_ones(told: Chat, server: FakeOpenAI) -> None:
    for number in range(3, 35):
        server.script(text("네."), to=f"{number}째")
        told.say(f"{number}째 말입니다.")
        told.wait_for_folds()
    page = open_page(new_page(), told.session_id)
    assert not is_shown(page, 1)
    page.text_input(key="search").set_value("예약 번호").run()
    page.button(key=f"found_{told.session_id}").click().run()
    assert is_shown(page, 1)
    assert page.session_state["landing"] == (1, 1)
