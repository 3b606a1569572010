from __future__ import annotations

import pytest

from component.words.wording import words_of
from graph.service import ChatService
from tests.fake.program import asked_by
from tests.fake.resending import assistant, user
from tests.page.reading import new_page, open_page, page_text, raw_html

TABS = "panel_tabs"


@pytest.mark.parametrize(
    "strategy",
    ["compaction", *(pytest.param(name, marks=pytest.mark.slow) for name in ("interval", "rolling", "window"))],
)
def test_the_model_input_of_every_strategy_is_shown(real_service: ChatService, strategy: str) -> None:
    identifier = real_service.sessions.new_id()
    for number in range(1, 5):
        real_service.turns.send(identifier, f"서버 이전 {number}단계에서 할 일을 설명해 줘")
        list(real_service.turns.follow(identifier))
        real_service.sessions.configure(identifier, strategy=strategy)
    if strategy == "compaction":
        real_service.folds.compact(identifier)
    options = asked_by(preamble=(user("저장소의 파일입니다."), assistant("Ok.")))
    real_service.turns.send(identifier, "지금까지의 일정을 정리해 줘", options=options)
    list(real_service.turns.follow(identifier))
    page = new_page()
    page.session_state[TABS] = words_of("ko").input.tab
    open_page(page, identifier)
    assert not page.exception
    # Only what doesn't fit is said at once.
    assert "복원하지 못했습니다" not in page_text(page)
    assert "실제로 보낸 내용과 같습니다" not in page_text(page)
    page.session_state[f"input_details_{identifier}_5_1_1"] = True
    assert "실제로 보낸 내용과 같습니다" in page_text(page.run())
    groups = [box.label for box in page.expander if "시스템 프롬프트" in box.label or "구획 제목" in box.label]
    assert len(groups) == (2 if strategy in ("rolling", "compaction") else 1)
    assert sum("이번 턴의 컨텍스트" in box.label for box in page.expander) == 1
    if strategy == "interval":
        page.session_state[f"input_records_{identifier}_5_1_1"] = True
        assert any(r"\[1-3턴 요약\]" in box.label for box in page.run().expander)
        real_service.folds.undo(identifier, real_service.folds.records(identifier)[0].id)
        real_service.turns.send(identifier, "지금까지의 일정을 다시 정리해 줘", options=options)
        list(real_service.turns.follow(identifier))
        page.session_state[f"input_records_{identifier}_6_1_1"] = True
        assert any(r"\[1-3턴 원문\]" in box.label for box in page.run().expander)


def test_an_example_has_its_input_and_figures_marked_as_prepared(real_service: ChatService) -> None:
    identifier, words = real_service.sessions.open_example("ko"), words_of("ko")
    page = new_page()
    page.session_state[TABS] = words.input.tab
    open_page(page, identifier)
    assert words.prepared in page_text(page)
    assert raw_html(page).count(words.prepared) == 7  # instead of each answer's model and tokens
    assert any("시스템 프롬프트" in box.label for box in page.expander)
    assert "자세히" not in [box.label for box in page.expander]  # no request was made
    page.session_state[TABS] = words.tab_statistics
    page.run()
    assert words.prepared in page_text(page)
    assert page.get("vega_lite_chart")
    page.session_state[TABS] = words.tab_summaries
    assert not [box.label for box in page.run().expander if "orange" in box.label]
