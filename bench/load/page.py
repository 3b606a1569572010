"""Users at the page, each in a window of their own of one Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

from playwright.async_api import Browser, Error, Page, async_playwright

from bench.load.chat import BrokenAnswerError, HeldChat, Pauses
from bench.page.app import FLAGS, chromium_path
from bench.page.measure import FIELD, SETTLED, WATCH

_PATIENCE_MILLISECONDS: Final = 120_000
_ENDING: Final = ".st-key-last_actions_{turn}"
_TURN: Final = ".st-key-turn_{turn}"


class PageUser:
    """One user at the page of one server.

    Args:
        browser: Where the window is opened.
        port: The server's.
        chat: Takes what happens.
    """

    def __init__(self, browser: Browser, port: int, chat: HeldChat) -> None:
        self._browser = browser
        self._url = f"http://127.0.0.1:{port}/"
        self._chat = chat
        self._page: Page | None = None

    async def open(self) -> None:
        """Opens the page; one that isn't there in time is an error of the chat."""
        context = await self._browser.new_context(viewport={"width": 1280, "height": 800}, locale="ko-KR")
        page = await context.new_page()
        page.set_default_timeout(_PATIENCE_MILLISECONDS)
        try:
            await page.goto(self._url)
            await page.wait_for_selector(SETTLED)
        except Error as error:
            self._chat.errors.append(f"{type(error).__name__}: {error}")
            await context.close()
        else:
            self._page = page

    async def hold(self, turns: int, pauses: Pauses) -> None:
        """Has so many questions answered at the page that is open; after one that fails no other is asked."""
        if (page := self._page) is None:
            return
        try:
            await pauses.begin()
            for turn in range(1, turns + 1):
                await self._ask(page, turn)
                await pauses.think()
        except (Error, BrokenAnswerError) as error:
            self._chat.errors.append(f"{type(error).__name__}: {error}")
        finally:
            await page.context.close()

    async def _ask(self, page: Page, turn: int) -> None:
        question = self._chat.question(turn)
        begin, end = (f"{word}-{question.split()[0]}-" for word in ("begin", "end"))
        await page.evaluate(WATCH, [question, begin, end, _ENDING.format(turn=turn)])
        await page.fill(FIELD, question)
        await page.press(FIELD, "Enter")
        await page.wait_for_function("() => 'settled' in window.benchSeen")
        seen = await page.evaluate("() => window.benchSeen")
        text = await page.inner_text(_TURN.format(turn=turn))
        self._chat.session_ids |= {*parse_qs(urlsplit(page.url).query)["session"]}
        self._chat.note(turn, text, first_words=seen["words"], whole=seen["settled"])
        self._chat.said.append((question, text[text.index(end) :].split()[0]))


@asynccontextmanager
async def opened_browser() -> AsyncIterator[Browser]:
    """Opens the machine's Chromium, or the one that Playwright has."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
        yield browser
        await browser.close()
