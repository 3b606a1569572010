// Find in this chat: steps through the list of places, and marks the words in the turns.
const FIND_FIELD = ".st-key-find input";
const FIND_CONTROL = ".st-key-find :is(input, [data-step])";
const FIND_BUTTON = ".st-key-icon_find button";
const PLACES = ".st-key-find .places";
const PLACE = `${PLACES} button.place`;
const SAID = "[data-testid='stChatMessageContent']";
const MARK_AGAIN_MILLISECONDS = 200;

// `turn` is the place stepped to, `wanted` a step that waits until `list`, the one drawn, is that of the words typed.
const find = { turn: null, wanted: 0, list: null, timer: null };

function listedTurns() {
  return [...document.querySelectorAll(PLACE)].map((place) => Number(place.dataset.turn));
}

function turnsAbove(y) {
  const turns = [...document.querySelectorAll(TURN)].filter((turn) => turn.getBoundingClientRect().top < y);
  return turns.map((turn) => Number(turn.className.match(/st-key-turn_(\d+)/)[1]));
}

function stepPlace(step) {
  find.wanted = step;
  if (document.querySelector(PLACES)?.dataset.search !== document.querySelector(FIND_FIELD)?.value.trim()) return;
  find.wanted = 0;
  const turns = listedTurns();
  if (!turns.length) return;
  const index = turns.indexOf(find.turn);
  goToPlace(turns[index < 0 ? nearest() : (index + step + turns.length) % turns.length]);
}

// The place of the last turn in view, or before it.
function nearest() {
  const seen = Math.max(...turnsAbove(innerHeight));
  return Math.max(0, listedTurns().findLastIndex((turn) => turn <= seen));
}

function goToPlace(turn) {
  find.turn = turn;
  // The list would cover the turn.
  document.documentElement.classList.remove("finding");
  drawFind();
  goToTurns(turn, turn);
}

function drawFind() {
  find.timer = null;
  const list = document.querySelector(PLACES);
  if (list && find.wanted) stepPlace(find.wanted);
  const places = [...document.querySelectorAll(PLACE)];
  const index = listedTurns().indexOf(find.turn);
  places.forEach((place, number) => (place.ariaCurrent = number === index ? "true" : null));
  // A new list is scrolled to the turn in view.
  if (places.length && list !== find.list) places[index < 0 ? nearest() : index].scrollIntoView({ block: "nearest" });
  find.list = list;
  const at = list?.querySelector(".at");
  const text = `${index < 0 ? "–" : index + 1} / ${places.length}`;
  if (at && at.textContent !== text) at.textContent = text;
  markWords(list);
}

// Without the browser's highlights, the turn alone is marked for a moment.
function markWords(list) {
  if (!window.Highlight) return;
  const all = new Highlight();
  const here = new Highlight();
  here.priority = 1;
  const marks = list ? JSON.parse(list.dataset.marks) : [];
  if (marks.length) {
    const pattern = new RegExp(marks.sort((one, other) => other.length - one.length).map(patternOf).join("|"), "giu");
    rangesIn(list.querySelector("ol"), pattern).forEach((range) => all.add(range));
    listedTurns().forEach((number) => {
      const parts = turnAt(number)?.querySelectorAll(SAID) ?? [];
      const ranges = [...parts].flatMap((part) => rangesIn(part, pattern));
      ranges.forEach((range) => (number === find.turn ? here : all).add(range));
    });
  }
  CSS.highlights.set("found", all);
  CSS.highlights.set("found-here", here);
}

// Korean words have endings; of others the server lists each form.
function patternOf(mark) {
  const escaped = mark.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return /^\w/.test(mark) ? `(?<![a-z0-9])${escaped}(?![a-z0-9])` : escaped;
}

function rangesIn(part, pattern) {
  const ranges = [];
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("[data-testid='stIconMaterial']")) continue; // the icon's name
    for (const found of node.data.matchAll(pattern)) {
      const range = new Range();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      ranges.push(range);
    }
  }
  return ranges;
}

// The first found word of a turn: it may be far below the turn's beginning.
function wordIn(turn) {
  const ranges = [...(CSS.highlights?.get("found-here") ?? [])];
  return ranges.find((range) => turn.contains(range.startContainer) && range.getClientRects().length > 0);
}

function noteFind() {
  const isShown = document.querySelector(PLACES) !== null;
  document.documentElement.classList.toggle("finds", isShown);
  if (isShown || CSS.highlights?.get("found")?.size) find.timer ??= setTimeout(drawFind, MARK_AGAIN_MILLISECONDS);
}

function openFind() {
  const field = document.querySelector(FIND_FIELD);
  if (field) return field.select();
  const button = document.querySelector(FIND_BUTTON);
  button?.focus({ preventScroll: true });
  button?.click();
}

function onFindClick(event) {
  const step = event.target.closest?.(`${PLACES} button[data-step]`);
  const place = event.target.closest?.(PLACE);
  if (step) stepPlace(Number(step.dataset.step));
  else if (place) goToPlace(Number(place.dataset.turn));
  else if (event.target.closest?.(FIND_BUTTON) && !document.querySelector(FIND_FIELD)) {
    find.turn = null;
    whenReady(() => document.querySelector(FIND_FIELD), (field) => field.focus());
  }
}

function onFindKey(event) {
  const isField = event.target.matches?.(FIND_FIELD);
  if (event.isComposing || !event.target.closest?.(".st-key-find_place")) return;
  if (event.key === "Enter" && isField) stepPlace(event.shiftKey ? -1 : 1);
  if (event.key !== "Escape" || !document.querySelector(FIND_FIELD)) return;
  event.stopImmediatePropagation(); // and doesn't stop the answer
  document.querySelector(FIND_BUTTON).click();
}

function onFinding(event) {
  const isInside = event.target.matches?.(FIND_FIELD) || event.target.closest?.(PLACES);
  const isTyped = event.type === "input" || event.target.matches?.(FIND_FIELD);
  if (!isInside || isTyped) document.documentElement.classList.toggle("finding", Boolean(isInside));
}

listen("click", onFindClick, false);
listen("keydown", onFindKey, true);
listen("focusin input", onFinding, false);
