"""The user's own instructions in the settings."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, say, store_session

ALL, NEW = "instructions_all", "instructions_new"


def type_in(page: AppTest, key: str, text: str) -> None:
    page.text_area(key=key).set_value(text).run()
    assert not page.exception


def test_both_texts_are_kept_as_they_are_typed_and_too_long_a_one_is_refused_but_stays(
    page: AppTest, service: ScriptedService
) -> None:
    first, second = store_session(service, 1), store_session(service, 1)
    here = f"instructions_{first}"
    open_page(page, first)
    type_in(page, ALL, " 짧게 답하세요.")
    page.text_area(key=here).set_value("표로 답하세요.")
    say(page, "안녕하세요")
    own = service.instructions
    assert (own.all, own.chats) == ("짧게 답하세요.", {first: "표로 답하세요."})
    assert f":small[:gray[≈{own.tokens(own.all)}토큰]]" in [each.value for each in page.markdown]
    # Another chat has a text of its own; what another tab has saved meanwhile is neither hidden nor written over.
    open_page(page, second)
    own.all = "길게 답하세요."
    type_in(page, f"instructions_{second}", "영어로 답하세요.")
    assert (own.all, own.chats[second]) == ("길게 답하세요.", "영어로 답하세요.")
    assert page.text_area(key=ALL).value == "길게 답하세요."
    type_in(page, ALL, "가" * 2_001)
    page.run()
    assert "지침이 너무 깁니다. 줄여 주세요. (2,001 > 2,000)" in page.error[0].value
    assert (own.all, page.text_area(key=ALL).value) == ("길게 답하세요.", "가" * 2_001)
    type_in(page, ALL, "")
    assert (own.all, list(page.error)) == ("", [])


def test_the_text_of_a_chat_to_come_goes_with_its_first_message_alone(page: AppTest, service: ScriptedService) -> None:
    page.run()
    page.text_area(key=NEW).set_value("표로 답하세요.")
    say(page, "안녕하세요")
    assert service.instructions.chats == {}
    say(page, "고마워")
    page.button(key="new_chat").click().run()
    say(page, "다른 이야기")
    assert [options.instructions for options in service.sent] == ["표로 답하세요.", None, None]
