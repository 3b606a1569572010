// Follows the end of a growing chat until the user scrolls up; keeps the position when earlier turns are shown.
const SCROLLER = "#stMain";
// The elements whose size changes the page's length: the chat, the bar in the same scroller, and the window.
const BLOCK = "[data-testid='stMainBlockContainer']";
const SIZED = `${BLOCK}, [data-testid='stBottom'], ${SCROLLER}`;
const TURN = "[class*='st-key-turn_']";
const WIDE = `:is(${TURN}, [class*='st-key-card_']) :is(table, [data-testid='stCode'] pre):not([tabindex])`;
const FOLD_LINE = "[class*='st-key-fold_']";
const FOLDED_LINE = `:is([class*='st-key-past_'] ${FOLD_LINE}, ${FOLD_LINE}:not([class*='_whole']))`;
const MARKED = `${FOLD_LINE}, pre, table`;
const NAMED = ":is(button, section, [data-testid='stChatMessageContent'])[aria-label], [data-testid='stTooltipContent'] p";
const SETTLED = "[data-testid='stApp'][data-test-script-state='notRunning']";
const AWAY_PIXELS = 200;
const NEAR_PIXELS = 24;
const GESTURE_MILLISECONDS = 1000;
const LAYOUT_MILLISECONDS = 500;
const SHORTER_MILLISECONDS = 300;

// `position` is the scroll position, `anchor` the element that must not move, `isHeld` that only the user's gestures
// scroll the page; times are those of performance.now().
const scroll = {
  follows: true,
  top: 0,
  height: 0,
  position: 0,
  anchor: null,
  gesture: 0,
  gestureAt: -Infinity,
  resizedAt: -Infinity,
  isHeld: false,
};
// The height from the top of a turn to the chat's end.
const room = { session: null, turn: TURN, height: 0, timer: null };
// Keys that scroll the page, with the direction; not in a field, where they move the cursor.
const KEYS = { ArrowUp: -1, PageUp: -1, Home: -1, ArrowDown: 1, PageDown: 1, End: 1, " ": 0, Tab: 0 };

function restOf(box) {
  return box.scrollHeight - box.clientHeight - box.scrollTop;
}

function noteScroll(box) {
  scroll.top = box.scrollTop;
  scroll.height = box.scrollHeight;
  if (scroll.follows) scroll.position = box.scrollTop;
  const isAway = restOf(box) > AWAY_PIXELS && document.querySelector(TURN) !== null;
  document.documentElement.classList.toggle("away-from-end", isAway);
}

function scrollToEnd() {
  const box = document.querySelector(SCROLLER);
  scroll.follows = true;
  scroll.isHeld = false;
  scroll.anchor = null;
  scroll.gestureAt = -Infinity; // scrolling to the end discards an earlier gesture
  if (!box || !document.querySelector(TURN)) return;
  box.scrollTop = box.scrollHeight;
  noteScroll(box);
}

function onScroll(event) {
  const box = event.target;
  if (!box.matches?.(SCROLLER)) return;
  const move = Math.sign(box.scrollTop - scroll.top);
  if (isByReader(box, move)) {
    if (move > 0 && restOf(box) <= NEAR_PIXELS) scroll.follows = true;
    // A shrunken box scrolls up by itself, to its end.
    else if (move < 0 && restOf(box) > 1) scroll.follows = false;
    scroll.position = box.scrollTop;
  } else if (!scroll.follows && (scroll.isHeld || !scroll.anchor)) {
    // The page was shorter for a moment while an answer was redrawn.
    if (!keepAnchor(box)) box.scrollTop = scroll.position;
  }
  noteScroll(box);
}

function isByReader(box, move) {
  const now = performance.now();
  if (scroll.isHeld) return false;
  if (now - scroll.gestureAt < GESTURE_MILLISECONDS) return scroll.gesture === 0 || scroll.gesture === move;
  // The browser reports a scroll before the resize that caused it.
  return box.scrollHeight === scroll.height && now - scroll.resizedAt > LAYOUT_MILLISECONDS;
}

function isScrolling(event) {
  return event.key in KEYS && (event.key === "Tab" || !event.target.closest?.("input, textarea, [contenteditable]"));
}

function onGesture(event) {
  // A press on the box itself is on its scroll bar.
  if (event.type === "pointerdown" && !event.target.matches?.(SCROLLER)) return;
  if (event.type === "keydown" && !isScrolling(event)) return;
  scroll.gesture = event.type === "wheel" ? Math.sign(event.deltaY) : (KEYS[event.key] ?? 0);
  scroll.gestureAt = performance.now();
  scroll.isHeld = false;
  scroll.anchor = null;
  const box = event.target.closest?.(SCROLLER);
  // Set before the page scrolls, so that growth in between doesn't scroll back to the end.
  if (event.type === "wheel" && event.deltaY < 0 && box?.scrollTop > 0) scroll.follows = false;
}

function keepAnchor(box) {
  const anchored = scroll.anchor && document.querySelector(`.${scroll.anchor.key}`);
  if (!anchored) return false;
  box.scrollTop += anchored.getBoundingClientRect().top - scroll.anchor.top;
  scroll.position = box.scrollTop;
  return true;
}

// Between two drawings a chat may be shorter: as a queued message goes, an answer ends or is made anew. From the turn
// that was the last one on it keeps its room; what is drawn above moves nothing.
function keepRoom() {
  const [chat, session] = [document.querySelector(CHAT), sessionInAddress()];
  if (!chat) return;
  const heightOf = (turn) => Math.round(chat.getBoundingClientRect().bottom - turn.getBoundingClientRect().top);
  const turn = session === room.session && scroll.follows ? chat.querySelector(room.turn) : null;
  const missing = turn ? Math.max(0, room.height - heightOf(turn)) : 0;
  const last = (pending && turn) || [...chat.querySelectorAll(TURN)].at(-1); // its turn stands behind it for a moment
  if (!missing && last) Object.assign(room, { session, turn: `.${keyOf(last)}`, height: heightOf(last) });
  // A margin, as the observed size must not change again.
  chat.closest(BLOCK).style.marginBottom = missing ? `${missing}px` : "";
  if (missing) room.timer ??= setTimeout(giveRoom, SHORTER_MILLISECONDS);
}

function giveRoom() {
  room.timer = null;
  const isSending = outbox.some(({ session, waits }) => session === room.session && !waits);
  // Between two drawings the page looks settled; what can be done with an answer is drawn last.
  const isDrawn = [...document.querySelectorAll(TURN)].at(-1)?.querySelector("[class*='st-key-last_actions_']");
  if (!isSending && isDrawn && document.querySelector(SETTLED)) room.height = 0;
  onResize();
}

function onResize() {
  const box = document.querySelector(SCROLLER);
  if (!box) return;
  keepRoom();
  scroll.resizedAt = performance.now();
  if (!keepAnchor(box)) {
    if (!scroll.follows) box.scrollTop = scroll.position;
    else if (document.querySelector(TURN)) box.scrollTop = box.scrollHeight;
  }
  noteScroll(box);
  markTurns();
}

function onChange(changes) {
  returnFocus();
  noteFind();
  noteEnd();
  showPanel();
  showRate();
  countTyped();
  setTimeout(onUploads); // with its chip a picture's address goes, so its loading begins first
  onConnection();
  if (pending) followTurn();
  requestAnimationFrame(markPopovers);
  const isMarked = (node) => node.nodeType === Node.ELEMENT_NODE && (node.matches(MARKED) || node.querySelector(MARKED));
  const isOne = ({ target, addedNodes }) => target.matches(MARKED) || [...addedNodes].some(isMarked);
  if (changes.some(isOne)) requestAnimationFrame(markTurns);
}

function markTurns() {
  const turns = [...document.querySelectorAll(TURN)];
  let isFolded = false;
  turns.reverse().forEach((turn) => {
    // A fold's line comes after the last of its turns.
    if (turn.querySelector(FOLD_LINE)) isFolded = turn.querySelector(FOLDED_LINE) !== null;
    turn.toggleAttribute("data-folded", isFolded);
    // Streamlit reuses containers for other turns, so the number is set each time.
    const number = turn.className.match(/st-key-turn_(\d+)/)[1];
    if (turn.dataset.turn !== number) turn.dataset.turn = number;
  });
  document.querySelectorAll("[class*='st-key-clamped_question_']").forEach((question) => {
    // Nothing is hidden, so the button to show more is.
    question.toggleAttribute("data-fits", question.scrollHeight <= question.clientHeight + 1);
  });
  markWide();
  drawCodeTools();
  document.querySelectorAll(`${TURN} li > input[type='checkbox']:not([aria-label])`).forEach((box) => {
    // Markdown's check box is beside its text, not in a label.
    box.setAttribute("aria-label", box.parentElement.textContent.trim());
  });
  document.querySelectorAll(`${TURN} .footnotes h2 [data-heading-text]`).forEach((title) => {
    title.firstChild.data = words.footnotes; // the renderer's own title is English
  });
}

// Elements that scroll sideways must be reachable by keyboard.
function markWide() {
  document.querySelectorAll(WIDE).forEach((part) => {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  });
}

function markPopovers() {
  // A popover is at the end of the document: opened by keyboard, it gets the focus, or Tab would pass it by.
  document.querySelectorAll("[data-testid='stPopoverBody']:not([tabindex='0'])").forEach((body) => {
    body.tabIndex = 0;
    if (document.activeElement?.matches("[data-testid='stPopoverButton']:focus-visible")) body.focus();
  });
  // Streamlit names a box by its label's Markdown, with the escapes; the label around it says the text alone.
  document.querySelectorAll("label input[type='checkbox'][aria-label]").forEach((box) => box.removeAttribute("aria-label"));
  // Its own names are English on every page.
  document.querySelectorAll(NAMED).forEach((part) => {
    const said = part.ariaLabel ?? part.textContent;
    const name = said.replace(/^(?:Help for |[A-Z][\w -]*?(?=: |$))/, (own) => words.names[own] ?? own);
    if (name === said) return;
    if (part.ariaLabel) part.ariaLabel = name.replace(/\\(.)/g, "$1");
    else part.textContent = name;
  });
}

function onEarlier() {
  const turn = document.querySelector(TURN);
  scroll.follows = false;
  scroll.anchor = { key: keyOf(turn), top: turn.getBoundingClientRect().top };
}

const pageResize = new ResizeObserver(onResize);
// Runs before the browser paints what was drawn.
const pageChange = new MutationObserver(onChange);
listen("scroll", onScroll, true);
listen("wheel touchmove keydown pointerdown", onGesture, { passive: true });
listenIn(".st-key-earlier button", "click", onEarlier, true);
listenIn("button.to-end, :is(.st-key-regenerate, .st-key-retry, .st-key-go_on) button", "click", scrollToEnd);
