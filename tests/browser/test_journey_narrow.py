"""What people do with a narrow page, one journey a subject; no state on the way breaks a rule of axe.

`make test` has a few journeys on a wide or on a narrow page and in one theme, `make test-all` all on both and in both
themes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Target
from tests.browser.stage import NARROW
from tests.browser.state import other_journeys, quick_journeys, walk
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.timeout(900)  # a journey is one test of up to twenty states


@pytest.mark.parametrize("journey", quick_journeys(1))
def test_journey(journey: str, chromium: Browser, target: Target, fake_openai: FakeOpenAI, tmp_path: Path) -> None:
    walk(journey, NARROW, chromium, target, fake_openai, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("journey", quick_journeys(1))
def test_journey_in_the_other_theme(
    journey: str, chromium: Browser, target: Target, fake_openai: FakeOpenAI, tmp_path: Path
) -> None:
    walk(journey, NARROW, chromium, target, fake_openai, tmp_path, "other")


@pytest.mark.slow
@pytest.mark.parametrize("journey", other_journeys(1))
def test_journey_in_both_themes(
    journey: str, chromium: Browser, target: Target, fake_openai: FakeOpenAI, tmp_path: Path
) -> None:
    walk(journey, NARROW, chromium, target, fake_openai, tmp_path, "both")
