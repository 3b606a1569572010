from __future__ import annotations

from decimal import Decimal

from streamlit.testing.v1 import AppTest

from graph.value.view import CostView, Money, SavingsMoney
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, page_text, store_session


def cost(amount: str, *, summaries: str = "0", is_estimate: bool = False, unpriced: int = 0) -> CostView:
    total, part = (Money(Decimal(each), is_estimate) for each in (amount, summaries))
    return CostView("USD", total, part, unpriced)


def test_amounts_are_told_with_what_they_are_and_without_prices_there_are_none(
    page: AppTest, service: ScriptedService
) -> None:
    page.session_state["panel_tabs"] = "통계"
    page_shows = page_text(open_page(page, store_session(service, 7)))
    assert not [word for word in ("비용", "USD", "캐시 가격") if word in page_shows]

    service.cost = cost("0.0123", summaries="0.004")
    page_shows = page_text(page.run())
    assert "💰 비용" in page_shows
    assert "이 대화: **0.0123 USD**\n" in f"{page_shows}\n"
    assert "그중 요약: 0.0040 USD" in page_shows
    assert "모든 대화: **0.0123 USD**" in page_shows
    assert "가격이 없는" not in page_shows
    assert "≈는 추정치입니다." not in page_shows

    service.cost = cost("0.0123", is_estimate=True, unpriced=3)
    service.saved_money = SavingsMoney("USD", Decimal("0.01"), Decimal("0.012"), Decimal("0.001"))
    page_shows = page_text(page.run())
    assert "이 대화: **≈0.0123 USD** + 가격이 없는 호출 3회" in page_shows
    assert "≈는 추정치입니다." in page_shows
    assert "그중 요약" not in page_shows
    assert " · ≈0.0100 USD" in page_shows
    assert "요약으로 무효화된 캐시: ≈60 · ≈0.0010 USD" in page_shows
    assert "\n**아직 투자 단계: " in page_shows
    assert ":small[:gray[비용 ≈0.0030 USD 증가]]" in page_shows
    assert "≈−" not in page_shows
    assert "보내지 않은 토큰은 캐시 단가로" in page_shows

    page_shows = page_text(open_page(page, store_session(service, 1)))
    assert "아직 요약이 없습니다." in page_shows
    assert "이 대화: **≈0.0123 USD**" in page_shows
