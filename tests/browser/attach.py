"""Puts files into the message field, as their chooser does."""

from __future__ import annotations

from playwright.sync_api import FilePayload, expect

from tests.browser.visitor import Visitor


def attach(visitor: Visitor, *files: tuple[str, bytes]) -> None:
    """Waits until Streamlit has taken them, or refused them."""
    field = visitor.find("ask")
    field.locator("input[type=file]").first.set_input_files(
        [FilePayload(name=name, mimeType="", buffer=data) for name, data in files]
    )
    expect(field.get_by_test_id("stFileChip")).to_have_count(len(files))
    expect(field.get_by_test_id("stFileChipIconSpinner")).to_have_count(0)
