"""A script of the page by itself, on an empty page of the product's own origin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page


@contextmanager
def page_with(chromium: Browser, address: str, content: str, script: str) -> Iterator[Page]:
    """Opens the page; there `script` is what Streamlit calls, and `sent` an empty list."""
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(f"{address}/health")
        page.set_content(content)
        page.evaluate(
            """async (script) => {
                const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
                window.script = (await import(url)).default;
                window.sent = [];
            }""",
            script,
        )
        yield page
