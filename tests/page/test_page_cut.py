from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, open_page, store_session, told


@pytest.mark.parametrize(
    ("locale", "sentence"), [("ko-KR", "길이 한도에서 답이 끊겼습니다"), ("en-US", "length limit")]
)
def test_an_answer_cut_at_the_models_limit_says_so_under_it(
    page: AppTest, service: ScriptedService, locale: str, sentence: str
) -> None:
    identifier = store_session(service, 2)
    turns = service.stored[identifier].turns
    page.context["locale"] = locale
    open_page(page, identifier)
    assert sentence not in told(page)
    turns[0] = replace(turns[0], is_cut=True)
    open_page(page, identifier)
    assert told(page).count(sentence) == 1
    assert "regenerate" in keys(page)
