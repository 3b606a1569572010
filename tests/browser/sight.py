"""What the browser paints from the moment that a message is sent, frame by frame."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.browser.visitor import Visitor


class Sight(NamedTuple):
    """What a frame has shown: how often the message stands in the chat, and whether the empty page's own is there."""

    messages: int
    is_empty_page: bool


# `spots` is where in the page, however it is scrolled, the bubble of the message has stood, from the first frame that
# the browser paints after the key.
PRESS_ENTER: Final = """(field) => {
    const text = field.value;
    const said = () => [...document.querySelectorAll("p.pending, [class*='st-key-turn_'] [data-testid='stText']")];
    const rest = () => [...document.querySelectorAll(".st-key-empty h1, .st-key-suggestions, .st-key-known")];
    const isSeen = (part) => part.checkVisibility();
    const isSame = (part) => part.textContent !== "" && text.startsWith(part.textContent);
    const seen = { sights: new Map(), spots: new Set() };
    window.seen = seen;
    const main = document.querySelector("[data-testid='stMain']");
    const note = () => {
        const messages = said().filter((part) => isSeen(part) && isSame(part));
        const sight = [messages.length, rest().some(isSeen)];
        seen.sights.set(String(sight), sight);
        messages.forEach((part) => {
            const box = part.closest("p.pending, [data-testid='stChatMessage']").getBoundingClientRect();
            seen.spots.add([box.left, box.top + main.scrollTop].map(Math.round).join());
        });
        if (window.seen === seen) requestAnimationFrame(note);
    };
    const options = { key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true };
    field.dispatchEvent(new KeyboardEvent("keydown", options));
    requestAnimationFrame(note);
    return document.querySelector("p.pending")?.textContent;
}"""
EMPTY_PAGE: Final = Sight(messages=0, is_empty_page=True)
MESSAGE: Final = Sight(messages=1, is_empty_page=False)


def press_enter(visitor: Visitor) -> str | None:
    """Presses Enter in the message field; returns the message that is there before anything else can run."""
    shown: str | None = visitor.field.evaluate(PRESS_ENTER)
    return shown


def spots(visitor: Visitor) -> set[str]:
    """Returns where the frames since Enter have shown the message."""
    return set(visitor.page.evaluate("[...seen.spots]"))


def sights(visitor: Visitor) -> set[Sight]:
    """Returns what the frames since Enter have shown."""
    return {Sight(*sight) for sight in visitor.page.evaluate("[...seen.sights.values()]")}
