from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from streamlit.testing.v1 import AppTest

from component.format import escape_label
from tests.fake.scripted_programs import SECRET
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, open_settings, page_text, raw_html


@pytest.fixture
def box(page: AppTest) -> AppTest:
    return open_settings(page, "API 연결")


def make(page: AppTest, name: str, *, with_tools: bool = True, is_personal: bool | None = None) -> AppTest:
    """Creates a token; with `is_personal` None its tick is left as it is."""
    page.text_input(key="program_name").set_value(name)
    page.checkbox(key="program_tools").set_value(with_tools)
    if is_personal is not None:
        page.checkbox(key="program_personal").set_value(is_personal)
    return page.button(key="make_token").click().run()


def test_names_are_shown_as_they_are_and_the_day_of_the_last_use(page: AppTest, service: ScriptedService) -> None:
    service.programs.admit("a [link](http://x) *b*", tools={"recall", "web_search"})
    service.programs.tokens[0] = replace(service.programs.tokens[0], last_used_on=date(2026, 11, 23))
    open_settings(page, "API 연결")
    assert f"**{escape_label('a [link](http://x) *b*')}**" in page_text(page)
    assert "마지막 사용 2026-11-23 · 도구: recall, web\\_search" in page_text(page)


def test_a_token_is_shown_once_and_its_program_listed(box: AppTest, service: ScriptedService) -> None:
    make(box, "  ")
    assert "이름은 1~32자로 입력해 주세요(공백·제어 문자만으로는 안 됩니다)." in page_text(box)
    assert service.programs.tokens == []
    make(box, "편집기")
    assert "프로그램 이름은" not in page_text(box)
    assert f"`{SECRET}`" in page_text(box)
    assert f'data-copy="{SECRET}"' in raw_html(box)
    assert "‘편집기’의 토큰입니다. 다시 볼 수 없으니 지금 복사해 주세요." in page_text(box)
    assert "아직 쓰지 않음" in page_text(box)
    assert [token.tools for token in service.programs.tokens] == [None]
    assert box.text_input(key="program_name").value == ""
    # Opened anew, though the server never heard that it was closed.
    assert SECRET not in page_text(open_settings(box, "API 연결"))
    make(box, "스크립트", with_tools=False)
    assert "도구 없음" in page_text(box)
    assert f"`{SECRET}`" in page_text(box)


def test_a_token_is_one_persons_unless_its_tick_is_cleared_and_the_list_says_which_is_shared(
    box: AppTest, service: ScriptedService
) -> None:
    make(box, "편집기")
    assert "여럿이 함께 씀" not in page_text(box)
    make(box, "팀", is_personal=False, with_tools=False)
    assert page_text(box).count("아직 쓰지 않음 · 여럿이 함께 씀 · 도구 없음") == 1
    assert [token.is_personal for token in service.programs.tokens] == [True, False]


def test_a_program_is_withdrawn_after_a_question_that_forgets_the_token(box: AppTest, service: ScriptedService) -> None:
    make(box, "편집기")
    box.button(key="withdraw_t1").click().run()
    assert SECRET not in page_text(box)
    assert "made_token" not in box.session_state
    assert "‘편집기’의 토큰을 폐기하면 다음 요청부터 거절됩니다." in page_text(box)
    box.button(key="dialog_cancel").click().run()
    assert "dialog_confirm" not in keys(box)
    assert len(service.programs.tokens) == 1
    box.button(key="withdraw_t1").click().run()
    box.button(key="dialog_confirm").click().run()
    assert service.programs.tokens == []
    assert "withdraw_t1" not in keys(box)
