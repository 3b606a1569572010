"""The page's script by itself, called as Streamlit calls it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from component import browser


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """An empty page of the product's own origin, with a message field and the script in it."""
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{address}/health")
        page.set_content('<div data-testid="stApp"><div class="st-key-ask"><textarea></textarea></div></div>')
        page.evaluate(
            """async (script) => {
                const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
                window.script = (await import(url)).default;
                window.sent = [];
            }""",
            browser.script(),
        )
        yield page


def hear(page: Page, session: str, opened: int) -> None:
    """Calls the script as after a drawing of the page for this session."""
    page.evaluate(
        """([session, opened]) => script({
            data: { language: "ko", theme: "light", session, opened, visitor: "", turn: 0, landing: 0 },
            setTriggerValue: (name, value) => sent.push([name, value]),
        })""",
        [session, opened],
    )


def go(page: Page, session: str) -> None:
    page.evaluate("(session) => history.replaceState(null, '', session ? `?session=${session}` : '?')", session)


def type_in(page: Page, text: str) -> None:
    page.locator("textarea").fill(text)


def value(page: Page) -> str:
    return page.locator("textarea").input_value()


def test_a_draft_stays_in_its_chat_though_the_script_never_heard_that_it_was_opened(page: Page) -> None:
    hear(page, "", 0)
    go(page, "first")
    type_in(page, "아직 보내지 않은 말")
    go(page, "")
    hear(page, "", 2)
    assert value(page) == ""
    go(page, "first")
    hear(page, "first", 3)
    assert value(page) == "아직 보내지 않은 말"


def test_a_message_in_a_second_new_chat_begins_another_one(page: Page) -> None:
    hear(page, "", 0)
    type_in(page, "첫째 대화의 첫마디")
    page.locator("textarea").press("Enter")
    go(page, "")
    hear(page, "", 2)
    type_in(page, "둘째 대화의 첫마디")
    page.locator("textarea").press("Enter")
    page.wait_for_function("() => sent.length >= 2")
    messages = page.evaluate("sent.at(-1)[1]")
    assert len({message["session"] for message in messages}) == len(messages) == len(["first", "second"])


def test_what_is_typed_behind_a_first_message_stays_in_its_chat(page: Page) -> None:
    hear(page, "", 0)
    type_in(page, "첫마디")
    page.locator("textarea").press("Enter")
    page.wait_for_function("() => sent.length > 0")
    (message,) = page.evaluate("sent[0][1]")
    type_in(page, "이어서 쓰는 말")
    go(page, message["session"])
    hear(page, message["session"], 1)
    assert value(page) == "이어서 쓰는 말"


def test_a_chat_that_is_opened_instead_of_the_one_just_begun_has_its_own_draft(page: Page) -> None:
    go(page, "other")
    hear(page, "other", 1)
    type_in(page, "다른 대화의 초안")
    go(page, "")
    hear(page, "", 2)
    type_in(page, "첫마디")
    page.locator("textarea").press("Enter")
    type_in(page, "새 대화에 쓰던 말")
    go(page, "other")
    hear(page, "other", 3)
    assert value(page) == "다른 대화의 초안"


def test_a_message_sent_while_another_chat_opens_takes_no_draft_away_and_leaves_none(page: Page) -> None:
    go(page, "other")
    hear(page, "other", 1)
    type_in(page, "다른 대화의 초안")
    go(page, "first")
    hear(page, "first", 2)
    type_in(page, "보낼 말")
    go(page, "other")
    page.locator("textarea").press("Enter")
    hear(page, "other", 3)
    assert value(page) == "다른 대화의 초안"
    go(page, "first")
    hear(page, "first", 4)
    assert value(page) == ""
    page.wait_for_function("() => sent.length > 0")
    (message,) = page.evaluate("sent.at(-1)[1]")
    assert message["session"] == "first"
