"""A server that is for those alone whom an identity provider knows, and how a visitor comes in and leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import expect

from graph.server.identity import owner_of
from tests.browser.conftest import scripted_settings, started
from tests.browser.visitor import Visitor
from tests.fake.identity_provider import NAMES, IdentityProvider
from tests.fake.openai_server import FakeOpenAI
from tests.fake.port import free_port


class Site(NamedTuple):
    """A server that is for those alone whom the provider knows."""

    address: str
    folder: Path
    provider: IdentityProvider

    def owner(self, subject: str) -> str:
        return owner_of(self.provider.issuer, subject)


@contextmanager
def opened_site(
    folder: Path, endpoint: FakeOpenAI, provider: IdentityProvider, changes: Mapping[str, str] | None = None
) -> Iterator[Site]:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {**scripted_settings(endpoint), **provider.settings(address), **(changes or {})}
    with started(folder, settings, port=port) as url:
        assert url == address
        yield Site(address, folder, provider)


def come(visitor: Visitor, query: str = "") -> None:
    visitor.page.goto(visitor.address + query)
    visitor.find("sign_in").wait_for()
    expect(visitor.find("ask")).to_have_count(0)


def choose(visitor: Visitor, subject: str) -> None:
    visitor.find("sign_in").get_by_role("button").click()
    visitor.page.get_by_role("button", name=subject).click()


def sign_in(visitor: Visitor, subject: str) -> None:
    come(visitor)
    choose(visitor, subject)
    visitor.settle()
    expect(visitor.find("visitor")).to_contain_text(NAMES[subject])


def sign_out(visitor: Visitor) -> None:
    visitor.find("sign_out").get_by_role("button").click()
    _end_session(visitor)


def sign_out_everywhere(visitor: Visitor) -> None:
    visitor.find("menu_visitor").get_by_role("button").first.click()
    visitor.page.get_by_role("menuitem").click()
    visitor.find("dialog_confirm").get_by_role("button").click()
    _end_session(visitor)


def _end_session(visitor: Visitor) -> None:
    visitor.page.get_by_role("button", name="End session").click()
    visitor.find("sign_in").wait_for()
