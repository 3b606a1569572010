from __future__ import annotations

from dataclasses import replace

from streamlit.testing.v1 import AppTest

from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, store_session, told


def lines(page: AppTest) -> list[str]:
    return [element.value for element in page.main.markdown if "terminal" in element.value]


def test_a_programs_chat_has_its_name_in_the_list_and_others_have_none(page: AppTest, service: ScriptedService) -> None:
    own, other = store_session(service, 1), store_session(service, 1)
    service.stored[other].client = "my *editor*"
    open_page(page, own)
    marks = [element.value for element in page.sidebar.markdown if "terminal" in element.value]
    assert marks == [r":material/terminal: :small[:gray[프로그램: my \*editor\*]]"]
    assert lines(page) == []


def test_an_open_chat_says_who_began_it_and_which_questions_a_program_asked(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 2)
    stored = service.stored[identifier]
    stored.client = "editor"
    stored.turns[0] = replace(stored.turns[0], client="editor")
    open_page(page, identifier)
    assert "“editor” 프로그램이 시작한 대화입니다." in told(page)
    assert [line for line in lines(page) if "프로그램: " in line] == [
        ":material/terminal: :small[:gray[프로그램: editor]]"
    ]


def test_a_chat_of_the_page_has_no_mark_but_at_the_question_of_a_program(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 2)
    turns = service.stored[identifier].turns
    turns[1] = replace(turns[1], client="편집기")
    open_page(page, identifier)
    assert lines(page) == [":material/terminal: :small[:gray[프로그램: 편집기]]"]
    assert not [element for element in page.sidebar.markdown if "terminal" in element.value]


def test_an_english_page_marks_in_english(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    service.stored[identifier].client = "editor"
    page.context["locale"] = "en-US"
    open_page(page, identifier)
    assert "The program “editor” began this chat." in told(page)
    assert "Program: editor" in told(page)
