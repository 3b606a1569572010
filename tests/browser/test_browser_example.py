from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import visiting
from tests.browser.visitor import Visitor


def open_example(visitor: Visitor) -> str:
    visitor.find("open_example").locator("button").click()
    visitor.page.wait_for_url("**session=*")  # a turn 7 of the chat before may still stand there
    expect(visitor.turn(7)).to_be_visible()
    visitor.settle()  # until the run ends the empty page's sample of a card stands in the panel too
    return visitor.session_id


def test_a_newcomer_sees_two_folds_and_what_they_keep(newcomer: Visitor) -> None:
    newcomer.open()
    open_example(newcomer)
    panel = newcomer.find("panel")
    expect(panel.get_by_text("[4-6턴 요약]")).to_be_visible()
    expect(panel.get_by_text("[1-3턴 요약]")).to_be_visible()
    expect(panel.get_by_text("토큰 0 · 예시로 써 둔 요약")).to_have_count(2)
    expect(panel).to_contain_text("10월 14일 22시 전환으로 결정")
    expect(newcomer.turn(1)).to_contain_text("3~4일")
    expect(newcomer.page.get_by_text("위 1–3턴은 요약으로 기억합니다")).to_be_attached()
    newcomer.open_statistics()
    expect(panel).to_contain_text(re.compile(r"총 요약: 2개 \(6턴 압축\).*전체 압축률: 69% 절감", re.DOTALL))
    expect(panel).to_contain_text("다음 답변이 끝나면 그래프가 나타납니다.")


def test_it_goes_on_and_is_opened_again_not_made_twice(newcomer: Visitor) -> None:
    newcomer.open()
    first = open_example(newcomer)
    newcomer.ask("예산이 월 얼마라고 했지?", first=8)
    expect(newcomer.turn(8)).to_contain_text("45만 원")
    expect(newcomer.turn(8)).not_to_contain_text("오프라인 모델")
    expect(newcomer.find("bar")).to_contain_text("offline-mini · 내장 · 컨텍스트")
    newcomer.find("new_chat").locator("button").click()
    assert open_example(newcomer) == first
    expect(newcomer.turn(8)).to_be_visible()
    expect(newcomer.find("sessions").get_by_role("button", name="예시: 사내 위키 이전", exact=True)).to_have_count(1)


@pytest.mark.parametrize("locale", ["ko-KR", "en-US"])
def test_a_phone_has_it_in_its_language(chromium: Browser, offline_address: str, locale: str) -> None:
    options = {"locale": locale, "viewport": {"width": 390, "height": 844}, "has_touch": True}
    with visiting(chromium, offline_address, **options) as phone:
        phone.open()
        open_example(phone)
        expect(phone.turn(1)).to_contain_text("12,400")
        expect(phone.find("open_panel")).to_contain_text("요약 2" if locale == "ko-KR" else "Summaries 2")
        scroller = phone.page.locator("#stMain")
        assert scroller.evaluate("box => box.scrollWidth === box.clientWidth")
