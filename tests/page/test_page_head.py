from __future__ import annotations

import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from component.words.text import LANGUAGES, Language
from component.words.wording import words_of
from graph.value.view import NextFold
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, page_text, raw_html, say, setting, slider_of, store_session

BY_TURNS = NextFold(turns=(1, 2, 3), turns_left=1, original_chars=1240, summary_chars=372)
DUE = NextFold(turns=(1, 2, 3), original_chars=1240, summary_chars=372, is_due=True)
AFTER_RESET = NextFold(turns=(11, 12), turns_left=2, is_reset=True)


def test_before_the_first_word_an_example_follows_the_slider(page: AppTest) -> None:
    for rate, about in ((0.3, 360), (0.1, 120), (0.5, 600)):
        slider_of(page.run()).set_value(rate).run()
        assert f"예: 1,200자 → 약 {about}자" in page_text(page)


def test_the_nearest_of_three_prepared_summaries_of_one_original_is_shown(page: AppTest) -> None:
    words = words_of("ko")
    original = sum(map(len, words.sample_messages))
    for rate, nearest in ((0.1, 0), (0.15, 0), (0.2, 1), (0.35, 1), (0.4, 2), (0.5, 2)):
        slider_of(page.run()).set_value(rate).run()
        (shown,) = re.findall(r'<div class="sample"[^>]*\d">(.*?)</div>', raw_html(page))
        notes = words.sample_notes[nearest]
        assert f"압축률 {(0.1, 0.3, 0.5)[nearest]} · 예시" in shown
        assert f"{original}자 → {len(notes)}자 (원문의 {round(100 * len(notes) / original)}% 길이)" in shown
        assert all(f"<p>{line}</p>" in shown for line in notes.splitlines())
    assert all(message in raw_html(page) for message in words.sample_messages)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sample_is_of_one_length_and_its_notes_grow_with_the_rate_and_invent_nothing(language: Language) -> None:
    words = words_of(language)
    said = " ".join(words.sample_messages)
    assert 450 <= sum(map(len, words.sample_messages)) <= 600
    lengths = [len(notes) for notes in words.sample_notes]
    assert lengths == sorted(set(lengths))
    for notes, rate in zip(words.sample_notes, (0.1, 0.3, 0.5), strict=True):
        assert 0.5 <= len(notes) / (rate * sum(map(len, words.sample_messages))) <= 1
        for line in notes.splitlines():
            numbers = re.findall(r"\d+", re.sub(r"^\((turn \d|\d턴)\)", "", line))
            assert all(re.search(rf"(?<!\d){number}(?!\d)", said) for number in numbers), line


def test_one_sentence_of_the_empty_page_says_when_turns_are_summarised(page: AppTest, service: ScriptedService) -> None:
    shown = page_text(page.run()) + raw_html(page)
    assert shown.count("세 턴(질문과 답변 세 쌍)마다") == 1
    assert "첫 요약까지" not in shown
    assert "다음 요약" not in shown
    for turn_count in (1, 2):
        open_page(page, store_session(service, turn_count))
        assert f"첫 요약까지 {3 - turn_count}턴" in page_text(page)
    open_page(page, store_session(service, 4))
    assert "첫 요약까지" not in page_text(page)


def test_when_it_pays_is_chosen_beside_the_strategy_and_the_panel_says_when_the_next_summary_comes(
    page: AppTest, service: ScriptedService
) -> None:
    setting(page, "fold_when").set_value("pays").run()
    assert "여섯 턴을 한 번에 하나로 요약합니다." in page_text(page)
    assert "세 턴마다" not in page_text(page)
    assert "[1-3턴 요약]" in raw_html(page)  # the sample stays what it was made of
    say(page, "첫째", "둘째", "셋째", "넷째")
    (session,) = service.stored.values()
    assert "첫 요약까지 2턴" in page_text(page)
    together = "1-6턴은 6턴이 끝난 뒤 한 번에 요약합니다. 자리가 모자라면 더 일찍 요약합니다."
    assert together in page_text(page)

    for strategy in ("rolling", "compaction", "window"):
        setting(page, "strategy").set_value(strategy).run()
        assert "fold_when_ko" not in {box.key for box in page.selectbox}
    setting(page, "strategy").set_value("interval").run()
    assert (setting(page, "fold_when").value, session.fold_when) == ("pays", "pays")
    setting(page, "fold_when").set_value("due").run()
    assert service.stored["session-1"].fold_when == "due"
    assert "세 턴마다 하나로 요약하고" in page_text(page)
    assert together not in page_text(page)


def test_the_line_of_the_next_fold_says_what_it_will_come_to(page: AppTest, service: ScriptedService) -> None:
    service.answer = lambda _: "답" * 496
    identifier = store_session(service, 2)
    session = service.stored[identifier]
    assert "다음 요약: 지금까지 1,000자 → 약 300자" in page_text(open_page(page, identifier))
    slider_of(page).set_value(0.5).run()
    assert "다음 요약: 지금까지 1,000자 → 약 500자" in page_text(page)
    slider_of(page).set_value(0.3).run()

    session.next_fold = BY_TURNS
    page_shows = page_text(page.run())
    assert slider_of(page).value == 0.3
    assert "현재 압축률: 0.3" in page_shows
    assert "원문의 30% 길이" in page_shows
    assert "다음 요약: 지금까지 1,240자 → 약 370자" in page_shows

    session.next_fold = replace(BY_TURNS, original_chars=104, summary_chars=104)
    assert "다음 요약: 지금까지 104자 · 너무 짧으면 요약하지 않고 원문 그대로 보냅니다" in page_text(page.run())

    short = "다음 요약: 104자 · 짧아서 요약하지 않고 원문 그대로 보냅니다"
    session.next_fold = replace(DUE, original_chars=104, summary_chars=104)
    page_shows = page_text(page.run())
    assert short in page_shows
    assert "요약합니다." not in page_shows

    session.next_fold = DUE
    page_shows = page_text(page.run())
    assert "다음 메시지를 보낼 때 요약합니다." in page_shows
    assert "첫 요약까지" not in page_shows
    for failures, sentence in (
        (1, "요약을 만들지 못했습니다. 다음 답변 뒤에 다시 시도합니다."),
        (3, "요약을 3번 연속 만들지 못했습니다. 다음 턴부터는 원문의 핵심 문장이 요약을 대신합니다."),
    ):
        session.fold_failures = failures
        page_shows = page_text(page.run())
        assert f":small[:gray[{sentence}]]" in page_shows
        assert "다음 메시지를 보낼 때" not in page_shows

    session.next_fold, session.fold_failures = AFTER_RESET, 0
    page_shows = page_text(page.run())
    assert "컨텍스트를 초기화한 뒤로는 아직 요약이 없습니다." in page_shows
    assert "다음 요약: 12턴이 끝난 뒤" in page_shows
    assert "첫 요약" not in page_shows
    assert 'class="steps"' not in raw_html(page)


@pytest.mark.parametrize(
    ("strategy", "following", "sentences"),
    [
        (
            "rolling",
            NextFold(tokens=1240, threshold_tokens=8000),
            ("8,000토큰을 넘으면 답변 뒤에 요약 하나를", "다음 요약: 지금까지 ≈1,240 / 8,000토큰"),
        ),
        (
            "compaction",
            NextFold(tokens=1240, threshold_tokens=75000),
            ("컨텍스트가 75,000토큰에 이르면", "다음 요약: 지금까지 ≈1,240 / 75,000토큰"),
        ),
        ("compaction", NextFold(), ("자동 압축이 꺼져 있습니다.",)),
        ("window", NextFold(sent_turns=10), ("요약을 만들거나 보내지 않습니다. 최근 10턴만 보냅니다.",)),
        ("window", NextFold(sent_turns=0), ("요약을 만들거나 보내지 않습니다. 현재 메시지만 보냅니다.",)),
    ],
)
def test_a_strategy_that_does_not_use_the_rate_says_so_and_when_it_folds(
    page: AppTest, service: ScriptedService, strategy: str, following: NextFold, sentences: tuple[str, ...]
) -> None:
    identifier = store_session(service, 2)
    session = service.stored[identifier]
    session.next_fold, session.strategy = following, strategy
    page_shows = page_text(open_page(page, identifier))
    assert all(sentence in page_shows for sentence in sentences)
    assert page_shows.count("이 전략은 압축률을 쓰지 않습니다.") == 1
    assert "<span>요약 압축률</span><i>이 전략은 압축률을 쓰지 않습니다.</i>" in raw_html(page)
    assert "[type=range]" not in raw_html(page)
    assert "현재 압축률" not in page_shows
    assert "변경한 값은 다음 요약부터" not in page_shows
    assert "턴이 끝난 뒤" not in page_shows
    assert slider_of(page).disabled


def test_the_rate_is_used_again_once_its_strategy_is_chosen(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 2)
    service.stored[identifier].strategy = "window"
    setting(open_page(page, identifier), "strategy").set_value("interval").run()
    assert not slider_of(page).disabled
    assert "현재 압축률: 0.3" in page_text(page)
