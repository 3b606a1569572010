from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from graph.value.error import InputError
from graph.value.view import NextFold
from tests.fake.scripted_service import ScriptedService
from tests.fake.scripted_session import make_record
from tests.page.reading import keys, open_page, page_text, raw_html, say, store_session

CARD = "menu_card_record-1"


def open_card(page: AppTest, service: ScriptedService, summary: str = "출시는 10월 14일로 정했다.") -> str:
    identifier = store_session(service, 4)
    service.stored[identifier].records = [make_record((1, 2, 3), original_chars=1500, summary=summary)]
    open_page(page, identifier)
    return identifier


def pick(page: AppTest, choice: str, key: str = CARD) -> AppTest:
    return page.menu_button(key=key).click(choice).run()


def steps(service: ScriptedService) -> list[str]:
    names = {"edit", "remake", "undo", "use_version"}
    return [call for call in service.calls if call.split()[0] in names]


def take_back(page: AppTest) -> AppTest:
    return page.button(key="take_back_bar").click().run()


def edit(page: AppTest, text: str) -> AppTest:
    pick(page, "편집").text_area(key="text_record-1").set_value(text)
    return page.button(key="dialog_confirm").click().run()


def test_a_summary_is_edited_and_that_can_be_taken_back(page: AppTest, service: ScriptedService) -> None:
    open_card(page, service)
    assert pick(page, "편집").text_area(key="text_record-1").value == "출시는 10월 14일로 정했다."
    assert "다음 메시지부터 적용됩니다." in page_text(page)
    page.text_area(key="text_record-1").set_value("출시는 10월 21일이다.")
    page_shows = page_text(page.button(key="dialog_confirm").click().run())
    assert "출시는 10월 21일이다." in page_shows
    assert r"**\[1-3턴 요약\]** :gray-badge[편집됨]" in page_shows
    assert "1-3턴 요약을 편집했습니다." in page_shows
    assert "dialog_confirm" not in keys(page)
    page_shows = page_text(take_back(page))
    assert "출시는 10월 14일로 정했다." in page_shows
    assert "편집됨" not in page_shows
    assert "take_back_bar" not in keys(page)
    assert steps(service) == ["edit record-1", "use_version record-1"]


def test_a_summary_is_made_anew_at_a_rate_and_with_a_wish(page: AppTest, service: ScriptedService) -> None:
    open_card(page, service)
    slider = pick(page, "다시 요약…").slider(key="rate_record-1")
    assert (slider.value, slider.help) == (0.3, "낮을수록 짧게 요약, 높을수록 상세하게 요약")
    assert page_text(page).count("0.5 상세") == 2  # in the panel, too
    page.slider(key="rate_record-1").set_value(0.15)
    page.text_input(key="wish_record-1").set_value(" 가격은 남겨 줘 ")
    page_shows = page_text(page.button(key="dialog_confirm").click().run())
    assert "비율 0.15, 가격은 남겨 줘" in page_shows
    assert "1-3턴을 다시 요약했습니다: 450자 → 17자." in page_shows
    assert "출시는 10월 14일로 정했다." in page_text(take_back(page))


def test_a_chat_that_is_deleted_while_its_summary_is_made_anew_leaves_a_page_to_use(
    page: AppTest, service: ScriptedService
) -> None:
    open_card(page, service)
    pick(page, "다시 요약…")
    service.deleted_when_asked_for = "session"
    page.button(key="dialog_confirm").click().run()
    assert not page.exception
    assert "대화를 찾을 수 없습니다" in page.error[0].value


def test_a_wish_that_could_not_be_fulfilled_is_still_there(page: AppTest, service: ScriptedService) -> None:
    open_card(page, service)
    pick(page, "다시 요약…").text_input(key="wish_record-1").set_value("가격은 남겨 줘")
    service.refusal = InputError("remake_failed")
    page.button(key="dialog_confirm").click().run()
    assert "새 요약을 만들지 못했습니다." in page.error[0].value
    assert pick(page, "다시 요약…").text_input(key="wish_record-1").value == "가격은 남겨 줘"
    page.button(key="dialog_confirm").click().run()
    assert pick(page, "다시 요약…", f"{CARD}-v2").text_input(key="wish_record-1-v2").value == "가격은 남겨 줘"
    page.button(key="dialog_cancel").click().run()
    take_back(page)
    assert pick(page, "다시 요약…").text_input(key="wish_record-1").value == ""


def test_versions_stand_side_by_side_and_any_can_be_used(page: AppTest, service: ScriptedService) -> None:
    open_card(page, service, "출시는 10월 14일로 정했다.")
    edit(page, "출시는 10월 21일로 정했다.")
    edited = "menu_card_record-1-v2"
    pick(page, "버전 비교", edited)
    assert "v1 · 압축률 0.3 · 450자" in page_text(page)
    assert "**v2 · 편집됨 · 17자** :primary-badge[사용 중]" in page_text(page)
    versions = [line for line in raw_html(page).splitlines() if 'class="version"' in line]
    assert "10월 <del>" in versions[0]
    assert "14일로" in versions[0]
    assert "10월 <ins>" in versions[1]
    assert "21일로" in versions[1]
    assert versions[1].count("여기에만") == 1
    page_shows = page_text(page.button(key="dialog_confirm").click().run())
    assert "1-3턴 요약을 다른 버전으로 바꿨습니다: v1." in page_shows
    assert "출시는 10월 14일로 정했다." in page_shows
    assert "출시는 10월 21일로 정했다." in page_text(take_back(page))
    assert steps(service)[1:] == ["use_version record-1", "use_version record-1-v2"]


@pytest.mark.parametrize("opened_by", ["menu", "facts"])
def test_a_summary_stands_beside_its_original_and_what_it_has_and_lacks_is_marked(
    page: AppTest, service: ScriptedService, opened_by: str
) -> None:
    identifier = store_session(service, 4)
    session = service.stored[identifier]
    first = replace(
        session.turns[0], user_text="배포는 10월 14일, <b>2010</b>명.", answer_text="예산은 300만 원입니다."
    )
    session.turns = [first, *session.turns[1:]]
    record = make_record((1, 2, 3), summary="(1턴) 배포 10월 14일. (2-3턴) 인사.")
    session.records = [replace(record, kept_facts=("10월 14일", "10"), missing_facts=("300만 원",))]
    open_page(page, identifier)
    if opened_by == "menu":
        pick(page, "원문과 비교")
    else:
        page.session_state["facts_record-1"] = True
        page.run().button(key="source_record-1").click().run()
    original, summary = (line for line in raw_html(page).split('<div class="version">')[1:])
    assert "<b>1턴</b>\n배포는 <mark>10월 14일</mark>, &lt;b&gt;2010&lt;/b&gt;명." in original
    assert '예산은 <mark class="lacks"><span class="unseen">요약에서 빠짐: </span>300만 원</mark>입니다.' in original
    assert "<b>3턴</b>\n질문 3" in original
    assert "질문 4" not in original
    assert "(1턴) 배포 <mark>10월 14일</mark>.\n\n(2-3턴) 인사." in summary
    page.button(key="dialog_cancel").click().run()
    assert 'class="version"' not in raw_html(page)


def test_versions_that_cant_be_compared_in_time_stand_there_unmarked(page: AppTest, service: ScriptedService) -> None:
    lines = "\n".join(f"{number % 3} {number % 2}" for number in range(3_000))
    open_card(page, service, lines)
    edit(page, lines[::-1])
    pick(page, "버전 비교", "menu_card_record-1-v2")
    assert "다른 곳을 표시하지 않았습니다." in page_text(page)
    versions = [line for line in raw_html(page).splitlines() if 'class="version"' in line]
    assert len(versions) == 2
    assert not any(mark in raw_html(page) for mark in ("<del>", "<ins>"))


def test_a_fold_is_undone_and_folded_again(page: AppTest, service: ScriptedService) -> None:
    open_card(page, service)
    page_shows = page_text(pick(page, "원문으로 되돌리기"))
    assert "다음 메시지부터 1-3턴을 원문 그대로 보냅니다." in page_shows
    assert "말한 그대로" in page_shows
    assert "원문으로 되돌려 그대로 보냅니다." in page_shows
    assert "짧아서" not in page_shows
    page_shows = page_text(pick(page, "다시 요약으로 보내기", "menu_card_record-1-v2"))
    assert "다음 메시지부터 1-3턴을 다시 요약으로 보냅니다." in page_shows
    assert "비율 0.3, 바라는 것 없음" in page_shows
    assert "말한 그대로" in page_text(take_back(page))


@pytest.mark.parametrize(
    ("prepare", "act"),
    [
        (lambda page: page, lambda page: pick(page, "원문으로 되돌리기")),
        (lambda page: edit(page, "고친 글"), take_back),
    ],
    ids=["undo", "take back"],
)
def test_a_change_that_comes_too_late_is_told(
    page: AppTest, service: ScriptedService, prepare: Callable[[AppTest], AppTest], act: Callable[[AppTest], AppTest]
) -> None:
    open_card(page, service)
    prepare(page)
    service.refusal = InputError("not_active")
    act(page)
    assert "그사이 다른 요약으로 바뀌었습니다." in [*page.error, *page.toast][0].value
    assert "말한 그대로" not in page_text(page)


def pinned(page: AppTest) -> list[tuple[str, str]]:
    """The buttons that pin: whether each is pressed, and its message."""
    return re.findall(r'class="press pin"[^>]*aria-pressed="(\w+)"[^>]*data-message="([^"]+)"', raw_html(page))


def pins_box(page: AppTest) -> list[str]:
    return [box.label for box in page.expander if "고정한 메시지" in box.label]


def test_a_refused_edit_is_told_in_its_dialog_which_stays_and_a_cancelled_one_changes_nothing(
    page: AppTest, service: ScriptedService
) -> None:
    open_card(page, service)
    pick(page, "편집")
    for typed, sentence in (("  ", "내용이 없습니다."), ("가" * 9, "너무 깁니다.")):
        page.text_area(key="text_record-1").set_value(typed)
        service.refusal = InputError("too_long") if typed.strip() else None
        page.button(key="dialog_confirm").click().run()
        assert sentence in page.error[0].value
        assert page.text_area(key="text_record-1").value == typed
    page.button(key="dialog_cancel").click().run()
    assert "dialog_cancel" not in keys(page)
    assert pick(page, "편집").text_area(key="text_record-1").value == "출시는 10월 14일로 정했다."
    page.text_area(key="text_record-1").set_value("이제 됩니다.")
    page.button(key="dialog_confirm").click().run()
    assert "이제 됩니다." in page_text(page)
    assert not page.error


def test_a_menu_offers_what_can_be_done_with_its_record(page: AppTest, service: ScriptedService) -> None:
    identifier = open_card(page, service, "<b>하나</b>뿐인 글")
    records = service.stored[identifier].records
    (first,) = records
    every = ["원문과 비교", "편집", "다시 요약…", "버전 비교", "원문으로 되돌리기"]
    for kind, version, offered in (
        ("interval", 1, every),
        ("verbatim", 1, ["버전 비교"]),
        ("verbatim", 2, ["다시 요약으로 보내기", "버전 비교"]),
        ("compaction", 1, every[:-1]),
        ("merge", 1, every),
    ):
        records[0] = first.with_changes(kind=kind, version=version, sources=("r-1", "r-2"))
        assert page.run().menu_button(key=CARD).options == offered
    assert "아직 다른 버전이 없습니다." in page_text(pick(page, "버전 비교"))
    assert "&lt;b&gt;하나&lt;/b&gt;뿐인 글" in raw_html(page)
    assert "dialog_confirm" not in keys(page)
    page.button(key="dialog_cancel").click().run()
    assert "dialog_cancel" not in keys(page)
    page_shows = page_text(pick(page, "원문으로 되돌리기"))  # of the merge
    assert "1-3턴의 요약을 합치기 전의 요약 2개로 되돌렸습니다." in page_shows
    assert "원문 그대로 보냅니다" not in page_shows
    assert "take_back_bar" in keys(page)
    assert "take_back_bar" not in keys(say(page, "다음 말"))


def test_a_card_tells_target_and_achieved_rate_and_tokens(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    record = replace(make_record((1, 2, 3)), summary_chars=390, source_tokens=900, summary_tokens=12_345)
    service.stored[identifier].records = [record]
    told = ":small[:gray[목표 0.3 → 실제 0.26]]  \n:small[:gray[토큰 ≈900 → ≈12,345]]"
    assert told in page_text(open_page(page, identifier))
    service.stored[identifier].records = [replace(record, kind="merge")]
    page_shows = page_text(page.run())
    assert "토큰 ≈900 → ≈12,345" in page_shows
    assert "목표" not in page_shows


def test_each_message_can_be_pinned_and_the_panel_tells_the_budget(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    open_page(page, identifier)
    assert pinned(page) == [("false", f"{who}-{turn}") for turn in (1, 2) for who in ("user", "answer")]
    assert pins_box(page) == []
    service.folds.pin(identifier, "answer-1")
    note = "지금 전략은 최근 턴만 보내므로 고정한 메시지를 따로 보내지 않습니다."
    assert note not in page_text(page.run())
    assert ("true", "answer-1") in pinned(page)
    assert pins_box(page) == ["고정한 메시지 1개 · ≈120 / 280토큰"]
    page.session_state["pins"] = True
    listed = next(line for line in raw_html(page.run()).splitlines() if 'class="pins"' in line)
    assert 'data-first="1" data-last="1"' in listed
    assert "≈120토큰" in listed
    assert ">1턴의 말</span>" in listed
    assert 'data-message="answer-1"' in listed
    over = "고정한 메시지 중 1개는 이 모델의 창에 들어가지 않아 보내지 않습니다."
    assert over not in page_text(page)
    service.stored[identifier].pinned = ["user-1", "answer-1", "user-2"]  # as another model had room for them
    assert over in page_text(page.run())
    page.session_state["pins"] = True
    listed = next(line for line in raw_html(page.run()).splitlines() if 'class="pins"' in line)
    assert listed.count("≈120토큰 · 보내지 않음") == 1
    service.stored[identifier].next_fold = NextFold(sent_turns=10)
    assert note in page_text(page.run())
    assert over not in page_text(page)
    service.status = "failed"
    open_page(page, store_session(service, 1))
    assert pinned(page) == [("false", "user-1")]
