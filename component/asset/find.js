// Find in this chat: steps through the list of places, and marks the words in the turns.
const FIND_FIELD = ".st-key-find input";
const FIND_CONTROL = ".st-key-find :is(input, [data-step])";
const FIND_BUTTON = ".st-key-icon_find button";
const PLACES = ".st-key-find .places";
const PLACE = `${PLACES} button.place`;
const FOUND_LINE = "[class*='st-key-found_'] button";
const SAID = "[data-testid='stChatMessageContent']";
const MARK_AGAIN_MILLISECONDS = 200;

// `turn` is the place stepped to and `hit` its hit, `wanted` a step that waits until `list`, the one drawn, is that of the
// words typed. `counts` are those of the turns that are drawn.
const find = { turn: null, hit: 0, wanted: 0, list: null, timer: null, counts: new Map() };

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
  const hit = find.hit + step;
  if (index >= 0 && hit >= 0 && hit < countHits()[index]) return goToPlace(find.turn, hit);
  goToPlace(turns[index < 0 ? nearest() : (index + step + turns.length) % turns.length], step < 0 ? Infinity : 0);
}

// The server counts those of the turns that aren't drawn.
function countHits() {
  const places = [...document.querySelectorAll(PLACE)];
  return places.map(({ dataset: { turn, hits } }) => find.counts.get(Number(turn)) ?? Number(hits));
}

// The place of the last turn in view, or before it.
function nearest() {
  const seen = Math.max(...turnsAbove(innerHeight));
  return Math.max(0, listedTurns().findLastIndex((turn) => turn <= seen));
}

function goToPlace(turn, hit = 0) {
  Object.assign(find, { turn, hit });
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
  markWords(list);
  const counts = countHits();
  const [before, all] = [counts.slice(0, index), counts].map((some) => some.reduce((one, other) => one + other, 0));
  const text = `${index < 0 ? "–" : before + Math.min(find.hit + 1, counts[index])} / ${all}`;
  if (at && at.textContent !== text) at.textContent = text;
}

// Without the browser's highlights, the turn alone is marked for a moment.
function markWords(list) {
  if (!window.Highlight) return;
  const all = new Highlight();
  const here = new Highlight();
  here.priority = 1;
  const marks = list ? JSON.parse(list.dataset.marks) : [];
  find.counts.clear();
  if (marks.length) {
    const pattern = new RegExp(marks.sort((one, other) => other.length - one.length).map(patternOf).join("|"), "giu");
    rangesIn(list.querySelector("ol"), pattern).forEach((range) => all.add(range));
    listedTurns().forEach((number) => {
      const turn = turnAt(number);
      if (!turn) return;
      const ranges = [...turn.querySelectorAll(SAID)].flatMap((part) => rangesIn(part, pattern));
      find.counts.set(number, Math.max(1, ranges.length)); // what is found may be behind a line that is closed
      if (number === find.turn) find.hit = Math.min(find.hit, find.counts.get(number) - 1);
      ranges.forEach((range, hit) => (number === find.turn && hit === find.hit ? here : all).add(range));
    });
  }
  document.querySelectorAll(FOUND_LINE).forEach((line) => {
    const pattern = new RegExp(startsIn(line.textContent).join("|") || "(?!)", "giu");
    rangesIn(line, pattern).forEach((range) => all.add(range));
  });
  CSS.highlights.set("found", all);
  CSS.highlights.set("found-here", here);
}

// Korean words have endings; of others the server lists each form.
function patternOf(mark) {
  return /^\w/.test(mark) ? `(?<![a-z0-9])${escapeMark(mark)}(?![a-z0-9])` : escapeMark(mark);
}

function escapeMark(mark) {
  return mark.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

// Of what the sidebar searches, as much as a line begins words with: Korean words have endings, English ones forms.
function startsIn(line) {
  const words = document.querySelector(".st-key-search input")?.value.split(/\s+/).filter(Boolean) ?? [];
  return words.flatMap((word) => {
    const starts = Array.from(word, (_, cut) => word.slice(0, word.length - cut)).filter((start) => start === word || start[1]);
    const patterns = starts.map((start) => `(?<![a-z0-9])${escapeMark(start)}(?!\\d)`);
    return patterns.find((pattern) => new RegExp(pattern, "iu").test(line)) ?? [];
  });
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

// The found word stepped to: it may be far below the turn's beginning.
function wordIn(turn) {
  const ranges = [...(CSS.highlights?.get("found-here") ?? [])];
  return ranges.find((range) => turn.contains(range.startContainer) && range.getClientRects().length > 0);
}

function noteFind() {
  const isShown = document.querySelector(PLACES) !== null;
  document.documentElement.classList.toggle("finds", isShown);
  const isMarked = isShown || document.querySelector(FOUND_LINE) || CSS.highlights?.get("found")?.size;
  if (isMarked) find.timer ??= setTimeout(drawFind, MARK_AGAIN_MILLISECONDS);
}

function openFind() {
  const field = document.querySelector(FIND_FIELD);
  if (field) return field.select();
  const button = document.querySelector(FIND_BUTTON);
  button?.focus({ preventScroll: true });
  button?.click();
}

function onFindOpen() {
  if (document.querySelector(FIND_FIELD)) return;
  find.turn = null;
  whenReady(() => document.querySelector(FIND_FIELD), (field) => field.focus());
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

listenIn(`${PLACES} [data-step]`, "click", (step) => stepPlace(Number(step.dataset.step)));
listenIn(PLACE, "click", (place) => goToPlace(Number(place.dataset.turn)));
listenIn(FIND_BUTTON, "click", onFindOpen);
listen("keydown", onFindKey, true);
listen("focusin input", onFinding, false);
