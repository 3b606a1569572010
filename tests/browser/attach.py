"""Puts files into the message field, as their chooser does."""

from __future__ import annotations

from playwright.sync_api import FilePayload, expect

from tests.browser.visitor import Visitor


def attach(visitor: Visitor, *files: tuple[str, bytes]) -> None:
    visitor.find("ask").locator("input[type=file]").first.set_input_files(
        [FilePayload(name=name, mimeType="", buffer=data) for name, data in files]
    )
    wait_for_files(visitor, len(files))


def wait_for_files(visitor: Visitor, count: int) -> None:
    """Waits until Streamlit has taken them, or refused them: till then its field doesn't send."""
    field = visitor.find("ask")
    expect(field.get_by_test_id("stFileChip")).to_have_count(count)
    expect(field.get_by_test_id("stFileChipIconSpinner")).to_have_count(0)
