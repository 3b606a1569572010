from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from component import redraw
from component.format import format_count
from component.words.text import LANGUAGES, Language
from component.words.wording import words_of
from graph.value.record import Record
from graph.value.view import Gauge, NextFold
from tests.fake.scripted_service import ScriptedService
from tests.fake.scripted_session import make_record
from tests.page.reading import (
    keys,
    open_page,
    page_text,
    page_with_presses,
    press,
    raw_html,
    stale_parts,
    store_session,
)


def gauge_text(page: AppTest) -> str:
    return next(line for line in raw_html(page).splitlines() if 'class="gauge"' in line)


def test_seeds_example_reads_as_the_seed_draws_it(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 10)
    service.stored[identifier].records = [
        make_record((1, 2, 3), original_chars=1500, summary="사용자가 인사하고 파이썬 3.13을 물음."),
        make_record((4, 5, 6), original_chars=100),
        make_record((7, 8, 9), original_chars=800),
    ]
    open_page(page, identifier)
    page_shows = page_text(page)
    assert "📝 대화 요약 히스토리" in page_shows
    assert "현재 압축률: 0.3" in page_shows
    assert r"**\[1-3턴 요약\]** :gray-badge[압축률 0.3]" in page_shows
    for chars in ("1,500자 → 450자 (원문의 30% 길이)", "100자 → 30자", "800자 → 240자"):
        assert chars in page_shows
    assert "사용자가 인사하고 파이썬 3.13을 물음." in [text.value for text in page.markdown]

    page.session_state["panel_tabs"] = "통계"
    page_shows = page_text(page.run())
    assert "📊 요약 통계" in page_shows
    assert "총 요약: 3개 (9턴 압축)" in page_shows
    assert "원본: 2,400자 → 요약: 720자" in page_shows
    assert "전체 압축률: 70% 절감 (원문의 30% 길이)" in page_shows


def facts_label(page: AppTest) -> str:
    (label,) = (box.label for box in page.expander if "핵심 내용" in box.label)
    return label


def rows(page: AppTest) -> list[str]:
    """The missing facts that are listed."""
    return re.findall(r"<li>(.*?)</li>", "".join(line for line in raw_html(page).splitlines() if "missing" in line))


def open_facts(page: AppTest, service: ScriptedService, **changes: Any) -> str:  # noqa: ANN401  # of a record
    """Opens the list of facts of a chat's only card."""
    identifier = store_session(service, 4)
    service.stored[identifier].records = [replace(make_record((1, 2, 3)), **changes)]
    open_page(page, identifier)
    page.session_state["facts_record-1"] = True
    page.run()
    return identifier


def test_a_card_says_how_many_facts_are_kept_and_lists_the_missing_ones_first(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 7)
    kept, missing = ("PEP 703", "10월 14일", "[x](y)"), ('"python3.13t"', "--enable-experimental-jit")
    records = [make_record((1, 2, 3)), make_record((4, 5, 6))]
    service.stored[identifier].records = [records[0], replace(records[1], kept_facts=kept, missing_facts=missing)]
    open_page(page, identifier)
    assert facts_label(page).endswith("[핵심 내용 5개 중 3개 유지]")
    assert "PEP 703" not in page_text(page)
    page.session_state["facts_record-4"] = True
    page_shows = page_text(page.run())
    assert page_shows.index("유지된 내용") < page_shows.index("PEP 703")
    assert r":gray-badge[\[x\](y)]" in page_shows
    # The sentence is marked up, and each button names its fact.
    first, second = rows(page)
    assert first.startswith("&lt;말&gt; <b>&quot;python3.13t&quot;</b>입니다.")
    assert 'aria-label="요약에 추가: --enable-experimental-jit"' in second
    assert re.search(
        r'aria-label="고정: --enable-experimental-jit" aria-pressed="false".*data-message="user-4"', second
    )


@pytest.mark.parametrize(
    ("missing", "colour"),
    [
        ((), "gray"),
        (("180만 원", "10월 14일", "한도윤"), "gray"),
        (("180만 원", "OPS-4711"), "orange"),
        (("메일은 두 번만 보내고 더 보내지 마세요",), "orange"),
        (("Never restart the broker during the day",), "orange"),
    ],
)
def test_only_a_missing_rule_or_identifier_is_alarming(
    page: AppTest, service: ScriptedService, missing: tuple[str, ...], colour: str
) -> None:
    identifier = open_facts(page, service, kept_facts=("K7QX2M",), missing_facts=missing)
    assert facts_label(page) == f":{colour}[핵심 내용 {1 + len(missing)}개 중 1개 유지]"
    assert ("빠진 내용" in raw_html(page)) == bool(missing)
    # What the user edited himself is as he wants it.
    (record,) = service.stored[identifier].records
    service.stored[identifier].records = [replace(record, edited=True)]
    page.run()
    assert facts_label(page) == f":gray[핵심 내용 {1 + len(missing)}개 중 1개 유지]"


def test_a_missing_fact_is_added_or_pinned_and_the_list_gets_shorter(service: ScriptedService) -> None:
    page = page_with_presses()
    identifier = open_facts(page, service, kept_facts=("K7QX2M",), missing_facts=("180만 원", "10월 14일"))
    assert ["180만 원" in row for row in rows(page)] == [True, False]
    asked = {"press": "add_fact", "session": identifier, "record": "record-1", "fact": "180만 원"}
    press(page, {**asked, "at": 1.0})
    made = service.folds.records(identifier)[0]
    assert made.missing_facts == ("10월 14일",)
    assert facts_label(page) == ":gray[핵심 내용 3개 중 2개 유지]"
    assert ["10월 14일" in row for row in rows(page)] == [True]
    assert "1-3턴 요약에 빠진 내용을 넣었습니다." in page_text(page)
    press(page, {"press": "pin", "message": "user-1", "wanted": "true", "at": 2.0})
    assert 'aria-pressed="true"' in rows(page)[0]
    page.button(key="take_back_bar").click().run()
    page.session_state["facts_record-1"] = True
    page.run()
    assert facts_label(page) == ":gray[핵심 내용 3개 중 1개 유지]"


def test_a_card_says_what_a_dense_block_needed_and_what_was_invented(page: AppTest, service: ScriptedService) -> None:
    identifier = open_facts(page, service, needed_rate=0.38, invented_facts=("990만 원", "[KX](y)"))
    page_shows = page_text(page)
    assert "목표 0.3, 핵심 내용이 많아 0.38 필요 → 실제 0.3" in page_shows
    invented = r"대화에 없는 값: 990만 원, \[KX\](y). 요약을 확인하고 편집해 주세요."
    assert f":orange[:material/report: {invented}]" in page_shows
    service.stored[identifier].records = [make_record((1, 2, 3))]
    page_shows = page_text(open_page(page, identifier))
    assert "목표 0.3 → 실제 0.3" in page_shows
    assert "대화에 없는 값" not in page_shows


def test_a_card_knows_its_turns_and_what_was_kept_word_for_word_stays_literal(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 4)
    record = make_record((1, 2, 3), summary="**굵게** [말](https://a.kr)")
    service.stored[identifier].records = [record]
    page_shows = page_text(open_page(page, identifier))
    assert 'aria-label="이 턴으로 이동" data-first="1" data-last="3"' in raw_html(page)
    assert r"**굵게** \[말](https:color[\:]//a.kr)" in page_shows
    service.stored[identifier].records = [replace(record, kind="verbatim", original_chars=166, summary_chars=223)]
    page.run()
    assert record.summary in [text.value for text in page.text]
    assert "166자 · 원문 그대로" in page_text(page)
    assert "223자" not in page_text(page)
    quoted = "(원문)\n> 사용자: *하나*\n> \n> AI: 둘"
    service.stored[identifier].records = [
        replace(record, kind="verbatim", summary=quoted, input_tokens=0, output_tokens=0)
    ]
    page.run()
    assert "사용자: *하나*\n\n모델: 둘" in [text.value for text in page.text]
    assert "토큰 0" not in page_text(page)  # no model was called
    assert "요약하면 아끼는 것보다 비용이 더 들기 때문에" in page_text(page)
    assert "details_record-1" not in keys(page)  # there are none
    page.button(key="summarise_record-1").click().run()
    (made,) = service.stored[identifier].records
    assert (made.kind, made.version) == ("interval", 2)
    assert "1-3턴을 요약했습니다." in page_text(page)
    assert "summarise_record-2" not in keys(page)
    said = ["(원문)", *(f"사용자: {'말' * 16}" for _ in range(7))]  # each just fits a line
    service.stored[identifier].records = [replace(record, kind="verbatim", summary="\n> ".join(said))]
    page.run()
    assert "more_summary_record-1" not in keys(page)  # all seven lines are drawn


def chart_rows(page: AppTest) -> list[dict[str, object]]:
    layers = json.loads(page.get("vega_lite_chart")[0].proto.spec)["layer"]
    return [row for layer in layers for row in layer["data"]["values"]]


def test_figures_are_told_as_they_are(page: AppTest, service: ScriptedService) -> None:
    page.session_state["panel_tabs"] = "통계"
    identifier = store_session(service, 7)
    session = service.stored[identifier]
    open_page(page, identifier)
    made = list(session.records)
    for fold_tokens, net in ((1_284, "증가: ≈84"), (20_000, "증가: ≈18,800"), (260, "절감: ≈940")):
        session.records = [replace(record, input_tokens=fold_tokens // 2, output_tokens=0) for record in made]
        page_shows = page_text(page.run())
        assert f"순 {net} 토큰" in page_shows
        told = "**이 대화에서 입력을 50% 줄였습니다(≈1,260토큰, 요약에 쓴 260토큰 포함 시 40%)**"
        assert (told in page_shows) == (fold_tokens == 260)
        assert f"요약에 쓴 토큰: {format_count(fold_tokens)}" in page_shows  # as its provider reported it
        assert "요약으로 무효화된 캐시: ≈60" in page_shows
    session.records = [replace(make_record((1, 2, 3), original_chars=100), summary_chars=112)]
    assert "전체 압축률: 12% 증가 (원문의 112% 길이)" in page_text(page.run())

    session.records, session.unsent_tokens = [], 12_000
    page_shows = page_text(page.run())
    assert "절약한 입력 토큰: ≈12,000" in page_shows
    assert "**이 대화에서 입력을 50% 줄였습니다(≈12,000토큰)**" in page_shows
    assert "총 요약" not in page_shows
    assert page.get("vega_lite_chart")

    page_shows = page_text(open_page(page, store_session(service, 1)))
    assert "아직 요약이 없습니다. 요약하거나 보내지 않는 턴이 생기면" in page_shows
    assert "총 요약" not in page_shows
    assert "토큰: ≈0" not in page_shows
    assert not page.get("vega_lite_chart")


@pytest.mark.parametrize(
    ("language", "changes", "told"),
    [
        ("ko", {}, "아직 투자 단계: 요약에 3,184토큰을 썼고, 이 속도면 약 11턴부터 이득입니다"),
        (
            "ko",
            {"pays_from": 14, "broken_off_count": 2},
            "아직 투자 단계: 요약에 3,184토큰을 썼고, 이 속도면 약 14턴부터 이득입니다 · 2번 중단됨",
        ),
        ("ko", {"pays_from": None}, "요약에 3,184토큰을 썼고, 이 속도로는 앞으로 200턴 안에 이득이 되지 않습니다"),
        ("en", {}, "Not paid back yet: 3,184 tokens went into summaries; at this pace they pay from about turn 11"),
        ("en", {"broken_off_count": 2}, "from about turn 11 · broken off: 2"),
        ("en", {"pays_from": None}, "at this pace they won't pay within 200 turns"),
    ],
)
def test_below_zero_one_sentence_says_from_when_it_pays_and_the_figures_are_details(
    page: AppTest, service: ScriptedService, language: Language, changes: dict[str, Any], told: str
) -> None:
    page.session_state["panel_tabs"] = words_of(language).tab_statistics
    page.session_state["language"] = language
    identifier = store_session(service, 7)
    session = service.stored[identifier]
    session.records = [replace(record, input_tokens=1_592, output_tokens=0) for record in session.records]
    service.stored[identifier] = replace(session, **changes)
    open_page(page, identifier)
    (box,) = (each for each in page.expander if each.key == "savings_details")
    inside = "\n".join(str(each.value) for each in box.markdown)
    outside = page_text(page).replace(inside, "")
    assert f"{told}**" in outside
    more = words_of(language).stat_net_more.partition(":")[0]
    assert more in inside
    assert more not in outside


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_figures_from_before_a_reset_stay_in_sight(
    page: AppTest, service: ScriptedService, language: Language
) -> None:
    words = words_of(language)
    page.session_state["panel_tabs"] = words.tab_statistics
    page.session_state["language"] = language
    identifier = store_session(service, 7)
    count = words.stat_count.format(count=2, turns=6)
    assert f"**{words.stat_past}**" not in page_text(open_page(page, identifier))
    service.reset(identifier)
    service.stored[identifier].next_fold = NextFold(turns=(8, 9, 10), turns_left=3, is_reset=True)
    page_shows = page_text(page.run())
    assert words.stat_nothing not in page_shows
    assert words.no_records_since_reset in page_shows
    past = page_shows[page_shows.index(f"**{words.stat_past}**") :]
    for told in (count, words.stat_unsent.format(tokens="≈1,260"), words.stat_fold_cost.format(tokens="2,568")):
        assert told in past

    # With the first summary after it they stand below the new figures.
    service.stored[identifier].records = [make_record((8, 9, 10))]
    page_shows = page_text(page.run())
    new = words.stat_count_one.format(turns=3)
    assert page_shows.index(new) < page_shows.index(f"**{words.stat_past}**") < page_shows.index(count)

    # A chat without summaries has none from before a reset either.
    other = store_session(service, 1)
    service.reset(other)
    service.stored[other].next_fold = NextFold(turns=(2, 3), turns_left=2, is_reset=True)
    page_shows = page_text(open_page(page, other))
    assert words.stat_nothing in page_shows
    assert f"**{words.stat_past}**" not in page_shows


def test_what_was_spent_before_any_summary_is_in_use_is_told_without_a_forecast(
    page: AppTest, service: ScriptedService
) -> None:
    page.session_state["panel_tabs"] = "통계"
    identifier = store_session(service, 7)
    session = service.stored[identifier]
    session.records, session.spent_tokens, session.pays_from, session.broken_off_count = [], 5_809, None, 2
    told = "**아직 투자 단계: 요약에 5,809토큰을 썼지만 쓰이는 요약이 아직 없습니다 · 2번 중단됨**"
    assert told in page_text(open_page(page, identifier))


def test_a_card_is_title_length_text_and_facts_and_the_rest_are_details(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 4)
    record = replace(make_record((1, 2, 3), original_chars=1500, summary="말."), kept_facts=("10월 14일",), version=2)
    service.stored[identifier].records = [record]
    open_page(page, identifier)
    details = page.expander(key="details_record-1")
    assert (details.label, details.proto.expanded) == ("자세히", False)
    (inside,) = (each.value for each in details.markdown)
    for told in ("목표 0.3 → 실제 0.3", "토큰 ≈", "v2", "입력 1,024 · 출력 260 토큰"):
        assert told in inside
    cards = page_text(page).replace(inside, "")
    assert r"**\[1-3턴 요약\]** :gray-badge[압축률 0.3]" in cards
    assert "목표" not in cards
    assert "출력" not in cards


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"kind": "verbatim"}, r"**\[1-3턴 원문\]**"),
        ({"edited": True}, r"**\[1-3턴 요약\]** :gray-badge[편집됨]"),
        ({"kind": "merge", "sources": ("a", "b")}, r"**\[1-3턴 요약\]** :gray-badge[요약 2개를 하나로 합침]"),
        ({"kind": "compaction"}, r"**\[1-3턴 압축\]**"),
    ],
)
def test_a_rate_stands_on_summaries_made_at_it_alone(
    page: AppTest, service: ScriptedService, changes: dict[str, Any], title: str
) -> None:
    identifier = store_session(service, 4)
    service.stored[identifier].records = [replace(make_record((1, 2, 3)), **changes)]
    assert title in [each.value for each in open_page(page, identifier).markdown]


def menus(page: AppTest) -> list[str]:
    return [str(menu.key) for menu in page.menu_button if str(menu.key).startswith("menu_card_")]


def test_a_finished_summary_is_a_card_with_its_menu_before_the_next_message(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 3)
    session = service.stored[identifier]
    session.next_fold = NextFold(turns=(1, 2, 3), original_chars=1240, is_due=True, is_making=True)
    page_shows = page_text(open_page(page, identifier))
    assert "요약을 만들고 있습니다." in page_shows
    session.next_fold = replace(session.next_fold, is_held=True)
    assert "요약이 밀렸습니다. 잠시 쉬면 만듭니다." in page_text(page.run())
    session.next_fold = replace(session.next_fold, is_making=False, is_held=False)
    assert "다음 메시지를 보낼 때 요약합니다." in page_text(page.run())
    ready = make_record((1, 2, 3), summary="먼저 볼 수 있는 요약")
    session.next_fold = replace(session.next_fold, ready=(ready,))
    page_shows = page_text(page.run())
    assert "먼저 볼 수 있는 요약" in page_shows
    assert ":small[:gray[방금 만든 요약은 다음 메시지부터 적용됩니다.]]" in page_shows
    assert menus(page) == ["menu_card_record-1"]
    assert 'aria-label="요약 1">요약 1<' in raw_html(page)
    assert "요약합니다." not in page_shows
    # Once it's used it is a card as any other.
    session.records, session.next_fold = [ready], NextFold(turns=(4, 5, 6), turns_left=2)
    assert "다음 메시지부터 적용됩니다" not in page_text(page.run())


@pytest.mark.parametrize(
    ("newest", "cards", "earlier", "told"),
    [
        (
            make_record((4, 5, 6), original_chars=900, rate=0.25),
            ["menu_card_record-4", "menu_card_record-1"],
            [],
            ("총 요약: 2개 (6턴 압축)", "원본: 2,400자 → 요약: 675자", "전체 압축률: 72% 절감"),
        ),
        (
            replace(make_record((1, 2, 3, 4, 5), original_chars=2200, rate=0.1), id="newest", kind="compaction"),
            ["menu_card_newest"],
            ["restore_record-1"],
            ("총 요약: 1개 (5턴 압축)", "원본: 2,200자 → 요약: 220자", "전체 압축률: 90% 절감"),
        ),
    ],
)
def test_a_ready_summary_counts_alike_in_cards_statistics_and_button(
    page: AppTest,
    service: ScriptedService,
    newest: Record,
    cards: list[str],
    earlier: list[str],
    told: tuple[str, ...],
) -> None:
    identifier = store_session(service, 6)
    session, note = service.stored[identifier], ":small[:gray[방금 만든 요약은 다음 메시지부터 적용됩니다.]]"
    session.records = [replace(make_record((1, 2, 3)), kind=newest.kind)]
    session.compactions = [record for record in session.records if record.kind == "compaction"]
    session.next_fold = NextFold(is_due=True, ready=(newest,))
    page.session_state["compactions"] = True
    assert f'aria-label="요약 {len(cards)}"' in raw_html(open_page(page, identifier))
    assert menus(page) == cards
    assert lines(page) == []
    assert [key for key in keys(page) if key.startswith("restore_")] == earlier
    page.session_state["panel_tabs"] = "통계"
    page_shows = page_text(page.run())
    assert all(figure in page_shows for figure in told)
    assert note in page_shows
    # The next message uses it, and nothing of this changes.
    session.records = [record for record in session.records if not newest.covers(record)] + [newest]
    session.next_fold = NextFold(turns=(7, 8, 9), turns_left=2)
    page_shows = page_text(page.run())
    assert all(figure in page_shows for figure in told)
    assert note not in page_shows
    assert f'aria-label="요약 {len(cards)}"' in raw_html(page)


def test_a_summarys_card_stays_once_a_turn_has_used_it(service: ScriptedService) -> None:
    page = page_with_presses()
    identifier = store_session(service, 13)
    session = service.stored[identifier]
    *used, record = [make_record((first, first + 1, first + 2)) for first in (1, 4, 7, 10)]
    session.records, session.next_fold = used, NextFold(turns=(10, 11, 12), is_due=True, ready=(record,))
    open_page(page, identifier)
    drawn = menus(page), lines(page)
    assert stale_parts(page) == []
    session.records, session.next_fold = [*used, record], NextFold(turns=(13, 14, 15), turns_left=2)
    assert redraw.PANEL not in (stale_parts(page) or (redraw.PANEL,))
    assert stale_parts(page) == []
    assert (menus(page.run()), lines(page)) == drawn
    assert menus(page) == ["menu_card_record-10", "menu_card_record-7", "menu_card_record-4"]


def test_a_summary_that_is_ready_after_its_answer_changes_the_bar_too(service: ScriptedService) -> None:
    page = page_with_presses()
    identifier = store_session(service, 3)
    session = service.stored[identifier]
    session.next_fold = NextFold(turns=(1, 2, 3), is_due=True)
    open_page(page, identifier)
    assert stale_parts(page) == []
    session.next_fold = replace(session.next_fold, ready=(make_record((1, 2, 3)),))
    assert {redraw.PANEL, redraw.COMPOSER} <= {*(stale_parts(page) or ())}


def test_a_long_summary_is_sent_as_far_as_it_is_shown(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    service.stored[identifier].records = [make_record((1, 2, 3), summary="긴 요약입니다. " * 200)]
    open_page(page, identifier)
    for shown in (True, False):
        longest = max((str(text.value) for text in page.markdown), key=len)
        assert (len(longest) <= 600) is shown
        page.button(key="more_summary_record-1").click().run()


def test_summaries_that_arent_sent_are_lines_without_menus(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 7)
    session = service.stored[identifier]
    session.strategy, session.next_fold = "window", NextFold(sent_turns=10)
    open_page(page, identifier)
    assert menus(page) == []
    assert "지금은 보내지 않는 요약 2개" in [box.label for box in page.expander]
    page.session_state["older_records"] = page.session_state["older_record-1"] = True
    page.run()
    assert len(lines(page)) == 2
    assert session.records[0].summary in page_text(page)
    assert menus(page) == []


def test_a_card_says_what_its_fold_cost_and_who_wrote_it(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 7)
    records = service.stored[identifier].records
    records[0] = replace(records[0], is_usage=False, outcome="shortened")
    page_shows = page_text(open_page(page, identifier))
    assert r"입력 ≈1,024 · 출력 ≈260 토큰 · 1.2초 · offline-mini" in page_shows
    assert r"입력 1,024 · 출력 260 토큰 · 1.2초 · offline-mini" in page_shows
    assert "목표보다 길어 덜 중요한 문장을 제외했습니다." in page_shows
    assert "문장을 골랐습니다" not in page_shows
    records[0] = replace(records[0], input_tokens=0, output_tokens=0, model="extractive", outcome="picked")
    page_shows = page_text(page.run())
    assert ":small[:gray[토큰 0 · 문장 추출]]" in page_shows
    assert ":small[:orange[:material/report: 제시간에 요약을 만들지 못해 원문의 핵심 문장을 넣었습니다.]]" in page_shows


def lines(page: AppTest) -> list[str]:
    return [box.label for box in page.expander if box.label.startswith("\\[")]


def test_the_newest_cards_come_first_and_older_ones_are_lines_that_open(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 121)
    records = service.stored[identifier].records
    records[10] = make_record((31, 32, 33), original_chars=1364, summary="오래된 요약")
    records[-2:] = [
        make_record((115, 116, 117), summary="짧은 요약"),
        make_record((118, 119, 120), summary="긴 요약입니다. " * 40),
    ]
    open_page(page, identifier)
    assert [page_shows for page_shows in page_text(page).splitlines() if "턴 요약" in page_shows] == [
        rf"**\[{first}-{first + 2}턴 요약\]** :gray-badge[압축률 0.3]" for first in (118, 115, 112)
    ]
    assert "이전 요약 37개" in [box.label for box in page.expander]
    assert "more_summary_record-115" not in keys(page)
    assert page.button(key="more_summary_record-118").label == "더 보기"
    page.button(key="more_summary_record-118").click().run()
    assert page.button(key="more_summary_record-118").label == "줄이기"

    page.session_state["older_records"] = True
    page.run()
    assert len(lines(page)) == 30
    assert r"\[31-33턴\] 1,364자 → 409자" in lines(page)
    assert "오래된 요약" not in [text.value for text in page.markdown]
    page.session_state["older_record-31"] = True
    page.run()
    assert "오래된 요약" in [text.value for text in page.markdown]
    assert page.button(key="more_records").label == "7개 더 보기"
    page.button(key="more_records").click().run()
    assert len(lines(page)) == 37
    assert "more_records" not in keys(page)


def test_chart_draws_the_figures_of_the_service_where_it_is_shown(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 7)
    open_page(page, identifier)
    assert "chart" not in service.calls
    page.session_state["panel_tabs"] = "통계"
    page.run()
    chart = page.get("vega_lite_chart")[0].proto
    rows = chart_rows(page)
    assert {(row["turn"], row["kind"]): row["tokens"] for row in rows if "tokens" in row} == {
        (point.turn, kind): tokens
        for point in service.folds.chart(identifier)
        for kind, tokens in (("보낸 토큰", point.sent_tokens), ("전체 기록", point.full_tokens))
    }
    assert [(row["turn"], row["kind"]) for row in rows if "tokens" not in row] == [(4, "새 요약"), (7, "새 요약")]
    assert "7턴: 보낸 토큰 730, 전체 기록 2,050" in chart.alt
    for reset_after, turns in ((0, (1, 7)), (4, (5, 7)), (6, (7, 8))):
        service.reset_after = reset_after
        spec = json.loads(page.run().get("vega_lite_chart")[0].proto.spec)
        layers = [layer["encoding"]["x"]["scale"]["domain"] for layer in spec["layer"]]
        assert {tuple(domain) for domain in layers} == {turns}

    service.reset_after = 0
    open_page(page, store_session(service, 30))
    assert [row["turn"] for row in chart_rows(page) if row.get("kind") == "새 요약"] == [*range(4, 30, 3)]
    drawn, rules = json.loads(page.get("vega_lite_chart")[0].proto.spec)["layer"][::-1]
    for channel in ("color", "strokeDash"):
        assert drawn["encoding"][channel] == rules["encoding"][channel]
        assert rules["encoding"][channel]["sort"] == ["보낸 토큰", "전체 기록", "새 요약"]
    # More of them would run into a block.
    open_page(page, store_session(service, 200))
    rows = chart_rows(page)
    assert {row["kind"] for row in rows} == {"보낸 토큰", "전체 기록"}
    assert {row["turn"] for row in rows} == {*range(1, 201)}


def test_gauge_tells_the_next_input_the_last_report_and_a_guessed_window(
    page: AppTest, service: ScriptedService
) -> None:
    open_page(page, store_session(service, 2))
    assert "≈17%</b>" in gauge_text(page)
    assert "· ≈1,416 / 8,192<" in gauge_text(page)
    assert "≈는 다음에 보낼 입력을 Turnfold가 추정한 값입니다." in gauge_text(page)
    assert "보고한" not in gauge_text(page)
    service.gauge_now = Gauge(sent_tokens=2048, window_tokens=8192, is_guess=True, reported_tokens=1999)
    page.run()
    assert "<b>≈25%</b>" in gauge_text(page)
    assert "· ≈2,048 / 8,192 (추정)<" in gauge_text(page)
    assert "1,999: 마지막 입력에 대해 모델 제공자가 보고한 사용량입니다." in gauge_text(page)
    assert "MODEL_WINDOW_TOKENS" in gauge_text(page)


def test_panel_button_counts_the_summaries(page: AppTest, service: ScriptedService) -> None:
    page.run()
    for turns, label in ((0, "요약"), (1, "첫 요약까지 2턴"), (2, "첫 요약까지 1턴"), (7, "요약 2")):
        if turns:
            open_page(page, store_session(service, turns))
        assert f'aria-label="{label}">{label}<' in raw_html(page)
