from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from component.word import LANGUAGES, Language
from component.wording import words_of
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import as_tab, open_page, raw_html, store_session


def _page_that_hears() -> None:
    import streamlit as st  # noqa: PLC0415  # it runs as a page of its own

    from component import outbox, page  # noqa: PLC0415  # see above

    st.button("", key="hear", on_click=lambda: outbox.take(st.session_state["sent"]))
    page.main()


def hear(page: AppTest, identifier: str, message_id: str, text: str) -> AppTest:
    """Has the page hear of a message with files, as its script tells it once more after a reload."""
    message = {"id": message_id, "text": text, "session": identifier, "is_new": False, "has_files": True}
    page.session_state["sent"] = [message]
    return page.button(key="hear").click().run()


@pytest.fixture
def hearing(service: ScriptedService) -> AppTest:
    del service
    return as_tab(AppTest.from_function(_page_that_hears, default_timeout=60))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_whose_files_are_gone_goes_back_and_is_not_sent_without_them(
    hearing: AppTest, service: ScriptedService, language: Language
) -> None:
    identifier = store_session(service, 1)
    open_page(hearing, identifier).session_state["language"] = language
    hear(hearing, identifier, "0" * 24, "무엇이 적혀 있나요?")
    assert len(service.stored[identifier].turns) == 1
    assert words_of(language).attachment.reasons["lost"] in [error.value for error in hearing.error]
    assert f'data-refused="{"0" * 24}"' in raw_html(hearing)


@pytest.mark.parametrize("text", ["무엇이 적혀 있나요?", ""])
def test_a_message_that_was_sent_with_its_files_is_taken_when_it_comes_again(
    hearing: AppTest, service: ScriptedService, text: str
) -> None:
    identifier = store_session(service, 1)
    session = service.stored[identifier]
    session.turns = [replace(session.turns[0], user_message_id=f"user-{'a' * 24}")]
    open_page(hearing, identifier)
    hear(hearing, identifier, "a" * 24, text)
    assert len(session.turns) == 1
    assert not hearing.error
