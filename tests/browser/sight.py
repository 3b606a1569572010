"""What the browser paints from the moment that a message is sent, frame by frame."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.browser.visitor import Visitor


class Sight(NamedTuple):
    """What a frame has shown: how often the message stands in the chat, and whether the empty page's own is there."""

    messages: int
    is_empty_page: bool


# A message stands in the chat as what is being sent, in its turn, or among those that wait. `spots` is where in the
# page, however it is scrolled, its bubble has stood, from the first frame that the browser paints; `jump` how many
# pixels the turn before it has come down again after it went up.
_WATCH: Final = """(text) => {
    const places = "p.pending, .waiting p, [class*='st-key-turn_'] [data-testid='stText']";
    const said = () => [...document.querySelectorAll(places)];
    const rest = () => [...document.querySelectorAll(".st-key-empty h1, .st-key-suggestions, .st-key-known")];
    const isSeen = (part) => part.checkVisibility();
    const isSame = (part) => part.textContent !== "" && text.startsWith(part.textContent);
    const seen = { sights: new Map(), spots: new Set(), jump: 0 };
    window.seen = seen;
    const main = document.querySelector("[data-testid='stMain']");
    const newest = [...document.querySelectorAll("[class*='st-key-turn_']")].at(-1);
    const key = [...(newest?.classList ?? [])].find((name) => name.startsWith("st-key-turn_"));
    const note = () => {
        const messages = said().filter((part) => isSeen(part) && isSame(part));
        const sight = [messages.length, rest().some(isSeen)];
        seen.sights.set(String(sight), sight);
        messages.forEach((part) => {
            const bubble = part.closest("p.pending, .waiting > div, [data-testid='stChatMessage']");
            const box = bubble.getBoundingClientRect();
            seen.spots.add([box.left, box.top + main.scrollTop].map(Math.round).join());
        });
        const before = key && document.querySelector(`.${key}`); // the same element may hold another turn later
        if (before) {
            const { top } = before.getBoundingClientRect();
            seen.top = Math.min(seen.top ?? top, top);
            seen.jump = Math.max(seen.jump, top - seen.top);
        }
    };
    const frame = () => {
        // Behind the page's own observers: what they scroll is painted in this frame, too.
        const observer = new ResizeObserver(() => (observer.disconnect(), note()));
        observer.observe(main);
        if (window.seen === seen) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
}"""
PRESS_ENTER: Final = f"""(field) => {{
    const text = field.value;
    const options = {{ key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true }};
    field.dispatchEvent(new KeyboardEvent("keydown", options));
    ({_WATCH})(text);
    return document.querySelector("p.pending")?.textContent;
}}"""
EMPTY_PAGE: Final = Sight(messages=0, is_empty_page=True)
NO_MESSAGE: Final = Sight(messages=0, is_empty_page=False)
MESSAGE: Final = Sight(messages=1, is_empty_page=False)


def press_enter(visitor: Visitor) -> str | None:
    """Presses Enter in the message field; returns the message that is there before anything else can run."""
    shown: str | None = visitor.field.evaluate(PRESS_ENTER)
    return shown


def watch(visitor: Visitor, message: str) -> None:
    """Begins to note the frames, before what sends this message otherwise than by Enter."""
    visitor.page.evaluate(_WATCH, message)


def jump(visitor: Visitor) -> float:
    """Returns by how many pixels the turns before the message have come down again."""
    return float(visitor.page.evaluate("seen.jump"))


def spots(visitor: Visitor) -> set[str]:
    """Returns where the frames since Enter have shown the message."""
    return set(visitor.page.evaluate("[...seen.spots]"))


def sights(visitor: Visitor) -> set[Sight]:
    """Returns what the frames since Enter have shown."""
    return {Sight(*sight) for sight in visitor.page.evaluate("[...seen.sights.values()]")}
