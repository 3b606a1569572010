// Keyboard shortcuts, by the key's place: with a Korean layout its letter is another. And the focus of what has closed.
const COMMAND = /Mac|iP/.test(navigator.platform) ? "metaKey" : "ctrlKey";
const SEARCH_FIELD = ".st-key-search input";
const SHORTCUTS = {
  "Command+KeyK": toSearch,
  "Command+Shift+KeyF": openFind,
  "Command+Shift+KeyS": () => (panel.isOpen ? closePanel() : toPanel()),
  "Command+Shift+Semicolon": () => [...document.querySelectorAll(`${TURN} button.copy`)].at(-1)?.click(),
  "Alt+ArrowUp": () => stepQuestion(-1),
  "Alt+ArrowDown": () => stepQuestion(1),
};
// Whatever has the focus for as long as it is open.
const OVER = "[role='dialog']:not(.st-key-panel), [role='menu']";
const PASSING = `${OVER}, [role='listbox'], [data-testid='stForm'], .st-key-find`;
const FOCUSABLE = "button, input, textarea, summary, a[href], [tabindex]";

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
    const field = document.querySelector(SEARCH_FIELD);
    field?.focus();
    return field && field === document.activeElement;
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

function onSkip(event) {
  const to = event.target.closest?.("button[data-skip]")?.dataset.skip;
  if (to === "field") document.querySelector(FIELD)?.focus();
  if (to === "panel") toPanel();
}

// Streamlit's own link is English.
function nameSkip() {
  document.querySelector("[data-testid='stSkipToContent']")?.replaceChildren(words.skip);
}

function onFocus(event) {
  const keyed = event.target.closest("[class*='st-key-']");
  focused = { element: event.target, key: keyed && keyOf(keyed), isPassing: event.target.closest(PASSING) !== null };
  if (!focused.isPassing) opener = focused;
}

function onBlur(event) {
  requestAnimationFrame(() => {
    // The user has pressed beside it.
    if (document.activeElement === document.body && event.target.isConnected) focused = null;
  });
}

// The focus is lost with its element: it goes on to that which is drawn in its place, or to what opened the passing part.
function returnFocus() {
  if (!focused || focused.element.isConnected || document.activeElement !== document.body) return;
  if (document.querySelector(OVER)) return;
  const again = drawnAgain(focused) ?? (focused.isPassing && opener ? drawnAgain(opener) : null);
  again?.focus({ preventScroll: true });
}

function drawnAgain({ element, key }) {
  if (element.isConnected) return element;
  const others = key ? [...document.querySelectorAll(`.${CSS.escape(key)} :is(${FOCUSABLE})`)] : [];
  return others.find((other) => isSame(other, element) && other.textContent === element.textContent && isSeen(other));
}

listen("click", onSkip, false);
listen("keydown", onShortcut, true);
listen("focusin", onFocus, false);
listen("focusout", onBlur, false);
