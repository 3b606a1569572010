// Follows the end of the chat while it grows, until the reader scrolls up; keeps the place when earlier turns are shown.
const SCROLLER = "[data-testid='stAppScrollToBottomContainer']";
const COLUMN = "[data-testid='stMainBlockContainer']";
const TURN = "[class*='st-key-turn_']";
const AWAY_PIXELS = 200;
const NEAR_PIXELS = 24;
const GESTURE_MILLISECONDS = 1000;
const LAYOUT_MILLISECONDS = 500;

// `place` is where the reader is, `anchor` the turn that must not move under them; times are those of performance.now().
const scroll = { follows: true, top: 0, place: 0, anchor: null, gesture: 0, gestureAt: -Infinity, resizedAt: -Infinity };
const KEYS = { ArrowUp: -1, PageUp: -1, Home: -1, ArrowDown: 1, PageDown: 1, End: 1 };

function restOf(box) {
  return box.scrollHeight - box.clientHeight - box.scrollTop;
}

function noteScroll(box) {
  scroll.top = box.scrollTop;
  if (scroll.follows) scroll.place = box.scrollTop;
  document.documentElement.classList.toggle("away-from-end", restOf(box) > AWAY_PIXELS);
}

function scrollToEnd() {
  const box = document.querySelector(SCROLLER);
  scroll.follows = true;
  scroll.anchor = null;
  if (!box || !document.querySelector(TURN)) return;
  box.scrollTop = box.scrollHeight;
  noteScroll(box);
}

function onScroll(event) {
  const box = event.target;
  if (!box.matches?.(SCROLLER)) return;
  const move = Math.sign(box.scrollTop - scroll.top);
  if (isByReader(move)) {
    if (move > 0 && restOf(box) <= NEAR_PIXELS) scroll.follows = true;
    // A box that has shrunk moves up by itself, and then it is at its end.
    else if (move < 0 && restOf(box) > 1) scroll.follows = false;
    scroll.place = box.scrollTop;
  } else if (!scroll.follows && !scroll.anchor) {
    // Streamlit goes to the end of a chat that was at its end for a moment, while an answer was drawn again.
    box.scrollTop = scroll.place;
  }
  noteScroll(box);
}

function isByReader(move) {
  const now = performance.now();
  if (now - scroll.gestureAt < GESTURE_MILLISECONDS) return scroll.gesture === 0 || scroll.gesture === move;
  return now - scroll.resizedAt > LAYOUT_MILLISECONDS;
}

function onGesture(event) {
  scroll.gesture = event.type === "wheel" ? Math.sign(event.deltaY) : (KEYS[event.key] ?? 0);
  scroll.gestureAt = performance.now();
  scroll.anchor = null;
  const box = event.target.closest?.(SCROLLER);
  // Before the page has moved, so that no growth meanwhile takes the reader back.
  if (event.type === "wheel" && event.deltaY < 0 && box?.scrollTop > 0) scroll.follows = false;
}

function onColumnResize() {
  const box = document.querySelector(SCROLLER);
  if (!box) return;
  scroll.resizedAt = performance.now();
  const anchored = scroll.anchor && document.querySelector(`.${scroll.anchor.key}`);
  if (anchored) {
    box.scrollTop += anchored.getBoundingClientRect().top - scroll.anchor.top;
    scroll.place = box.scrollTop;
  } else if (!scroll.follows) {
    box.scrollTop = scroll.place;
  } else if (document.querySelector(TURN)) {
    box.scrollTop = box.scrollHeight;
  }
  noteScroll(box);
  markTurns();
}

function markTurns() {
  document.querySelectorAll(TURN).forEach((turn) => {
    // Streamlit reuses a container for another turn, so the number is set each time.
    const number = turn.className.match(/st-key-turn_(\d+)/)[1];
    if (turn.dataset.turn !== number) turn.dataset.turn = number;
  });
  document.querySelectorAll(`${TURN} table:not([tabindex])`).forEach((table) => {
    // A table that scrolls sideways must be reachable by keyboard.
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  });
}

function onEarlier(event) {
  if (!event.target.closest?.(".st-key-earlier button")) return;
  const turn = document.querySelector(TURN);
  const key = [...(turn?.classList ?? [])].find((name) => name.startsWith("st-key-turn_"));
  if (!key) return;
  scroll.follows = false;
  scroll.anchor = { key, top: turn.getBoundingClientRect().top };
}

function onToEnd(event) {
  if (event.target.closest?.("button.to-end, .st-key-regenerate button, .st-key-retry button")) scrollToEnd();
}

const columnResize = new ResizeObserver(onColumnResize);
const SCROLL_LISTENERS = [
  ["scroll", onScroll, true],
  ["wheel", onGesture, { passive: true }],
  ["touchmove", onGesture, { passive: true }],
  ["keydown", onGesture, false],
  ["click", onEarlier, true],
  ["click", onToEnd, false],
];
