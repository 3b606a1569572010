from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.fake.chat import question
from tests.fake.openai_reply import failure, hang, slowed, text
from tests.fake.openai_server import FakeOpenAI


def records_of(folder: Path, session_id: str) -> list[tuple[str, str, int, int, str]]:
    with closing(sqlite3.connect(folder / "data" / "turnfold.db")) as database:
        return database.execute(
            "SELECT id, turns, original_chars, summary_chars, summary FROM record"
            " WHERE session_id = ? AND adopted_at IS NOT NULL ORDER BY from_position",
            (session_id,),
        ).fetchall()


def test_seven_turns_fold_twice_and_the_panel_equals_the_database(visitor: Visitor, folder: Path) -> None:
    visitor.open()
    visitor.ask(*[question(number) for number in range(1, 8)])
    rows = records_of(folder, visitor.session_id)
    assert [row[1] for row in rows] == ["[1,2,3]", "[4,5,6]"]
    for name, (identifier, _, original_chars, summary_chars, summary) in zip(("1-3", "4-6"), rows, strict=True):
        card = visitor.find(f"card_rail_{identifier}")
        expect(card.get_by_text(f"[{name}턴 요약]")).to_be_visible()
        share = f"(원문의 {round(100 * summary_chars / original_chars)}% 길이)"
        expect(card.get_by_text(f"{original_chars}자 → {summary_chars}자 {share}", exact=True)).to_be_visible()
        expect(card.get_by_text(summary, exact=True)).to_be_visible()
        turns = name.replace("-", "–")
        label = f"위 {turns}턴은 요약으로 기억합니다 · {original_chars}자 → {summary_chars}자"
        expect(visitor.find("chat").get_by_text(label)).to_be_attached()

    panel = visitor.open_statistics()
    original, summary_sum = sum(row[2] for row in rows), sum(row[3] for row in rows)
    expect(panel.get_by_text("총 요약: 2개 (6턴 압축)")).to_be_visible()
    expect(panel.get_by_text(f"원본: {original}자 → 요약: {summary_sum}자")).to_be_visible()
    saved = round(100 * (1 - summary_sum / original))
    expect(panel.get_by_text(f"전체 압축률: {saved}% 절감")).to_be_visible()
    expect(panel.locator('[data-testid="stVegaLiteChart"] svg, [data-testid="stVegaLiteChart"] canvas')).to_be_visible()


def test_moved_slider_changes_the_next_fold(visitor: Visitor) -> None:
    visitor.open()
    visitor.ask(question(1), question(2))
    visitor.open_settings()
    thumb = visitor.find("compression_rate").get_by_role("slider")
    thumb.focus()
    for _ in range(4):
        thumb.press("ArrowRight")
    expect(visitor.find("panel").get_by_text("현재 압축률: 0.5")).to_be_visible()
    visitor.ask(question(3), question(4), first=3)
    expect(visitor.find("panel").get_by_text("압축률 0.5", exact=True)).to_be_visible()


def test_stop_before_the_first_word_ends_the_call(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "답이 오지 않을 질문입니다. 설명해 주세요."
    hanging = fake_openai.script(hang(is_silent=True), to=asked)
    visitor.open()
    visitor.write(asked)
    fake_openai.wait_until(lambda _: hanging.is_asked_for)
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("답변이 시작되기 전에 중지했습니다.")
    fake_openai.wait_until(lambda _: hanging.exchanges[0].is_closed_early)
    visitor.find("retry").locator("button").click()
    expect(visitor.find("regenerate")).to_be_visible()
    expect(visitor.turn(1)).to_contain_text("시험용 서버")


def test_stop_in_the_middle_keeps_what_was_said(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "중간에 멈출 이야기를 길게 설명해 주세요."
    fake_openai.script(hang("첫 문장은 여기까지입니다. "), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("첫 문장은 여기까지입니다.")
    expect(visitor.find("stop")).to_be_visible()
    visitor.page.wait_for_timeout(200)  # no hand is faster; the key of a button is heard a moment after it is drawn
    visitor.page.keyboard.press("Escape")
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("첫 문장은 여기까지입니다.")
    expect(visitor.turn(1)).to_contain_text("중지했습니다.")


def test_reload_in_the_middle_finds_the_answer_again(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    words = " ".join(f"낱말{number}" for number in range(60))
    asked = "새로 고쳐도 이어지는지 보여 주세요."
    fake_openai.script(slowed(text(words), 0.06), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("낱말5")
    visitor.page.reload()
    visitor.settle()
    expect(visitor.turn(1)).to_contain_text("낱말10")
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("낱말59")
    assert len(fake_openai.bodies("chat", to=asked)) == 1
    expect(visitor.page.locator('[class*="st-key-turn_"]')).to_have_count(1)


def test_other_widgets_leave_a_running_answer_alone(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "천천히 답해 주세요."
    fake_openai.script(slowed(text(" ".join(f"낱말{number}" for number in range(40))), 0.06), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("낱말3")
    visitor.open_statistics()
    visitor.find("new_chat").locator("button").click()
    expect(visitor.find("suggestions")).to_be_visible()
    visitor.page.locator('[class*="st-key-session_"] button', has_text=asked).first.click()
    visitor.wait_for_end(1)
    expect(visitor.turn(1)).to_contain_text("낱말39")
    assert len(fake_openai.bodies("chat", to=asked)) == 1


def test_failed_answer_says_why_and_is_tried_again(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "열쇠가 틀렸을 때는 어떻게 되나요?"
    fake_openai.script(failure(401), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("API 키가 없거나 올바르지 않습니다.")
    visitor.find("retry").locator("button").click()
    expect(visitor.find("regenerate")).to_be_visible()
    expect(visitor.turn(1).get_by_text("API 키가 없거나")).to_have_count(0)


def test_message_while_busy_goes_back_into_its_field(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "오래 걸리는 질문입니다."
    fake_openai.script(hang("잠시만요. "), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("잠시만요.")
    visitor.write("성급한 다음 말")
    expect(visitor.page.get_by_text("아직 답변하는 중입니다.")).to_be_visible()
    expect(visitor.field).to_have_value("성급한 다음 말")
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)
    expect(visitor.field).to_have_value("성급한 다음 말")


def test_regenerated_answer_takes_the_place_of_the_old(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "두 번 답할 질문을 하나 드립니다."
    fake_openai.script(text("첫 번째 답입니다."), text("두 번째 답입니다."), to=asked)
    visitor.open()
    visitor.ask(asked)
    visitor.find("regenerate").locator("button").click()
    expect(visitor.turn(1)).to_contain_text("두 번째 답입니다.")
    expect(visitor.turn(1).get_by_text("첫 번째 답입니다.")).to_have_count(0)


def test_copy_gives_the_answer_as_it_was_written(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    answer = '| 값 | 뜻 |\n|---|---|\n| "5" | **다섯** & <여섯> |'
    asked = "표로 보여 주세요, 두 열이면 됩니다."
    fake_openai.script(text(answer, ""), to=asked)
    visitor.open()
    visitor.ask(asked)
    visitor.expect_language("ko")
    visitor.turn(1).get_by_role("button", name="답변 복사").click()
    expect(visitor.turn(1).get_by_role("button", name="복사했습니다")).to_be_visible()
    assert visitor.page.evaluate("navigator.clipboard.readText()") == answer


def test_copy_has_its_own_name_again_in_whatever_language_the_page_is(english: Visitor) -> None:
    english.open()
    english.ask("A question in the one language before the page turns to the other.")
    english.open_settings()
    english.find("language").get_by_role("radio", name="한국어").press("Enter")
    english.expect_language("ko")
    english.turn(1).get_by_role("button", name="답변 복사").click()
    expect(english.turn(1).get_by_role("button", name="복사했습니다")).to_be_visible()
    expect(english.turn(1).get_by_role("button", name="답변 복사")).to_be_visible()


def test_stranger_without_a_key_has_a_working_chat(newcomer: Visitor) -> None:
    newcomer.open()
    expect(newcomer.find("empty")).to_contain_text("체험용 내장 모델")
    newcomer.find("suggestion_1").locator("button").click()
    newcomer.wait_for_end(1)
    expect(newcomer.turn(1)).to_contain_text("도구 1번 사용")
    expect(newcomer.turn(1)).to_contain_text(re.compile(r"20\d\d"))


@pytest.mark.parametrize("choice", ["이름 바꾸기", "삭제"])
def test_session_is_renamed_and_deleted_from_its_menu(visitor: Visitor, choice: str) -> None:
    visitor.open()
    visitor.ask(f"{choice} 시험을 위한 대화를 시작합니다.")
    row = visitor.open_row
    expect(row).to_have_count(1)
    row.hover()
    row.locator('[data-testid="stMenuButtonButton"]').click()
    visitor.page.get_by_role("menuitem", name=choice).click()
    dialog = visitor.page.get_by_role("dialog")
    if choice == "삭제":
        dialog.get_by_role("button", name="삭제").click()
        expect(visitor.find("suggestions")).to_be_visible()
        return
    dialog.get_by_role("textbox").fill("새로 지은 이름")
    dialog.get_by_role("button", name="저장").click()
    expect(row).to_contain_text("새로 지은 이름")
