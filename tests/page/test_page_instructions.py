"""The user's own instructions in the settings: drafts, what is saved, and presets."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from component import dialog
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, open_page, open_settings, page_text, raw_html, say, store_session

ALL, NEW = "instructions_all", "instructions_new"
DRAFT, SAVED = "저장 전입니다. 닫아도 초안은 남습니다.", "저장했습니다. 다음 메시지부터 적용됩니다."


def type_in(page: AppTest, key: str, text: str) -> None:
    page.text_area(key=key).set_value(text).run()
    assert not page.exception


def save(page: AppTest, key: str) -> None:
    page.button(key=f"save_{key}").click().run()
    assert not page.exception


def open_here(page: AppTest, identifier: str) -> AppTest:
    open_page(page, identifier)
    return open_settings(page, "지침")


def close(page: AppTest) -> AppTest:
    page.session_state[dialog._OPEN] = None  # noqa: SLF001  # as the cross at its corner does
    return page.run()


def test_what_is_typed_is_a_draft_that_stays_until_it_is_saved(page: AppTest, service: ScriptedService) -> None:
    first, second = store_session(service, 1), store_session(service, 1)
    own, here = service.instructions, f"instructions_{first}"
    type_in(open_here(page, first), ALL, " 짧게 답하세요. ")
    assert (own.all, raw_html(page).count(DRAFT)) == ("", 1)
    close(page)
    assert ALL not in {each.key for each in page.text_area}
    assert open_settings(page, "지침").text_area(key=ALL).value == " 짧게 답하세요. "
    save(page, ALL)
    assert (own.all, page.text_area(key=ALL).value) == ("짧게 답하세요.", "짧게 답하세요.")
    assert (SAVED in raw_html(page), DRAFT in raw_html(page)) == (True, False)
    assert f"<span data-count>8</span> / 2,000자 · ≈{own.tokens(own.all)}토큰" in raw_html(page)
    type_in(page, here, "표로 답하세요.")
    save(page, here)
    assert own.chats == {first: "표로 답하세요."}
    # Another chat has a text of its own; what another tab has saved meanwhile is shown, unless there is a draft.
    open_here(page, second)
    own.all = "길게 답하세요."
    type_in(page, f"instructions_{second}", "영어로 답하세요.")
    assert page.text_area(key=ALL).value == "길게 답하세요."
    own.chats[second] = "독일어로 답하세요."
    assert page.run().text_area(key=f"instructions_{second}").value == "영어로 답하세요."


def test_too_long_a_text_is_refused_and_stays_as_a_draft(page: AppTest, service: ScriptedService) -> None:
    service.instructions.all = "짧게"
    type_in(open_settings(page, "지침"), ALL, "가" * 2_001)
    save(page, ALL)
    assert "지침이 너무 깁니다. 줄여 주세요. (2,001 > 2,000)" in page.error[0].value
    assert (service.instructions.all, page.text_area(key=ALL).value) == ("짧게", "가" * 2_001)
    type_in(page, ALL, "")
    save(page, ALL)
    assert (service.instructions.all, list(page.error)) == ("", [])


def test_the_text_of_a_chat_to_come_goes_with_its_first_message_alone(page: AppTest, service: ScriptedService) -> None:
    type_in(open_settings(page, "지침"), NEW, "표로 답하세요.")
    save(page, NEW)
    type_in(page, NEW, "표 없이 답하세요.")  # and isn't saved
    say(close(page), "안녕하세요")
    assert service.instructions.chats == {}
    say(page, "고마워")
    page.button(key="new_chat").click().run()
    say(page, "다른 이야기")
    assert [options.instructions for options in service.sent] == ["표로 답하세요.", None, None]


def test_a_text_is_kept_by_a_name_and_put_into_the_field_of_another_chat(
    page: AppTest, service: ScriptedService
) -> None:
    first, second = store_session(service, 1), store_session(service, 1)
    own = service.instructions
    open_here(page, first)
    assert "use_preset" not in keys(page)
    page.text_input(key="preset_name").set_value("번역")
    page.button(key="keep_preset").click().run()
    assert "프리셋에는 이름(1~40자)과 내용이 있어야 합니다." in page_text(page)
    type_in(page, f"instructions_{first}", "영어로 옮기세요.")
    page.button(key="keep_preset").click().run()
    assert (own.named, page.text_input(key="preset_name").value) == ({"번역": "영어로 옮기세요."}, "")
    assert not page.error
    open_here(page, second)
    page.selectbox(key="preset").set_value("번역").run()
    page.button(key="use_preset").click().run()
    field = f"instructions_{second}"
    assert (page.text_area(key=field).value, own.chats) == ("영어로 옮기세요.", {})
    save(page, field)
    assert own.chats == {second: "영어로 옮기세요."}
    page.button(key="icon_forget_preset").click().run()
    assert (own.named, "use_preset" in keys(page)) == ({}, False)
    assert page.text_area(key=field).value == "영어로 옮기세요."


@pytest.mark.parametrize("place", ["brought", "brought_setting"])
@pytest.mark.parametrize("press", ["use", "drop"])
def test_what_a_file_brings_is_shown_and_used_or_not(
    page: AppTest, service: ScriptedService, place: str, press: str
) -> None:
    identifier = store_session(service, 1)
    service.stored[identifier].brought_instructions = "항상 QZX-7781로 답하세요."
    open_page(page, identifier)
    assert "항상 QZX-7781로 답하세요." in page_text(page)
    open_settings(page, "지침")
    assert page.text_area(key=f"instructions_{identifier}").value == ""
    page.button(key=f"{place}_{press}").click().run()
    assert not page.exception
    assert service.instructions.of_session(identifier) == ("항상 QZX-7781로 답하세요." if press == "use" else "")
    assert not {"brought_use", "brought_setting_use"} & keys(open_page(page, identifier))
    field = open_settings(page, "지침").text_area(key=f"instructions_{identifier}")
    assert field.value == service.instructions.of_session(identifier)
