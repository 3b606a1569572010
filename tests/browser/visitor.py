"""A user in a browser: opens the page, writes, reads, and records every error of the browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Request, expect

SETTLED = '[data-testid="stApp"][data-test-script-state="notRunning"]'
PATIENCE_MILLISECONDS = 60_000
# Streamlit warns that what goes out at one moment is one request, for the part of the page that was first.
SHARED_REQUEST = "Multiple different fragmentIds"


class Visitor:
    """A tab on the product, with the words of what the tests do.

    Attributes:
        complaints: Errors and warnings of the console, errors of the page, requests to any other host.
    """

    def __init__(self, context: BrowserContext, address: str, language: str) -> None:
        self.context = context
        self.address = address
        self._language = language
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MILLISECONDS)
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"page: {error}"))
        self.page.on("request", self._note_request)

    def open(self, query: str = "") -> Visitor:
        self.page.goto(self.address + query)
        return self.settle()

    def settle(self) -> Visitor:
        self.page.wait_for_selector(SETTLED)
        self.find("ask").wait_for()
        self.expect_language(self._language)
        # A page is English before its script has run.
        expect(self.page.locator("html")).to_have_attribute("data-listens", "")
        return self

    def every(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key}")

    def find(self, key: str) -> Locator:
        """Finds the newest that has this key: until a run ends, what it has moved also stands where it was, below."""
        return self.every(key).first

    def find_choice(self, name: str) -> Locator:
        return self.find(f"{name}_{self._language}")

    @property
    def open_row(self) -> Locator:
        """The row of the chat that is open."""
        return self.page.locator('[class*="st-key-open_session_"]').first

    @property
    def field(self) -> Locator:
        return self.find("ask").locator("textarea")

    @property
    def session_id(self) -> str:
        return parse_qs(urlsplit(self.page.url).query)["session"][0]

    def begin_chat(self) -> None:
        """Opens the empty page; the turns of the chat before may stand below it until the run ends."""
        self.find("new_chat").locator("button").click()
        expect(self.find("suggestions")).to_be_visible()
        expect(self.every("turn_1")).to_have_count(0)

    def write(self, text: str) -> None:
        self.field.fill(text)
        self.field.press("Enter")

    def turn(self, number: int) -> Locator:
        return self.find(f"turn_{number}")

    def ask(self, *messages: str, first: int = 1) -> None:
        for number, message in enumerate(messages, first):
            self.write(message)
            self.wait_for_end(number)

    def wait_for_end(self, number: int) -> None:
        expect(self.find(f"last_actions_{number}")).to_be_visible(timeout=PATIENCE_MILLISECONDS)

    def note_marks(self) -> None:
        """Notes what is marked from now on: a mark goes by itself, on a busy machine before a test looks."""
        self.page.evaluate(
            """() => {
                window.keyOf = (part) => [...part.classList].find((name) => name.startsWith("st-key-"));
                window.marked = new Set();
                const note = (changes) => changes.forEach(({ target }) => window.marked.add(keyOf(target)));
                new MutationObserver(note).observe(document.body, { subtree: true, attributeFilter: ["data-marked"] });
            }"""
        )

    def wait_for_marks(self, *parts: Locator) -> None:
        """Waits until these have been marked, and no others."""
        self.page.wait_for_function(
            "(parts) => String(parts.map(keyOf).sort()) === String([...marked].sort())",
            arg=[part.element_handle() for part in parts],
        )

    def open_statistics(self) -> Locator:
        self.find("panel").get_by_role("tab", name="통계").click()
        panel = self.find("panel")
        expect(panel.get_by_text("📊 요약 통계")).to_be_visible()
        return panel

    def expect_language(self, language: str) -> None:
        """The page's own script has run by then: it's what sets the language."""
        self._language = language
        expect(self.page.locator("html")).to_have_attribute("lang", language)

    def open_settings(self, section: str) -> None:
        """Opens the dialog of settings, unless it is open, at a section, which its title names."""
        if not self.page.get_by_role("dialog").is_visible():
            self.find("open_settings").locator("button").click()
        tab = self.page.get_by_role("dialog").get_by_role("tab", name=section, exact=True)
        tab.click()
        expect(tab).to_have_attribute("aria-selected", "true")
        self.settle()

    def expect_no_complaint(self) -> None:
        assert not self.complaints, "\n".join(self.complaints)

    def describe(self) -> str:
        """Says what the page looks like, for the report of a test that failed."""
        seen = self.page.evaluate(
            """() => ({
                url: location.href,
                script: document.querySelector("[data-testid='stApp']")?.dataset.testScriptState,
                focus: document.activeElement?.outerHTML.slice(0, 200),
                dialogs: [...document.querySelectorAll("[role='dialog'], [role='menu']")].map((box) => box.innerText),
                text: document.body.innerText.slice(0, 3000),
            })"""
        )
        return "\n".join([*(f"{name}: {value}" for name, value in seen.items()), *self.complaints])

    def _note_console(self, message: ConsoleMessage) -> None:
        if SHARED_REQUEST not in message.text and message.type in {"error", "warning"}:
            self.complaints.append(f"console: {message.text}")

    def _note_request(self, request: Request) -> None:
        host = urlsplit(request.url).hostname
        if urlsplit(request.url).scheme not in {"data", "blob"} and host != urlsplit(self.address).hostname:
            self.complaints.append(f"request: {request.url}")
