// Keyboard shortcuts, by the key's place: with a Korean layout its letter is another. And the focus of what has closed.
const COMMAND = /Mac|iP/.test(navigator.platform) ? "metaKey" : "ctrlKey";
const SEARCH_FIELD = ".st-key-search input";
const SHORTCUTS = {
  "Command+KeyK": toSearch,
  "Command+Shift+KeyF": openFind,
  "Command+Shift+KeyS": () => (panel.isOpen ? closePanel() : toPanel()),
  "Command+Shift+Semicolon": () => [...document.querySelectorAll(`${TURN} button.copy`)].at(-1)?.click(),
  "Command+Shift+Period": quote,
  "Alt+ArrowUp": () => stepQuestion(-1),
  "Alt+ArrowDown": () => stepQuestion(1),
};
const SELECTION = ".st-key-cancel_selection, .st-key-delete_ticked, [class*='st-key-tick_']";
// Whatever has the focus for as long as it is open.
const OVER = "[role='dialog']:not(.st-key-panel), [role='menu']";
const PASSING = `${OVER}, [role='listbox'], [data-testid='stForm'], .st-key-find, ${SELECTION}`;
const FOCUSABLE = "button, input, textarea, summary, a[href], [tabindex]";
const DISABLED_TAB = "[role='tab']:not([tabindex])";
const LASTING = "[class*='st-key-turn_'], .st-key-panel"; // around plain buttons: what is nearer goes with them

// What has the focus, and what had it before a passing part was opened, each with the key of the container around it.
let focused = null;
let opener = null;

function onShortcut(event) {
  if (event.isComposing || event.keyCode === 229 || document.querySelector("[data-testid='stDialog']")) return;
  const held = [event[COMMAND] && "Command", event.altKey && "Alt", event.shiftKey && "Shift", event.code];
  const act = SHORTCUTS[held.filter(Boolean).join("+")];
  // Alt and an arrow open a list of choices.
  if (!act || event.target.closest?.("select, [role='combobox'], [role='menu'], [role='listbox']")) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

function toSearch() {
  document.querySelector("[data-testid='stExpandSidebarButton']")?.click();
  // It can't take the focus before the sidebar is shown.
  const take = () => {
    document.querySelector(SEARCH_FIELD)?.focus();
    return document.activeElement?.matches(SEARCH_FIELD);
  };
  whenReady(take, () => document.activeElement.select());
}

function toPanel() {
  if (panel.isOpen) document.querySelector(PANEL)?.focus({ preventScroll: true });
  else document.querySelector(`.st-key-open_panel ${PANEL_OPENER}`)?.click();
}

function stepQuestion(step) {
  const line = document.querySelector(SCROLLER).getBoundingClientRect().top + TOP_PIXELS;
  const current = Math.max(0, ...turnsAbove(line + NEAR_PIXELS));
  const begins = turnAt(current)?.getBoundingClientRect().top;
  // From within an answer the way up leads to its own question.
  const wanted = step < 0 && begins < line - NEAR_PIXELS ? current : current + step;
  if (wanted > lastTurnNumber()) scrollToEnd();
  else if (wanted > 0) goToTurns(wanted, wanted);
}

function onFocus({ target }) {
  if (target.matches("section[role='dialog']") && !target.contains(focused?.element ?? null)) enterDialog(target);
  const keyed = target.closest(target.dataset.press ? LASTING : "[class*='st-key-']");
  const [isPassing, isByKey] = [target.closest(PASSING) !== null, target.matches(":focus-visible")];
  focused = { element: target, key: keyed && keyOf(keyed), isPassing, isByKey };
  focused.place = likeIt(focused).indexOf(target);
  if (!focused.isPassing) opener = focused;
}

// A dialog that opens takes the focus itself: where a text field comes first, it is to be written in at once.
function enterDialog(dialog) {
  const first = () => dialog.querySelector("[data-testid='stElementContainer']")?.querySelector("input[type='text'], textarea");
  whenReady(first, (field) => {
    field.focus();
    if (field.matches("input")) field.select();
  });
}

function onBlur({ target }) {
  requestAnimationFrame(() => {
    // The user has pressed beside it; what lies over the page fades, and then its opener is to have the focus again.
    const isLeft = document.activeElement === document.body && target.isConnected && focused?.element === target;
    if (isLeft && !target.closest(OVER) && !target.matches(DISABLED_TAB)) focused = null;
  });
}

// The focus is lost with its element: it goes on to that which is drawn in its place, or to what opened the passing
// part. And with a tab, which Streamlit disables until the run that it asked for has drawn all tabs. Whoever uses the
// keyboard is in the message field if nothing of all that comes.
function returnFocus() {
  const lost = focused;
  if (!lost || document.activeElement !== document.body || document.querySelector(OVER)) return;
  if (lost.element.matches(DISABLED_TAB)) lost.element.tabIndex = 0;
  else if (lost.element.isConnected) return;
  const again = drawnAgain(lost) ?? (lost.isPassing && opener ? drawnAgain(opener) : null);
  const goOn = () => lost === focused && focusField(document.querySelector(FIELD));
  if (again) again.focus({ preventScroll: true });
  else if (lost.isByKey) lost.timer ??= setTimeout(waitFor, SETTLE_MILLISECONDS, () => !isDrawing(), goOn);
}

// Of a plain button that went with its press, as a missing fact's or the pager's at its end, the next one's turn comes.
function drawnAgain(lost) {
  const { element, place } = lost;
  if (element.isConnected) return element;
  const others = likeIt(lost).filter((other) => isSeen(other) && !other.disabled);
  const same = others.find((other) => isSame(other, element) && nameOf(other) === nameOf(element));
  if (same || !element.dataset.press) return same;
  return others.find((other) => nameOf(other) === nameOf(element)) ?? others[Math.min(place, others.length - 1)];
}

function likeIt({ element, key }) {
  const near = key ? [...document.querySelectorAll(`.${CSS.escape(key)} :is(${FOCUSABLE})`)] : [];
  return near.filter((other) => other.dataset.press === element.dataset.press);
}

function nameOf(element) {
  return element.dataset.press ? element.ariaLabel : element.textContent;
}

listenIn("button[data-skip='field']", "click", () => document.querySelector(FIELD)?.focus());
listenIn("button[data-skip='panel']", "click", toPanel);
listen("keydown", onShortcut, true);
listen("focusin", onFocus, false);
listen("focusout", onBlur, false);
