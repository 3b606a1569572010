"""What people do with the page, one journey a subject; no state on the way breaks a rule of axe.

`make test` has each journey in one look and one theme, `make test-all` in both looks and both themes of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser

from graph.service import ChatService
from tests.browser.axe import walk_without_violation
from tests.browser.conftest import preparing, scripted_settings, started
from tests.browser.site import opened_site
from tests.browser.stage import LOOKS, staged
from tests.browser.state import JOURNEYS, states_of
from tests.fake.identity_provider import IdentityProvider
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.timeout(900)  # a journey is one test of up to twenty states

NARROW_LIMITS = {
    "CONTEXT_STRATEGY": "compaction",
    "ENABLE_AUTO_COMPACTION": "false",
    "MAX_CONTEXT_TOKENS": "2000",
    "ROLLING_SENDS_UNSUMMARISED": "false",
}


class Place(NamedTuple):
    """Where a journey goes; `service` is another server's on the same files."""

    address: str
    service: ChatService


@pytest.fixture
def place(journey: str, request: pytest.FixtureRequest, fake_openai: FakeOpenAI, tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        if journey == "sign-in":
            provider = stack.enter_context(IdentityProvider())
            site = stack.enter_context(opened_site(tmp_path, fake_openai, provider))
            service = stack.enter_context(preparing(tmp_path, fake_openai))
            yield Place(site.address, service.for_owner(site.owner("minsu")))
        elif journey in {"project", "full context"}:
            (tmp_path / "projects" / "shop").mkdir(parents=True)
            changes = {"project": {"PROJECT_ROOTS": str(tmp_path / "projects/shop")}}.get(journey, NARROW_LIMITS)
            address = stack.enter_context(started(tmp_path, {**scripted_settings(fake_openai), **changes}))
            yield Place(address, stack.enter_context(preparing(tmp_path, fake_openai, **changes)))
        else:
            address = request.getfixturevalue("offline_address" if journey == "first chat" else "address")
            yield Place(address, request.getfixturevalue("other_server"))


def in_turns() -> Iterator[object]:
    for journey, own in zip(JOURNEYS, cycle(LOOKS), strict=False):
        yield pytest.param(journey, own, False, id=journey)
        for look in LOOKS:
            yield pytest.param(journey, look, True, id=f"{journey}: {look}", marks=pytest.mark.slow)


@pytest.mark.parametrize(("journey", "look", "in_both_themes"), list(in_turns()))
def test_journey(
    journey: str,
    look: str,
    *,
    in_both_themes: bool,
    chromium: Browser,
    place: Place,
    fake_openai: FakeOpenAI,
    tmp_path: Path,
) -> None:
    with staged(chromium, place.address, look, fake_openai, place.service, tmp_path) as stage:
        walk_without_violation(stage, states_of(JOURNEYS[journey]), in_both_themes=in_both_themes)
