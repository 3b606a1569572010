// Follows the end of the chat while it grows, until the reader scrolls up; keeps the place when earlier turns are shown.
const SCROLLER = "[data-testid='stAppScrollToBottomContainer']";
const COLUMN = "[data-testid='stMainBlockContainer']";
const TURN = "[class*='st-key-turn_']";
const AWAY_PIXELS = 200;
const NEAR_PIXELS = 24;
const ANCHOR_MILLISECONDS = 3000;

const scroll = { follows: true, top: 0, anchor: null };

function restOf(box) {
  return box.scrollHeight - box.clientHeight - box.scrollTop;
}

function noteScroll(box) {
  scroll.top = box.scrollTop;
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
  // A box that has shrunk moves up by itself, and then it is at its end.
  if (box.scrollTop < scroll.top && restOf(box) > 1) scroll.follows = false;
  else if (box.scrollTop > scroll.top && restOf(box) <= NEAR_PIXELS) scroll.follows = true;
  noteScroll(box);
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

function onColumnResize() {
  const box = document.querySelector(SCROLLER);
  if (!box) return;
  if (scroll.anchor && performance.now() < scroll.anchor.until) {
    const turn = document.querySelector(`.${scroll.anchor.key}`);
    if (turn) box.scrollTop += turn.getBoundingClientRect().top - scroll.anchor.top;
  } else if (scroll.follows && document.querySelector(TURN)) {
    box.scrollTop = box.scrollHeight;
  }
  noteScroll(box);
  markTurns();
}

function onEarlier(event) {
  if (!event.target.closest?.(".st-key-earlier button")) return;
  const turn = document.querySelector(TURN);
  const key = [...(turn?.classList ?? [])].find((name) => name.startsWith("st-key-turn_"));
  if (!key) return;
  const until = performance.now() + ANCHOR_MILLISECONDS;
  scroll.follows = false;
  scroll.anchor = { key, top: turn.getBoundingClientRect().top, until };
}

function dropAnchor() {
  scroll.anchor = null;
}

function onToEnd(event) {
  if (event.target.closest?.("button.to-end, .st-key-regenerate button, .st-key-retry button")) scrollToEnd();
}

const columnResize = new ResizeObserver(onColumnResize);
const SCROLL_LISTENERS = [
  ["scroll", onScroll, true],
  ["click", onEarlier, true],
  ["click", onToEnd, false],
  ["wheel", dropAnchor, { passive: true }],
  ["touchstart", dropAnchor, { passive: true }],
];
