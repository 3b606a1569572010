// Scrolls from a summary to its turns, from a fold's line to its card, and to recalled turns.
const CARD = "st-key-card_";
const FOLD = "st-key-fold_";
const FOLD_SUMMARY = `[class*='${FOLD}'] summary`;
const MORE = "[class*='st-key-more_question_']";
const TURN_LINK = `:is([class*='${CARD}'], [class*='${FOLD}']) a[href^='#turn-']`;
const TOP_PIXELS = 72;
const MARK_MILLISECONDS = 2500;
const APART_MILLISECONDS = 150;
const SETTLE_MILLISECONDS = 1500;
const WAIT_MILLISECONDS = 15000;

// Set by the page's component: requests the drawing of a missing element.
const askServer = (...request) => globalThis.turnfoldAsk(...request);
let jumpNumber = 0;

function isSeen(element) {
  return element !== null && element.getClientRects().length > 0;
}

function isDrawing() {
  return document.querySelector("[data-testid='stApp']")?.dataset.testScriptState === "running";
}

// Until a time limit after the last drawing, which what is looked for may be a part of.
function waitFor(find, act, limit = 0) {
  const found = find();
  const now = performance.now();
  const until = limit && !isDrawing() ? limit : now + WAIT_MILLISECONDS;
  if (found) act(found);
  else if (now < until) requestAnimationFrame(() => waitFor(find, act, until));
}

// Only the newest jump waits.
function whenReady(find, act, ask) {
  const number = ++jumpNumber;
  ask?.();
  waitFor(() => number !== jumpNumber || find(), (found) => number === jumpNumber && act(found));
}

function mark(elements) {
  elements.forEach((element) => element.setAttribute("data-marked", ""));
  setTimeout(() => elements.forEach((element) => element.removeAttribute("data-marked")), MARK_MILLISECONDS);
}

function turnAt(number) {
  return document.querySelector(`.st-key-turn_${number}`);
}

function onToTurns(button, event) {
  event.preventDefault(); // a link stays in the page
  const [first, last] = button.hash?.split("-").slice(1) ?? [button.dataset.first, button.dataset.last];
  uncoverChat();
  goToTurns(Number(first), Number(last));
}

function goToTurns(first, last) {
  const isNew = !turnAt(first);
  const ask = isNew ? () => askServer("turns", lastTurnNumber() - first + 1) : null;
  const isReady = () => turnAt(first) && turnAt(last);
  whenReady(isReady, () => showTurns(first, last, isNew), ask);
}

// Scrolls to the turn at which a chat was opened.
function goToTurn(turn) {
  Object.assign(find, { turn, hit: 0 });
  const isReady = () => turnAt(turn) && !document.querySelector("[role='dialog']");
  whenReady(isReady, () => showTurns(turn, turn, true));
}

function showTurns(first, last, isNew) {
  const box = document.querySelector(SCROLLER);
  const turn = turnAt(first);
  box.scrollTop += turn.getBoundingClientRect().top - box.getBoundingClientRect().top - TOP_PIXELS;
  drawFind();
  const word = wordIn(turn);
  const wordTop = word?.getBoundingClientRect().top ?? 0;
  if (wordTop > box.clientHeight - 2 * TOP_PIXELS) box.scrollTop += wordTop - box.clientHeight / 2;
  holdPlace(box);
  // Earlier turns may still be growing.
  if (isNew) holdElement(`st-key-turn_${first}`, turn);
  noteScroll(box);
  turn.tabIndex = -1;
  if (!document.activeElement.matches(FIND_CONTROL)) turn.focus({ preventScroll: true });
  if (word) return; // it is marked
  const turns = Array.from({ length: last - first + 1 }, (_, index) => turnAt(first + index));
  mark(turns.filter((each) => each !== null));
}

// Keeps the scroll position: neither growth nor Streamlit moves the page to the end.
function holdPlace(box) {
  scroll.follows = false;
  scroll.anchor = null;
  scroll.position = box.scrollTop;
  scroll.isHeld = true;
}

// Keeps an element's position in the window while others are drawn around it, without a time limit.
function holdElement(key, element) {
  const anchor = { key, top: element.getBoundingClientRect().top };
  scroll.anchor = anchor;
  const release = () => {
    if (scroll.anchor !== anchor) return;
    if (isDrawing()) setTimeout(release, SETTLE_MILLISECONDS);
    else scroll.anchor = null;
  };
  setTimeout(release, SETTLE_MILLISECONDS);
}

function onFold(line) {
  // The event is captured before the line opens. A record from before a reset has no card.
  if (line.closest("details").open || line.closest("[class*='st-key-past_']")) return;
  if (!isSeen(document.querySelector(".st-key-panel"))) return;
  const fold = line.closest(`[class*='${FOLD}']`);
  const id = keyOf(fold).slice(FOLD.length).replace(/_whole$/, "");
  const find = () => {
    const card = document.querySelector(`.${CSS.escape(CARD + id)}`);
    return isSeen(card) && card;
  };
  // Behind the line's own request: Streamlit would join them to one, for one fragment, and the line's stay closed.
  const ask = () => setTimeout(() => askServer("record", id), APART_MILLISECONDS);
  whenReady(find, showCard, find() ? null : ask);
}

function showCard(card) {
  const bring = () => card.scrollIntoView({ block: "nearest" });
  bring();
  // The expander of an older card is animated.
  setTimeout(bring, 400);
  mark([card]);
}

// An opened line or message stays in place, also at the end of the chat; a closed message's button stays in place.
function onOpen(button) {
  holdPlace(document.querySelector(SCROLLER));
  const more = button.closest(MORE);
  if (more?.parentElement.querySelector("[class*='st-key-whole_question_']")) {
    holdElement(keyOf(more), more);
  }
}

// The form for editing a question or an answer is focused once drawn, and scrolled to its first line and, where there is
// room, its buttons.
function onEdit() {
  holdPlace(document.querySelector(SCROLLER));
  const find = () => document.querySelector(".st-key-edit_choice")?.closest("[data-testid='stForm']")?.querySelector("textarea");
  whenReady(find, (field) => {
    field.focus({ preventScroll: true });
    bringDown(field);
    // The field grows to the height of its text.
    setTimeout(() => bringDown(field), SETTLE_MILLISECONDS);
  });
}

function bringDown(field) {
  const box = document.querySelector(SCROLLER);
  const above = field.getBoundingClientRect().top - box.getBoundingClientRect().top - TOP_PIXELS;
  const end = document.querySelector("[data-testid='stBottom']").getBoundingClientRect().top;
  const below = field.closest("[data-testid='stForm']").getBoundingClientRect().bottom - end + TOP_PIXELS;
  if (above >= 0 && below <= 0) return;
  box.scrollTop += Math.min(above, below);
  holdPlace(box);
}

listenIn(`${FOLD_SUMMARY}, ${MORE} button`, "click", onOpen, true);
listenIn(`button.to-turns, button.recalled-turn, ${TURN_LINK}`, "click", onToTurns);
listenIn(FOLD_SUMMARY, "click", onFold, true);
listenIn("button[data-press^='edit']", "click", onEdit);
