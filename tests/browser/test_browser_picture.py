"""Pictures that are picked, pasted or dropped; what is sent and kept of them is shown by `tests/page`."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import visiting
from tests.browser.stage import LOOKS, words_in
from tests.browser.state_attach import attach, wait_for_files
from tests.browser.visitor import Visitor
from tests.fake.openai_reply import failure
from tests.fake.openai_server import FakeOpenAI
from tests.fake.picture import opened, picture

pytestmark = pytest.mark.slow

PASTE = """(target, data) => {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    const brought = new DataTransfer();
    brought.items.add(new File([bytes], "paste.png", { type: "image/png" }));
    target.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: brought }));
}"""


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def visitor(chromium: Browser, address: str, look: str) -> Iterator[Visitor]:
    with visiting(chromium, address, **LOOKS[look]) as opened_page:
        yield opened_page


def paste(visitor: Visitor) -> None:
    """Pastes a picture while nothing has the focus."""
    visitor.field.blur()
    visitor.page.locator("body").evaluate(PASTE, base64.b64encode(picture("PNG", (600, 300))).decode())


def drop(visitor: Visitor, file: Path, sentence: str) -> None:
    """Drops a file on the chat, as the browser itself does: a page's own event can't have a file that can be read."""
    file.write_bytes(picture("PNG", (600, 300)))
    at = {"x": 200, "y": 300}
    data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    hand = visitor.context.new_cdp_session(visitor.page)
    for step in ("dragEnter", "dragOver", "drop"):
        hand.send("Input.dispatchDragEvent", {"type": step, **at, "data": data})
        if step == "dragOver":
            expect(visitor.page.locator("html")).to_have_attribute("data-dragging", sentence)
    expect(visitor.page.locator("html[data-dragging]")).to_have_count(0)
    hand.detach()


def sent_sizes(endpoint: FakeOpenAI, asked: str) -> list[tuple[int, int]]:
    """The sizes of the pictures that went with a message, as the model got them."""
    content: Any = endpoint.bodies("chat", to=asked)[-1]["messages"][-1]["content"]
    return [opened(part["image_url"]["url"]).size for part in content if part["type"] == "image_url"]


def test_pictures_are_picked_pasted_dropped_removed_sent_and_enlarged(
    visitor: Visitor, fake_openai: FakeOpenAI, look: str, tmp_path: Path
) -> None:
    words = words_in(look)
    asked = f"무엇이 보이나요? ({words.language})"
    visitor.open()
    attach(visitor, ("floor.jpg", picture("JPEG", (3_000, 2_000))), ("away.gif", picture("GIF")))
    kept = visitor.find("attached")
    paste(visitor)
    wait_for_files(visitor, 3)
    drop(visitor, tmp_path / "drop.png", words.attachment.drop)
    wait_for_files(visitor, 4)
    expect(kept.locator("img.picture")).to_have_count(4)
    kept.get_by_role("button", name=words.attachment.remove.format(name="away.gif")).click()
    expect(kept.locator("img.picture")).to_have_count(3)
    visitor.write(asked)
    visitor.wait_for_end(1)
    expect(visitor.every("stop")).to_have_count(0)
    assert sent_sizes(fake_openai, asked) == [(2_048, 1_365), (600, 300), (600, 300)]
    question = visitor.turn(1).get_by_test_id("stChatMessage").first
    expect(question.locator("img.picture")).to_have_count(3)
    expect(question).not_to_contain_text("[image")
    question.get_by_role("button", name=words.attachment.enlarge.format(name="floor.jpg")).click()
    large = visitor.page.get_by_role("dialog").locator("img.picture")
    expect(large).to_be_visible()
    assert large.evaluate("image => image.naturalWidth") == 2_048
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.page.keyboard.press("Escape")
    expect(large).to_have_count(0)
    visitor.page.reload()
    visitor.settle()
    expect(visitor.turn(1).locator("img.picture")).to_have_count(3)
    visitor.expect_no_complaint()


def test_a_picture_that_the_model_refuses_is_kept_with_its_words(
    visitor: Visitor, fake_openai: FakeOpenAI, look: str
) -> None:
    asked = f"이 그림은 무엇인가요? ({words_in(look).language})"
    visitor.open()
    attach(visitor, ("cat.png", picture("PNG")))
    fake_openai.script(failure(400, "Invalid content type. The last image could not be read"), to=asked)
    visitor.write(asked)
    visitor.wait_for_end(1)
    expect(visitor.turn(1).locator("img.picture")).to_be_visible()
    visitor.find("retry").locator("button").click()
    expect(visitor.find("regenerate").locator("button")).to_be_visible()
    assert sent_sizes(fake_openai, asked) == [(40, 20)]
