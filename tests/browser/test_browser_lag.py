from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import ROOT, scripted_settings, started, visiting
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI

LAGGING: Final = ROOT / "tests" / "fake" / "lagging_app.py"
TIMES: Final = 6


def test_nothing_drawn_is_lost_while_the_server_lags(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, fake_openai: FakeOpenAI
) -> None:
    folder: Path = tmp_path_factory.mktemp("lagging")
    shutil.copytree(ROOT / ".streamlit", folder / ".streamlit")
    asked = "서버가 느릴 때 오래 걸리는 답"
    fake_openai.script(hang("여기까지 씁니다. "), to=asked)
    with (
        started(folder, scripted_settings(fake_openai), script=LAGGING) as address,
        visiting(chromium, address) as visitor,
    ):
        visitor.open()
        visitor.write(asked)
        expect(visitor.turn(1)).to_contain_text("여기까지 씁니다.")
        for number in range(TIMES):
            visitor.write(f"성급한 말 {number}")
            expect(visitor.field).to_have_value(f"성급한 말 {number}")
        visitor.find("stop").locator("button").click()
        visitor.wait_for_end(1)
