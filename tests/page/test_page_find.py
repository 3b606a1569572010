from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from streamlit.testing.v1 import AppTest

from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, raw_html, store_session


def places(page: AppTest) -> list[tuple[str, str]]:
    found = re.findall(r'class="place" data-turn="(\d+)" data-hits="1"><b>\d+</b> <span>(.*?)</span>', raw_html(page))
    return [(number, text) for number, text in found]


def days(page: AppTest) -> list[tuple[str, str]]:
    found = re.findall(r'<li><p class="day"><time datetime="(\S+?)">.*?data-turn="(\d+)"', raw_html(page))
    return [(day, number) for day, number in found]


def fields(page: AppTest) -> list[str]:
    return [str(field.key) for field in page.text_input if field.key == "find_words"]


def test_questions_are_listed_until_words_narrow_them_to_the_turns_that_have_them(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 12)
    open_page(page, identifier)
    assert (fields(page), places(page), "outline" in service.calls) == ([], [], False)
    page.button(key="icon_find").click().run()
    assert places(page) == [(str(number), f"질문 {number}") for number in range(1, 13)]
    page.text_input(key="find_words").set_value(" 질문 1 ").run()
    assert [number for number, _ in places(page)] == ["1", "10", "11", "12"]
    assert 'data-search="질문 1" data-marks="[&quot;질문 1&quot;]"' in raw_html(page)
    page.text_input(key="find_words").set_value("<낙하산>").run()
    assert (places(page), "검색 결과가 없습니다" in raw_html(page)) == ([], True)
    page.button(key="icon_find").click().run()
    assert fields(page) == []
    turns = service.stored[identifier].turns
    turns[5:] = [replace(turn, started_at=service.now + timedelta(days=2)) for turn in turns[5:]]
    page.button(key="icon_find").click().run()
    assert len(places(page)) == 12
    assert days(page) == [("2026-11-20", "1"), ("2026-11-22", "6")]


def test_line_found_in_the_sidebar_opens_the_search_in_its_chat_with_the_same_words(
    page: AppTest, service: ScriptedService
) -> None:
    first, second = store_session(service, 3), store_session(service, 3)
    session = service.stored[second]
    session.found_turn, session.found_count = 2, 3
    open_page(page, first)
    page.text_input(key="search").set_value("질문").run()
    assert page.button(key=f"found_{second}").label.startswith("2턴 외 2곳: ")
    page.button(key=f"found_{second}").click().run()
    assert page.text_input(key="find_words").value == "질문"
    assert len(places(page)) == 3
    # It belongs to that chat, and is closed in any other.
    page.button(key=f"session_{first}").click().run()
    assert fields(page) == []
