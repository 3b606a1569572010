from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from graph.attachment import MAX_BYTES, MAX_FILES
from tests.browser.conftest import preparing, visiting
from tests.browser.site import Site, opened_site, sign_in
from tests.fake.identity_provider import IdentityProvider
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import withdrawn
from tests.fake.upload import Tab, form_of, opened_tab

TAKEN = 204


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, endpoint: FakeOpenAI) -> Iterator[Site]:
    with (
        IdentityProvider() as provider,
        opened_site(tmp_path_factory.mktemp("site"), endpoint, provider) as opened,
    ):
        yield opened


def cookies_of(chromium: Browser, site: Site, subject: str) -> dict[str, str]:
    with visiting(chromium, site.address) as visitor:
        sign_in(visitor, subject)
        said = visitor.context.cookies(site.address)
    return {cookie["name"]: cookie["value"] for cookie in said if cookie["name"].startswith("_streamlit_user")}


@pytest.fixture
def tab(address: str) -> Iterator[Tab]:
    with opened_tab(address, {}) as opened:
        yield opened


def in_pieces(body: bytes) -> Iterator[bytes]:
    yield body


def test_without_a_sign_in_whoever_has_the_page_may_send_files_to_his_tab(tab: Tab) -> None:
    assert tab.put(b"text").status_code == TAKEN
    assert Tab(tab.address, "no-such-tab", {}).put(b"text").status_code == 400


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tab: Tab) -> None:
    assert tab.put(b"x" * (MAX_BYTES - 1024)).status_code == TAKEN
    assert tab.put(b"x" * (MAX_BYTES + 1024 * 1024)).status_code == 413
    assert tab.send(in_pieces(form_of(b"text"))).status_code == 411


def test_a_tab_keeps_as_many_files_as_a_message_may_have(tab: Tab) -> None:
    assert [tab.put(b"text").status_code for _ in range(MAX_FILES + 1)] == [TAKEN] * MAX_FILES + [429]


@pytest.mark.parametrize("header", ["Host", "Origin"])
def test_a_page_of_another_site_sends_no_file(header: str, tab: Tab) -> None:
    strange = {"Host": "evil.example.com", "Origin": "http://evil.example.com"}[header]
    assert tab.put(b"text", headers={header: strange}).status_code == 403


def test_with_a_sign_in_only_the_tabs_own_visitor_sends_files(
    site: Site, chromium: Browser, fake_openai: FakeOpenAI
) -> None:
    minsu, yeonghui = (cookies_of(chromium, site, subject) for subject in ("minsu", "yeonghui"))
    with opened_tab(site.address, minsu) as tab, opened_tab(site.address, {}) as strange:
        assert tab.put(b"text").status_code == TAKEN
        assert tab.put(b"text", cookies={}).status_code == 403
        assert tab.put(b"text", cookies=yeonghui).status_code == 403
        forged = {name: value[:-4] + "AAAA" for name, value in minsu.items()}
        assert tab.put(b"text", cookies=forged).status_code == 403
        assert strange.put(b"text").status_code == 403
        assert strange.put(b"text", cookies=minsu).status_code == 403
        with preparing(site.folder, fake_openai) as beside, withdrawn(beside, site.owner("minsu")):
            assert tab.put(b"text").status_code == 403
