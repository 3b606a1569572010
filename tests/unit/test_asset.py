from __future__ import annotations

from component.widget import ASSETS


def test_no_style_sheet_has_a_sign_that_the_browser_takes_for_markup() -> None:
    """The page sends style sheets as HTML, and its sanitiser drops a whole one that looks like a tag."""
    assert [sheet.name for sheet in sorted(ASSETS.glob("*.css")) if "<" in sheet.read_text()] == []
