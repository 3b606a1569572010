"""The page's script by itself, called as Streamlit calls it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from component import browser

pytestmark = pytest.mark.slow


@contextmanager
def page_with(chromium: Browser, address: str, content: str, script: str) -> Iterator[Page]:
    """Opens the page; there `script` is what Streamlit calls, and `sent` an empty list."""
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{address}/health")
        page.set_content(f'<main id="stMain"></main>{content}')
        page.evaluate(
            """async (script) => {
                const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
                window.script = (await import(url)).default;
                window.sent = [];
                window.turnfoldAsk = (name, value) => sent.push([name, value]);
            }""",
            script,
        )
        yield page


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    """A page with a message field and the script in it."""
    field = '<div data-testid="stApp"><div class="st-key-ask"><textarea></textarea></div></div>'
    with page_with(chromium, address, field, browser.script()) as page:
        yield page


def hear(page: Page, session: str, opened: int) -> None:
    """Calls the script as after a drawing of the page for this session."""
    page.evaluate(
        """([session, opened]) => script({
            data: { language: "ko", theme: "light", session, opened, visitor: "", turn: 0, landing: 0, names: {} },
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
    messages = page.evaluate("sent.at(-1)[1].messages")
    assert len({message["session"] for message in messages}) == len(messages) == len(["first", "second"])


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
    (message,) = page.evaluate("sent.at(-1)[1].messages")
    assert message["session"] == "first"


LONG_CHAT = """
<div data-testid="stApp" data-test-script-state="notRunning">
  <div id="stMain" style="height: 400px; overflow: auto; overflow-anchor: none">
    <div data-testid="stMainBlockContainer">
      <div class="turns"></div>
      <div class="st-key-turn_40" style="height: 2000px">
        <button class="recalled-turn" data-first="2" data-last="2">2</button>
      </div>
    </div>
    <div data-testid="stBottom"></div>
    <div class="st-key-ask"><textarea></textarea></div>
  </div>
</div>
"""


def draw_first(page: Page, name: str, height: int) -> None:
    page.evaluate(
        """([name, height]) => {
            const drawn = Object.assign(document.createElement("div"), { className: name });
            drawn.style.height = `${height}px`;
            document.querySelector(".turns").prepend(drawn);
        }""",
        [name, height],
    )


def set_drawing(page: Page, *, is_drawing: bool) -> None:
    state = "running" if is_drawing else "notRunning"
    page.evaluate("(state) => { document.body.firstElementChild.dataset.testScriptState = state; }", state)


def top_of(page: Page, key: str) -> float:
    found: float = page.evaluate("(key) => document.querySelector(`.${key}`).getBoundingClientRect().top", key)
    return found


def test_a_jump_waits_and_keeps_its_place_as_long_as_a_slow_server_draws(page: Page) -> None:
    page.clock.install()
    page.set_content(LONG_CHAT)
    hear(page, "", 0)
    set_drawing(page, is_drawing=True)
    page.locator("button").click()
    page.clock.run_for(60_000)
    assert [name for name, _ in page.evaluate("sent")] == ["turns"]
    draw_first(page, "st-key-turn_2", 300)
    page.clock.run_for(100)
    expect(page.locator(".st-key-turn_2")).to_be_focused()
    landed = top_of(page, "st-key-turn_2")
    page.clock.run_for(60_000)
    draw_first(page, "st-key-turn_1", 700)
    expect(page.locator(".st-key-turn_2")).to_be_in_viewport()
    page.wait_for_function(
        "(top) => document.querySelector('.st-key-turn_2').getBoundingClientRect().top === top", arg=landed
    )


def test_a_jump_that_nothing_is_drawn_for_gives_up(page: Page) -> None:
    page.clock.install()
    page.set_content(LONG_CHAT)
    hear(page, "", 0)
    page.locator("button").click()
    page.clock.run_for(60_000)
    draw_first(page, "st-key-turn_2", 300)
    page.clock.run_for(10_000)
    assert [name for name, _ in page.evaluate("sent")] == ["turns"]
    expect(page.locator(".st-key-turn_2")).not_to_be_focused()


def test_a_call_that_is_taken_back_behind_the_next_one_leaves_the_page_its_keys(page: Page) -> None:
    hear(page, "", 0)
    page.evaluate(
        """() => {
            const data = { language: "ko", theme: "light", session: "", opened: 0, visitor: "", turn: 0, landing: 0 };
            const [leave] = [script({ data }), script({ data })];
            leave();
            document.activeElement.blur();
        }"""
    )
    page.keyboard.press("/")
    expect(page.locator("textarea")).to_be_focused()


def test_presses_are_told_together_and_again_until_they_are_heard_or_half_a_minute_is_over(page: Page) -> None:
    page.clock.install()
    page.set_content('<main id="stMain"></main><button data-press="pin">one</button><i class="heard"></i>')
    hear(page, "", 0)
    hear(page, "", 0)  # mounted twice, as by Streamlit
    page.get_by_role("button").click()
    page.get_by_role("button").click()
    assert page.evaluate("sent.map(([, { presses }]) => presses.length)") == [1, 2]
    page.clock.run_for(3_100)
    first, second, third = page.evaluate("sent.map(([, { presses }]) => presses[0].at)")
    assert first == second == third
    page.evaluate("() => { document.querySelector('i.heard').dataset.pressed = sent[1][1].presses[1].at; }")
    page.clock.run_for(60_000)
    assert page.evaluate("sent.length") == 3
    page.evaluate("() => { sent.length = 0; }")
    page.get_by_role("button").click()
    page.clock.run_for(300_000)
    assert page.evaluate("sent.length") == 10  # for half a minute


def test_what_opened_a_dialog_has_the_focus_again_though_the_dialog_goes_after_it_has_lost_it(page: Page) -> None:
    page.set_content(
        """<main id="stMain"></main><div class="st-key-menu"><button>open</button></div>
        <div role="dialog"><button>close</button></div>"""
    )
    hear(page, "", 0)
    for name in ("open", "close"):
        page.get_by_role("button", name=name).focus()
    page.evaluate(
        """async () => {
            document.activeElement.blur();
            for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
            document.querySelector("[role='dialog']").remove();
        }"""
    )
    expect(page.get_by_role("button", name="open")).to_be_focused()


def test_commands_are_listed_from_a_slash_on_and_chosen_by_keys_or_a_click(chromium: Browser, address: str) -> None:
    names = ("compact", "reset", "help")
    options = "".join(f'<li role="option" id="slash-{name}" data-command="/{name}">{name}</li>' for name in names)
    field = f'<div class="st-key-ask"><textarea></textarea></div><ul class="slash" hidden>{options}</ul>'
    with page_with(chromium, address, f'<div data-testid="stApp">{field}</div>', browser.script()) as page:
        hear(page, "chat", 1)
        shown, box = page.locator("ul.slash li:visible"), page.locator("textarea")
        type_in(page, "/")
        expect(shown).to_have_count(3)
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
            box.press(key)
        expect(box).to_have_attribute("aria-activedescendant", "slash-help")
        box.press("Enter")
        assert (value(page), page.evaluate("sent")) == ("/help", [])
        expect(shown).to_have_count(0)
        type_in(page, "/re")
        expect(shown).to_have_text(["reset"])
        box.press("Tab")
        assert value(page) == "/reset"
        type_in(page, "/")
        shown.first.click()
        assert value(page) == "/compact"
        for text in ("/usr/bin", "/x", "a /", ""):
            type_in(page, text)
            expect(shown).to_have_count(0)
        type_in(page, "/")
        box.press("Escape")
        expect(shown).to_have_count(0)
        assert value(page) == "/"
