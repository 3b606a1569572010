from __future__ import annotations

import pytest

from component.words.wording import words_of
from graph.service import ChatService
from tests.fake.program import asked_by
from tests.fake.resending import assistant, user
from tests.page.reading import new_page, open_page, page_text

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
    assert "실제로 보낸 내용과 같습니다" in page_text(page)
    groups = [box.label for box in page.expander if "시스템 프롬프트" in box.label or "구획 제목" in box.label]
    assert len(groups) == (2 if strategy in ("rolling", "compaction") else 1)
    assert sum("이번 턴의 컨텍스트" in box.label for box in page.expander) == 1
