"""The page of a visitor who signs out: in this browser, in another one, or everywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from streamlit.testing.v1 import AppTest

from component.bridge import service_provider
from component.words.wording import words_of
from graph.server.identity import Identity
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from tests.fake.sign_in import PROVIDER
from tests.page.reading import keys, new_page, page_text, say

VISITOR: Final = {"is_logged_in": True, "iss": PROVIDER["oidc_issuer"], "sub": "visitor-1", "name": "민수"}
SAID: Final = "제 비밀 여행지는 통영입니다."
WORDS: Final = words_of("ko").sign_in


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ChatService]:
    """A server with a sign-in, and the offline model."""
    with open_service(Settings(_env_file=None, turnfold_data_dir=tmp_path / "data", **PROVIDER)) as opened:  # type: ignore[call-arg]  # the base class's own argument
        service_provider.provide(opened)
        yield opened
    service_provider.provide(None)


def claims_of(browser: str) -> dict[str, Any]:
    return {**VISITOR, "nonce": browser, "iat": int(time.time()), "exp": time.time() + 3600}


def identity_of(page: AppTest, service: ChatService) -> Identity:
    identity = service_provider.identity_from(page.user, service.settings)
    assert identity is not None
    return identity


def signed_in(browser: str) -> AppTest:
    page = new_page()
    page.user = claims_of(browser)
    page.run()
    assert "sign_out" in keys(page)
    assert "민수" in page_text(page)
    return page


def is_out(page: AppTest, reason: str = WORDS.ended) -> bool:
    """Whether the sign-in page is all that is shown, with this reason."""
    assert not page.exception
    return (WORDS.title in page_text(page), reason in page_text(page), SAID in page_text(page)) == (True, True, False)


def test_a_tab_that_is_open_shows_and_does_nothing_once_its_browser_has_signed_out(site: ChatService) -> None:
    laptop, phone = signed_in("laptop"), signed_in("phone")
    say(laptop, SAID)
    owner = identity_of(laptop, site)
    mine = site.for_owner(owner.owner).sessions
    site.sign_out(owner)
    say(laptop, "나간 뒤의 말")
    assert is_out(laptop)
    assert [item.turn_count for item in mine.list()] == [1]
    copied = new_page()
    copied.user = laptop.user
    assert is_out(copied.run())
    assert not is_out(phone.run())
    assert not is_out(signed_in("laptop again"))


def test_signing_out_everywhere_asks_first_and_then_ends_all_tabs(site: ChatService) -> None:
    laptop, phone = signed_in("laptop"), signed_in("phone")
    say(laptop, SAID)
    laptop.menu_button(key="menu_visitor").click(WORDS.everywhere).run()
    assert WORDS.everywhere_question in page_text(laptop)
    assert WORDS.everywhere_note in page_text(laptop)
    laptop.button(key="dialog_cancel").click().run()
    assert WORDS.everywhere_question not in page_text(laptop)
    assert not is_out(laptop.run())
    copied = new_page()
    copied.user = dict(laptop.user)
    assert not is_out(copied.run())
    laptop.menu_button(key="menu_visitor").click(WORDS.everywhere).run()
    laptop.button(key="dialog_confirm").click().run()
    assert is_out(laptop, WORDS.needed)
    assert is_out(copied.run())
    assert is_out(phone.run())
    again = signed_in("laptop again")
    assert [item.title for item in site.for_owner(identity_of(again, site).owner).sessions.list()] == [SAID]
