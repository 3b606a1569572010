from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, expect

from graph.service import ChatService
from tests.browser.conftest import preparing, scripted_settings, started, visiting
from tests.browser.site import Site, choose, come, opened_site, sign_in, sign_out, sign_out_everywhere
from tests.browser.visitor import Visitor
from tests.fake.identity_provider import MANY_GROUPS, NAMES, IdentityProvider
from tests.fake.openai_reply import hang
from tests.fake.openai_server import FakeOpenAI
from tests.fake.owners import withdrawn
from tests.fake.port import free_port
from tests.fake.upload import TAKEN, opened_tab

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as opened:
        yield opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, endpoint: FakeOpenAI, provider: IdentityProvider) -> Iterator[Site]:
    with opened_site(tmp_path_factory.mktemp("site"), endpoint, provider) as opened:
        yield opened


@pytest.fixture(scope="module")
def beside(site: Site, endpoint: FakeOpenAI) -> Iterator[ChatService]:
    """Another server on the same files."""
    with preparing(site.folder, endpoint) as service:
        yield service


@pytest.fixture
def guest(chromium: Browser, site: Site) -> Iterator[Visitor]:
    with visiting(chromium, site.address) as opened:
        yield opened


def test_a_reload_and_another_tab_are_signed_in_too_and_out_with_the_first(
    guest: Visitor, chromium: Browser, site: Site
) -> None:
    sign_in(guest, "minsu")
    guest.open()
    with visiting(chromium, site.address) as other:
        other.open()
        expect(other.find("visitor")).to_contain_text(NAMES["minsu"])
        sign_out(guest)
        other.find("sign_in").wait_for()
        expect(other.find("ask")).to_have_count(0)


def test_whoever_signs_in_comes_to_the_chat_that_was_asked_for(guest: Visitor) -> None:
    sign_in(guest, "minsu")
    guest.ask("나중에 다시 올 대화입니다.")
    asked_for = guest.session_id
    guest.context.clear_cookies()
    come(guest, f"?session={asked_for}")
    guest.expect_language("ko")  # the page's own script has run: it keeps what was asked for
    choose(guest, "minsu")
    expect(guest.turn(1)).to_contain_text("나중에 다시 올 대화입니다.")
    assert guest.session_id == asked_for


def test_a_withdrawn_owner_is_out_at_once_and_in_again_when_that_is_taken_back(
    guest: Visitor, site: Site, beside: ChatService
) -> None:
    sign_in(guest, "minsu")
    guest.ask("곧 나갈 사람입니다.")
    with withdrawn(beside, site.owner("minsu")):
        # The page looks for changes by itself.
        expect(guest.page.get_by_text("이 계정은 더 이상 쓸 수 없습니다")).to_be_visible()
        expect(guest.page.get_by_text("곧 나갈 사람입니다.")).to_have_count(0)
        guest.page.goto(guest.address)
        expect(guest.page.get_by_text("이 계정은 더 이상 쓸 수 없습니다")).to_be_visible()
    guest.open()
    expect(guest.find("visitor")).to_contain_text(NAMES["minsu"])


def test_what_somebody_sends_who_is_out_is_sent_when_he_is_in_again(
    guest: Visitor, site: Site, beside: ChatService
) -> None:
    sign_in(guest, "yeonghui")
    theirs = beside.for_owner(site.owner("yeonghui")).sessions
    before = theirs.list()
    with withdrawn(beside, site.owner("yeonghui")):
        guest.write("나간 뒤에 보낸 말입니다.")
        expect(guest.page.get_by_text("이 계정은 더 이상 쓸 수 없습니다")).to_be_visible()
        assert theirs.list() == before
    guest.open()
    guest.wait_for_end(1)
    expect(guest.turn(1)).to_contain_text("나간 뒤에 보낸 말입니다.")
    assert len(theirs.list()) == len(before) + 1


def test_whoever_has_too_many_groups_is_told_so_and_another_account_comes_in(guest: Visitor) -> None:
    come(guest)
    choose(guest, MANY_GROUPS)
    expect(guest.page.get_by_text("계정에 딸린 그룹이나 정보가 많아")).to_be_visible()
    guest.complaints.clear()  # the refusal is told on the console
    sign_in(guest, "minsu")


@contextmanager
def another_browser(chromium: Browser, site: Site, width: int) -> Iterator[Visitor]:
    """Opens the page where no cookie of the others is: each size of a window has cookies of its own."""
    with visiting(chromium, site.address, viewport={"width": width, "height": 800}) as opened:
        yield opened


@contextmanager
def copied_to(chromium: Browser, guest: Visitor, site: Site) -> Iterator[Visitor]:
    """Opens the page in another browser that has a copy of this one's cookies."""
    cookies = guest.context.cookies(site.address)
    with another_browser(chromium, site, 1_100) as thief:
        thief.context.add_cookies(cast("list[Any]", cookies))
        thief.open()
        yield thief


def expect_out(visitor: Visitor, said: str) -> None:
    expect(visitor.page.get_by_text("로그인이 끝났습니다")).to_be_visible()
    expect(visitor.page.get_by_text(said)).to_have_count(0)
    expect(visitor.find("ask")).to_have_count(0)


def test_a_sign_out_ends_all_copies_of_its_cookie_and_no_other_sign_in(
    guest: Visitor, chromium: Browser, site: Site
) -> None:
    sign_in(guest, "minsu")
    guest.ask("복사한 쿠키로 볼 말입니다.")
    with another_browser(chromium, site, 1_200) as phone, copied_to(chromium, guest, site) as thief:
        sign_in(phone, "minsu")
        thief.open(f"?session={guest.session_id}")
        expect(thief.turn(1)).to_contain_text("복사한 쿠키로 볼 말입니다.")
        cookies = {str(cookie["name"]): str(cookie["value"]) for cookie in thief.context.cookies(site.address)}
        with opened_tab(site.address, cookies) as tab:
            assert tab.put(b"text").status_code == TAKEN
            sign_out(guest)
            assert tab.put(b"text").status_code == 403
        expect_out(thief, "복사한 쿠키로 볼 말입니다.")  # the open tab looks for changes by itself
        thief.page.reload()
        expect_out(thief, "복사한 쿠키로 볼 말입니다.")
        phone.ask("휴대전화에서 이어서 씁니다.")
    sign_in(guest, "minsu")


def test_signing_out_everywhere_ends_every_browser_and_a_new_sign_in_works_at_once(
    guest: Visitor, chromium: Browser, site: Site
) -> None:
    sign_in(guest, "minsu")
    with another_browser(chromium, site, 1_200) as phone, another_browser(chromium, site, 1_240) as other:
        sign_in(phone, "minsu")
        phone.ask("휴대전화에 열려 있는 말입니다.")
        sign_in(other, "yeonghui")
        with copied_to(chromium, guest, site) as thief:
            sign_out_everywhere(guest)
            expect_out(phone, "휴대전화에 열려 있는 말입니다.")
            # No chat is open there, so the page doesn't look for changes by itself.
            thief.find("new_chat").get_by_role("button").click()
            expect_out(thief, "휴대전화에 열려 있는 말입니다.")
            choose(guest, "minsu")
            guest.settle()
            expect(guest.find("visitor")).to_contain_text(NAMES["minsu"])
        other.open()
        expect(other.find("visitor")).to_contain_text(NAMES["yeonghui"])


@pytest.mark.parametrize("name", ["nonce", "state"])
def test_a_refusal_or_an_answer_to_another_question_signs_nobody_in(guest: Visitor, name: str) -> None:
    come(guest)
    guest.find("sign_in").get_by_role("button").click()
    guest.page.get_by_role("button", name="Deny").click()
    guest.find("sign_in").get_by_role("button").click()
    guest.page.get_by_role("button", name="minsu").wait_for()
    guest.page.goto(re.sub(rf"{name}=\w+", f"{name}=another", guest.page.url))
    guest.page.get_by_role("button", name="minsu").click()
    guest.find("sign_in").wait_for()
    expect(guest.find("ask")).to_have_count(0)


def test_a_cookie_of_ones_own_making_signs_nobody_in(guest: Visitor) -> None:
    sign_in(guest, "minsu")
    (cookie,) = [cookie for cookie in guest.context.cookies() if cookie["name"] == "_streamlit_user"]
    assert cookie["httpOnly"]
    forged = cookie["value"][:-2] + ("AA" if not cookie["value"].endswith("AA") else "BB")
    guest.context.add_cookies([{"name": "_streamlit_user", "value": forged, "url": guest.address}])
    come(guest)


def test_the_address_that_the_provider_does_not_lead_back_to_names_the_right_one(chromium: Browser, site: Site) -> None:
    with visiting(chromium, site.address.replace("127.0.0.1", "localhost"), locale="en-US") as lost:
        lost.page.goto(lost.address)
        link = lost.page.get_by_role("link", name="Go there")
        expect(link).to_have_attribute("href", site.address)
        expect(lost.find("sign_in")).to_have_count(0)
        lost.complaints.clear()  # another host than the tests' usual one is what this is about


def test_a_sign_in_ends_by_itself_in_the_middle_of_an_answer(
    chromium: Browser, endpoint: FakeOpenAI, tmp_path: Path
) -> None:
    soon = timedelta(seconds=60)  # the first turn of a server, on a busy machine, begins before
    with (
        IdentityProvider(lasts=soon) as short,
        opened_site(tmp_path, endpoint, short, {"SIGN_IN_HOURS": "12"}) as site,
        visiting(chromium, site.address) as visitor,
        endpoint.lent(),
    ):
        sign_in(visitor, "minsu")
        endpoint.script(hang("아직 쓰는 중"), to="끝나지 않는 질문")
        visitor.write("끝나지 않는 질문")
        expect(visitor.page.get_by_text("아직 쓰는 중")).to_be_visible()
        ended = visitor.page.get_by_text("로그인이 끝났습니다")
        expect(ended).to_be_visible(timeout=2_000 * soon.total_seconds())
        expect(visitor.page.get_by_text("아직 쓰는 중")).to_have_count(0)
        with preparing(tmp_path, endpoint) as beside:
            service = beside.for_owner(site.owner("minsu"))
            (item,) = service.sessions.list()
            service.turns.stop(item.session_id)


def test_a_server_that_does_not_know_the_clients_secret_lets_nobody_in(
    chromium: Browser, endpoint: FakeOpenAI, tmp_path: Path
) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with IdentityProvider(knows_clients=True) as strict:
        known = strict.register(address)
        for secret, is_let_in in (("not-the-secret-of-this-client", False), (known["client_secret"], True)):
            settings = strict.settings(address, OIDC_CLIENT_ID=known["client_id"], OIDC_CLIENT_SECRET=secret)
            with (
                started(tmp_path, {**scripted_settings(endpoint), **settings}, port=port),
                visiting(chromium, address) as visitor,
            ):
                come(visitor)
                choose(visitor, "minsu")
                visitor.find("visitor" if is_let_in else "sign_in").wait_for()
            assert secret not in (tmp_path / "server.log").read_text()


def test_a_sign_in_begun_on_one_server_ends_on_another(
    chromium: Browser, endpoint: FakeOpenAI, provider: IdentityProvider, tmp_path: Path
) -> None:
    (tmp_path / "beside").mkdir()
    with opened_site(tmp_path, endpoint, provider) as first:
        settings = {**scripted_settings(endpoint), **provider.settings(first.address)}
        with (
            started(tmp_path / "beside", settings) as second,
            visiting(chromium, first.address) as visitor,
        ):
            come(visitor)
            visitor.find("sign_in").get_by_role("button").click()
            visitor.page.get_by_role("button", name="minsu").wait_for()
            # Routes of a test don't see where a redirect leads, so the browser is led there by hand.
            answer = visitor.context.request.post(visitor.page.url, form={"sub": "minsu"}, max_redirects=0)
            back = answer.headers["location"]
            assert back.startswith(first.address)
            visitor.page.goto(back.replace(first.address, second))
            visitor.open()
            expect(visitor.find("visitor")).to_contain_text(NAMES["minsu"])


def cookies_of(visitor: Visitor, subject: str) -> dict[str, str]:
    sign_in(visitor, subject)
    said = visitor.context.cookies(visitor.address)
    visitor.context.clear_cookies()
    return {cookie["name"]: cookie["value"] for cookie in said if cookie["name"].startswith("_streamlit_user")}


def test_only_the_tabs_own_visitor_sends_files(guest: Visitor, site: Site, beside: ChatService) -> None:
    minsu, yeonghui = (cookies_of(guest, subject) for subject in ("minsu", "yeonghui"))
    forged = {name: value[:-4] + "AAAA" for name, value in minsu.items()}
    with opened_tab(site.address, minsu) as tab, opened_tab(site.address, {}) as strange:
        assert tab.put(b"text").status_code == TAKEN
        for cookies in ({}, yeonghui, forged):
            assert tab.put(b"text", cookies=cookies).status_code == 403
        for cookies in ({}, minsu):
            assert strange.put(b"text", cookies=cookies).status_code == 403
        with withdrawn(beside, site.owner("minsu")):
            assert tab.put(b"text").status_code == 403
