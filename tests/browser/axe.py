"""What axe-core says of a page, in the theme that it is in or in both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.stage import Stage, State

Theme = Literal["light", "dark"]
Themes = Literal["own", "other", "both"]

RULES: Final = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
    "resultTypes": ["violations"],
    "selectors": False,
    "elementRef": False,
}
# What a theme changes is its colours: the other rules find the same in both.
COLOUR_RULES: Final = {**RULES, "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
AXE: Final = Axe()
FADED_IN: Final = """() => document.getAnimations().every(
    (one) => one.playState !== "running" || one.effect.getTiming().iterations === Infinity)"""
# A part that has just come into the page is marked before it is drawn, and nobody reads what isn't drawn: axe looks
# behind all that the page does in a frame, and before anything else comes.
LOOK: Final = """async (options) => {
    await new Promise((drawn) => new ResizeObserver((_, size) => drawn(size.disconnect())).observe(document.body));
    return (await axe.run(options)).violations;
}"""
HALF_A_PAGE_ON: Final = """() => {
    const chat = document.querySelector("[data-testid='stMain']");
    const room = chat.scrollHeight - chat.clientHeight - chat.scrollTop;
    const top = room > 100 ? Math.min(room, innerHeight / 2) : -innerHeight / 2;
    chat.dispatchEvent(new WheelEvent("wheel", {deltaY: top, bubbles: true})); // else the page would scroll back
    chat.scrollBy({top, behavior: "instant"});
}"""
THEME: Final = "getComputedStyle(document.querySelector(\"[data-testid='stApp']\")).colorScheme"


def violations(page: Page, themes: Themes = "own") -> list[str]:
    """Each element that breaks a rule; in both themes the page stays in the other one.

    The page goes with the system's theme. What is too pale in one theme of a width isn't seen in the other. A page that
    is in the other theme from its beginning, as all else was looked at in its own, is looked at for its colours alone.
    """
    found = _violations(page, COLOUR_RULES if themes == "other" else RULES)
    if themes == "both":
        other: Theme = "light" if page.evaluate(THEME) == "dark" else "dark"
        page.emulate_media(color_scheme=other)
        page.wait_for_function(f"(theme) => {THEME} === theme", arg=other)
        found += [f"{other}: {violation}" for violation in _violations(page, COLOUR_RULES)]
    return found


def walk_without_violation(stage: Stage, walk: Iterable[State], themes: Themes) -> None:
    """Goes from state to state; none of them may break a rule."""
    found: list[str] = []
    for reach in walk:
        reach(stage)
        violated = violations(stage.visitor.page, themes)
        found += [f"{reach.__name__}: {violation}" for violation in violated]
    if found:
        pytest.fail("\n".join(found))


def _violations(page: Page, rules: Mapping[str, Any]) -> list[str]:
    page.wait_for_timeout(100)  # what fades in has begun to
    page.wait_for_function(FADED_IN)
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.axe_script)
    found = page.evaluate(LOOK, rules)
    if any(rule["id"] == "target-size" for rule in found):
        # The message field lies over the end of the chat: what is half behind it counts only if scrolling doesn't help.
        found = page.evaluate(LOOK, {**rules, "selectors": True})
        page.evaluate(HALF_A_PAGE_ON)
        after = page.evaluate(LOOK, {**rules, "selectors": True})
        again = {str(node["target"]) for rule in after for node in rule["nodes"]}
        for rule in found:
            if rule["id"] == "target-size":
                rule["nodes"] = [node for node in rule["nodes"] if str(node["target"]) in again]
    nodes = [(rule["id"], node) for rule in found for node in rule["nodes"]]
    return [f"{name}: {node['html'][:300]}\n{node['failureSummary']}" for name, node in nodes]
