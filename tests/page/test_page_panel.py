from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pyarrow import ipc  # type: ignore[import-untyped]  # it has no stubs
from streamlit.testing.v1 import AppTest

from component.format import format_count
from graph.view import Gauge, ModelOption
from tests.fake.scripted_service import ScriptedService
from tests.fake.scripted_session import make_record
from tests.page.reading import keys, open_page, raw_html, store_session, told


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
    said = told(page)
    assert "📝 대화 요약 히스토리" in said
    assert "현재 압축률: 0.3" in said
    assert r"**\[1-3턴 요약\]** :gray-badge[압축률 0.3]" in said
    for chars in ("1500자 → 450자 (원문의 30% 길이)", "100자 → 30자", "800자 → 240자"):
        assert chars in said
    assert "사용자가 인사하고 파이썬 3.13을 물음." in [text.value for text in page.markdown]

    page.session_state["tabs_rail"] = "통계"
    said = told(page.run())
    assert "📊 요약 통계" in said
    assert "총 요약: 3개 (9턴 압축)" in said
    assert "원본: 2400자 → 요약: 720자" in said
    assert "전체 압축률: 70% 절감 (원문의 30% 길이)" in said


def test_summaries_that_grew_are_not_called_savings(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    service.stored[identifier].records = [replace(make_record((1, 2, 3), original_chars=100), summary_chars=112)]
    page.session_state["tabs_rail"] = "통계"
    assert "전체 압축률: 12% 증가 (원문의 112% 길이)" in told(open_page(page, identifier))


@pytest.mark.parametrize(("fold_tokens", "net"), [(1_284, "≈−84"), (20_000, "≈−18,800"), (260, "≈940")])
def test_net_savings_are_told_also_where_summaries_cost_more_than_they_saved(
    page: AppTest, service: ScriptedService, fold_tokens: int, net: str
) -> None:
    identifier = store_session(service, 7)
    records = service.stored[identifier].records
    records[:] = [replace(record, input_tokens=fold_tokens // 2, output_tokens=0) for record in records]
    page.session_state["tabs_rail"] = "통계"
    said = told(open_page(page, identifier))
    assert f"**순 절감: {net} 토큰**" in said
    assert f"요약을 만든 토큰: {format_count(fold_tokens)}" in said  # as its provider reported it
    assert "요약하며 잃은 캐시: ≈60" in said


def test_without_a_summary_a_sentence_stands_for_the_figures(page: AppTest, service: ScriptedService) -> None:
    page.session_state["tabs_rail"] = "통계"
    said = told(open_page(page, store_session(service, 1)))
    assert "아직 요약이 없습니다. 요약하거나 보내지 않는 턴이 생기면" in said
    assert "총 요약" not in said
    assert "토큰: ≈0" not in said
    assert not page.get("vega_lite_chart")


def test_what_a_strategy_without_summaries_saves_is_told(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    service.stored[identifier].unsent_tokens = 12_000
    page.session_state["tabs_rail"] = "통계"
    said = told(open_page(page, identifier))
    assert "보내지 않은 토큰: ≈12,000" in said
    assert "총 요약" not in said
    assert page.get("vega_lite_chart")


def test_cost_of_a_fold_tells_estimate_from_usage(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 7)
    records = service.stored[identifier].records
    records[0] = replace(records[0], is_usage=False, outcome="shortened")
    said = told(open_page(page, identifier))
    assert r"입력 ≈1024 · 출력 ≈260 토큰 · 1.2초 · offline-mini" in said
    assert r"입력 1024 · 출력 260 토큰 · 1.2초 · offline-mini" in said
    assert "목표보다 길어 덜 중요한 문장을 덜어 냈습니다." in said


def test_fold_without_a_model_says_that_it_cost_nothing(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    records = service.stored[identifier].records
    records[0] = replace(records[0], input_tokens=0, output_tokens=0, model="extractive")
    assert ":small[:gray[토큰 0 · 문장 추출]]" in told(open_page(page, identifier))


def test_picked_sentences_are_told_from_a_summary_of_the_model(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    records = service.stored[identifier].records
    assert "문장을 골랐습니다" not in told(open_page(page, identifier))
    records[0] = replace(records[0], outcome="picked", model="extractive")
    said = told(page.run())
    assert "요약 모델이 제때 쓸 만한 요약을 내지 못해 원문에서 문장을 골랐습니다." in said


def test_a_card_says_how_many_facts_are_kept_and_lists_the_missing_ones_first(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 7)
    kept, missing = ("PEP 703", "10월 14일", "[x](y)"), ("python3.13t", "--enable-experimental-jit")
    records = [make_record((1, 2, 3)), make_record((4, 5, 6))]
    service.stored[identifier].records = [records[0], replace(records[1], kept_facts=kept, missing_facts=missing)]
    open_page(page, identifier)
    assert [box.label for box in page.expander if "사실" in box.label] == [":orange[사실 3/5 유지]"]
    assert "PEP 703" not in told(page)
    page.session_state["facts_rail_record-4"] = True
    said = told(page.run())
    assert said.index("빠진 사실") < said.index("python3.13t") < said.index("유지된 사실") < said.index("PEP 703")
    assert r":gray-badge[\[x\](y)]" in said


def test_a_card_without_a_missing_fact_says_so_in_green(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    service.stored[identifier].records = [replace(make_record((1, 2, 3)), kept_facts=("K7QX2M",))]
    open_page(page, identifier)
    assert [box.label for box in page.expander if "사실" in box.label] == [":green[사실 1/1 유지]"]
    page.session_state["facts_rail_record-1"] = True
    assert "빠진 사실" not in told(page.run())


def test_only_the_newest_cards_are_sent_and_the_newest_comes_first(page: AppTest, service: ScriptedService) -> None:
    open_page(page, store_session(service, 31))
    assert [said for said in told(page).splitlines() if "턴 요약" in said] == [
        rf"**\[{first}-{first + 2}턴 요약\]** :gray-badge[압축률 0.3]" for first in (28, 25, 22)
    ]
    assert "이전 요약 7개" in [box.label for box in page.expander]


def test_older_summaries_are_lines_that_open(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 31)
    service.stored[identifier].records[0] = make_record((1, 2, 3), original_chars=1364, summary="가장 오래된 요약")
    page.session_state["older_rail"] = True
    open_page(page, identifier)
    lines = [box.label for box in page.expander if box.label.startswith("\\[")]
    assert len(lines) == 7
    assert lines[-1] == r"\[1-3턴\] 1364자 → 409자"
    assert "가장 오래된 요약" not in [text.value for text in page.markdown]
    page.session_state["older_rail_record-1"] = True
    page.run()
    assert "가장 오래된 요약" in [text.value for text in page.markdown]


def test_a_card_knows_its_turns_and_what_was_kept_word_for_word_stays_literal(
    page: AppTest, service: ScriptedService
) -> None:
    identifier = store_session(service, 4)
    record = make_record((1, 2, 3), summary="**굵게** [말](https://a.kr)")
    service.stored[identifier].records = [record]
    said = told(open_page(page, identifier))
    assert 'aria-label="이 턴으로 가기" data-first="1" data-last="3"' in raw_html(page)
    assert r"**굵게** \[말](https:color[\:]//a.kr)" in said
    service.stored[identifier].records = [replace(record, kind="verbatim", original_chars=166, summary_chars=223)]
    page.run()
    assert record.summary in [text.value for text in page.text]
    assert "166자 · 원문 그대로" in told(page)
    assert "223자" not in told(page)


def test_many_older_summaries_come_page_by_page(page: AppTest, service: ScriptedService) -> None:
    page.session_state["older_rail"] = True
    open_page(page, store_session(service, 121))
    assert sum(box.label.startswith("\\[") for box in page.expander) == 30
    assert page.button(key="more_records_rail").label == "7개 더 보기"
    page.button(key="more_records_rail").click().run()
    assert sum(box.label.startswith("\\[") for box in page.expander) == 37
    assert "more_records_rail" not in keys(page)


def test_a_long_summary_opens_in_place(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 7)
    service.stored[identifier].records = [
        make_record((1, 2, 3), summary="짧은 요약"),
        make_record((4, 5, 6), summary="긴 요약입니다. " * 40),
    ]
    open_page(page, identifier)
    assert "more_summary_rail_record-1" not in keys(page)
    assert page.button(key="more_summary_rail_record-4").label == "더 보기"
    page.button(key="more_summary_rail_record-4").click().run()
    assert page.button(key="more_summary_rail_record-4").label == "줄이기"


def chart_rows(page: AppTest) -> list[dict[str, object]]:
    datasets = page.get("vega_lite_chart")[0].proto.datasets
    return [row for dataset in datasets for row in ipc.open_stream(dataset.data.data).read_all().to_pylist()]


def test_chart_draws_the_figures_of_the_service(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 7)
    page.session_state["tabs_rail"] = "통계"
    open_page(page, identifier)
    chart = page.get("vega_lite_chart")[0].proto
    rows = chart_rows(page)
    assert {(row["turn"], row["kind"]): row["tokens"] for row in rows if "tokens" in row} == {
        (point.turn, kind): tokens
        for point in service.folds.chart(identifier)
        for kind, tokens in (("보낸 토큰", point.sent_tokens), ("전체 기록", point.full_tokens))
    }
    assert [(row["turn"], row["kind"]) for row in rows if "tokens" not in row] == [(4, "새 요약"), (7, "새 요약")]
    assert "7턴: 보낸 토큰 730, 전체 기록 2050" in chart.alt
    assert "≈ 추정한 토큰 수입니다." in told(page)


def test_new_summaries_are_marked_in_a_long_chat_too_and_the_legend_names_the_mark(
    page: AppTest, service: ScriptedService
) -> None:
    page.session_state["tabs_rail"] = "통계"
    open_page(page, store_session(service, 61))
    assert [row["turn"] for row in chart_rows(page) if row.get("kind") == "새 요약"] == [*range(4, 62, 3)]
    lines, rules = json.loads(page.get("vega_lite_chart")[0].proto.spec)["layer"][::-1]
    kinds = ["보낸 토큰", "전체 기록", "새 요약"]
    for channel in ("color", "strokeDash"):
        assert lines["encoding"][channel] == rules["encoding"][channel]
        assert rules["encoding"][channel]["sort"] == kinds


@pytest.mark.parametrize(("reset_after", "turns"), [(0, [1, 7]), (4, [5, 7]), (6, [7, 8])])
def test_chart_begins_with_the_first_turn_since_a_reset(
    page: AppTest, service: ScriptedService, reset_after: int, turns: list[int]
) -> None:
    service.reset_after = reset_after
    page.session_state["tabs_rail"] = "통계"
    open_page(page, store_session(service, 7))
    spec = json.loads(page.get("vega_lite_chart")[0].proto.spec)
    layers = [layer["encoding"]["x"]["scale"]["domain"] for layer in spec.get("layer", [spec])]
    assert {tuple(domain) for domain in layers} == {tuple(turns)}


def test_chart_is_asked_for_only_where_it_is_shown(page: AppTest, service: ScriptedService) -> None:
    open_page(page, store_session(service, 7))
    assert "chart" not in service.calls


def test_gauge_tells_estimate_from_usage(page: AppTest, service: ScriptedService) -> None:
    open_page(page, store_session(service, 2))
    assert "≈17%</b>" in gauge_text(page)
    assert "· ≈1416 / 8192<" in gauge_text(page)
    assert "≈는 마지막으로 보낸 입력을 직접 센 추정치입니다." in gauge_text(page)
    service.gauge_now = Gauge(sent_tokens=2048, window_tokens=8192, source="usage")
    page.run()
    assert "<b>25%</b>" in gauge_text(page)
    assert "· 2048 / 8192<" in gauge_text(page)
    assert "≈" not in gauge_text(page)
    assert "마지막 입력에 대해 모델 제공자가 보고한 사용량입니다." in gauge_text(page)


def test_gauge_names_the_model_that_answers(page: AppTest, service: ScriptedService) -> None:
    open_page(page, store_session(service, 1))
    assert '<span class="model">offline-mini · 내장</span> · </span><span class="word">컨텍스트' in gauge_text(page)
    service.settings = service.settings.model_copy(update={"openai_base_url": "http://127.0.0.1:9"})
    service.models = (ModelOption('<i>"big"</i>', is_offline=False),)
    page.button(key="new_chat").click().run()
    assert (
        '<span class="model">&lt;i&gt;&quot;big&quot;&lt;/i&gt;</span> · </span><span class="word">컨텍스트'
        in gauge_text(page)
    )
    assert 'title="&lt;i&gt;&quot;big&quot;&lt;/i&gt;&#10;' in gauge_text(page)


@pytest.mark.parametrize(
    ("turns", "label"), [(0, "요약 0 · 3턴 뒤"), (1, "요약 0 · 2턴 뒤"), (2, "요약 0 · 1턴 뒤"), (7, "요약 2")]
)
def test_drawer_button_counts_the_summaries(page: AppTest, service: ScriptedService, turns: int, label: str) -> None:
    page.run()
    if turns:
        open_page(page, store_session(service, turns))
    assert page.button(key="open_panel").label == label
