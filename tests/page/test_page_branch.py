from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest

from graph.value.error import BusyError, InputError
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, open_page, page_text, page_with_presses, press, raw_html, store_session


def buttons(page: AppTest) -> list[dict[str, str]]:
    """What each plain button tells the server."""
    return [
        dict(re.findall(r'data-(\w+)="([^"]*)"', tag))
        for tag in re.findall(r"<button[^>]*data-press[^>]*>", raw_html(page))
    ]


def offered(page: AppTest, turn: int) -> list[str]:
    return [button["press"] for button in buttons(page) if button.get("turn") == str(turn)]


def edit(page: AppTest, identifier: str, turn: int, press: str = "edit") -> AppTest:
    """Opens the form, as the page's script does."""
    page.session_state["edited_question"] = (identifier, turn, press)
    return page.run()


def test_an_edited_question_is_asked_in_a_branch(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 3)
    edit(open_page(page, identifier), identifier, 2)
    field = page.text_area(key=f"edited_{identifier}_2")
    assert field.value == "질문 2"
    assert "지금 대화는 그대로 남습니다" in page_text(page)
    field.set_value("다른 질문")
    page.button(key="edit_confirm").click().run()
    branch = page.query_params["session"]
    assert branch != identifier
    assert [turn.user_text for turn in service.stored[branch].turns] == ["질문 1", "다른 질문"]
    assert [turn.user_text for turn in service.stored[identifier].turns] == ["질문 1", "질문 2", "질문 3"]
    assert "‘질문 1’에서 1턴까지 이어받은 분기입니다." in page_text(page)
    assert "edit_confirm" not in keys(page)


def test_an_edited_answer_is_a_version_marked_as_edited(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 3)
    edit(open_page(page, identifier), identifier, 3, "edit_answer")
    field = page.text_area(key=f"edited_answer_{identifier}_3")
    assert field.value == "들었습니다: 질문 3"
    assert "원래 답변은 다른 버전으로 남습니다." in page_text(page)
    field.set_value("고친 답변")
    page_shows = page_text(page.button(key="edit_confirm").click().run())
    assert "고친 답변" in page_shows
    assert "직접 고친 답변" in page_shows
    assert "edit_confirm" not in keys(page)
    assert service.stored[identifier].turns[2].attempts == (1, 2)
    edit(page, identifier, 1, "edit_answer")
    assert "여기에서 끝나는 새 분기에 저장합니다." in page_text(page)
    page.text_area(key=f"edited_answer_{identifier}_1").set_value(" ")
    page.button(key="edit_confirm").click().run()
    assert page.text_area(key=f"edited_answer_{identifier}_1").value == " "
    assert page.query_params["session"] == identifier


def test_a_refused_edit_keeps_its_form_and_what_was_typed(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    edit(open_page(page, identifier), identifier, 1)
    page.text_area(key=f"edited_{identifier}_1").set_value("  ")
    page.button(key="edit_confirm").click().run()
    assert page.query_params["session"] == identifier
    assert page.text_area(key=f"edited_{identifier}_1").value == "  "
    assert list(service.stored) == [identifier]
    page.button(key="edit_cancel").click().run()
    assert "edit_confirm" not in keys(page)


def test_a_double_press_makes_one_branch(service: ScriptedService) -> None:
    identifier = store_session(service, 3)
    page = open_page(page_with_presses(), identifier)
    asked = {"press": "branch", "session": identifier, "turn": "1"}
    press(page, {**asked, "at": 1.5}, {**asked, "at": 2.5})
    assert not page.exception
    assert len(service.stored) == 2
    assert page.query_params["session"] in set(service.stored) - {identifier}


def test_a_press_that_comes_again_with_the_next_one_counts_once(service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    page = open_page(page_with_presses(), identifier)
    first, second = (
        {"press": "pin", "message": turn.user_message_id, "wanted": "true", "at": 1.5 + turn.number}
        for turn in service.stored[identifier].turns
    )
    press(page, first)
    service.folds.unpin(identifier, str(first["message"]))
    press(page, first, second)
    assert not page.exception
    assert service.stored[identifier].pinned == [second["message"]]


def test_a_turn_offers_what_can_be_done_with_it(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 3)
    open_page(page, identifier)
    assert [offered(page, turn) for turn in (1, 2, 3)] == [
        ["edit", "edit_answer", "branch"],
        ["edit", "edit_answer", "branch"],
        ["edit", "edit_answer"],
    ]
    assert {key for key in keys(page) if key.startswith("regenerate")} == {"regenerate"}
    service.status = "running"
    service.send(identifier, "길게", message_id="long", options=service.sent[0])
    page.run()
    assert offered(page, 3) == ["edit", "edit_answer", "branch"]
    assert offered(page, 4) == []
    service.status = "failed"
    open_page(page, store_session(service, 1))
    assert "retry" in keys(page)
    assert offered(page, 1) == ["edit"]


def test_one_question_is_edited_at_a_time_and_the_first_begins_anew(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    edit(open_page(page, identifier), identifier, 2)
    edit(page, identifier, 1)
    assert [area.key for area in page.text_area if str(area.key).startswith("edited_")] == [f"edited_{identifier}_1"]
    for refusal in (BusyError(), InputError("empty")):
        service.refusal = refusal
        page.button(key="edit_confirm").click().run()
        assert page.query_params["session"] == identifier
        assert list(service.stored) == [identifier]
    page.button(key="edit_confirm").click().run()
    assert page.query_params["session"] != identifier
    assert "‘질문 1’ 대화를 첫 턴부터 다시 시작한 분기입니다." in page_text(page)
    page.button(key="to_origin").click().run()
    assert page.query_params["session"] == identifier


def test_versions_of_an_answer_are_paged_and_one_is_used(service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    first = service.stored[identifier].turns[1].answer_text
    service.answer = lambda _: "다른 답"
    service.regenerate(identifier, options=service.sent[0])
    page = open_page(page_with_presses(), identifier)
    assert offered(page, 2) == ["edit", "version", "version", "edit_answer"]
    assert "<span>2/2</span>" in raw_html(page)
    back = {"press": "version", "session": identifier, "turn": "2", "to": "1"}
    press(page, {**back, "at": 1.5})
    assert first in page_text(page)
    assert "다른 답" not in page_text(page)
    assert service.stored[identifier].turns[1].answer_text == "다른 답"  # it still counts
    assert offered(page, 2) == ["edit", "version", "version", "choose"]
    assert "regenerate" not in keys(page)
    # An answer that is made anew is shown, whichever was looked at before.
    press(page, {**back, "to": "2", "at": 1.6})
    service.answer = lambda _: "세 번째 답"
    page.button(key="regenerate").click().run()
    assert "세 번째 답" in page_text(page)
    assert "<span>3/3</span>" in raw_html(page)
    press(page, {**back, "at": 1.7})
    service.refusal = BusyError()
    press(page, {**back, "press": "choose", "at": 2.5})
    assert service.stored[identifier].turns[1].answer_text == "세 번째 답"
    press(page, {**back, "press": "choose", "at": 3.5})
    assert service.stored[identifier].turns[1].answer_text == first
    assert offered(page, 2) == ["edit", "version", "version", "edit_answer"]
    assert "regenerate" in keys(page)


def test_the_branches_of_a_question_are_opened_from_it(service: ScriptedService) -> None:
    identifier = store_session(service, 3)
    branch = service.turns.edit(identifier, 2, "다른 질문", options=service.sent[0])
    page = open_page(page_with_presses(), identifier)
    steps = [button for button in buttons(page) if button["press"] == "sibling"]
    assert [(step["turn"], step["to"]) for step in steps] == [("2", identifier), ("2", branch)]
    press(page, {**steps[1], "at": 1.5})
    assert page.query_params["session"] == branch
    assert "<span>2/2</span>" in raw_html(page)
