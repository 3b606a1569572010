// Keeps the user's choice of tabs and expanders: Streamlit sets them by the server's answer, even if it is the answer
// to an earlier choice, and then reports that state to the server.
const TABS = ".stTabs";
const TAB = "[role='tab']";
const BOX = ".stExpander";
const BOX_CONTENT = "[data-testid='stExpanderDetails']";
const KEPT_MILLISECONDS = 10000;

// By key of the tabs or expander: the open tab's label or the open state, and until when it is kept.
const toggled = new Map();
let isRepeating = false;
let focusedTab = null;

function keyOf(element) {
  return [...element.classList].find((name) => name.startsWith("st-key-"));
}

function isOpen(box) {
  return !box.querySelector(BOX_CONTENT)?.inert;
}

function onToggle(event) {
  if (isRepeating) return;
  const tab = event.target.closest?.(TAB);
  const box = event.target.closest?.("summary")?.closest(BOX);
  if (tab) keep(tab.closest(TABS), tab.textContent);
  else if (box) keep(box.parentElement, !isOpen(box));
}

function onTabKey(event) {
  const tab = event.target.closest?.(TAB);
  if (!tab || event.ctrlKey || event.metaKey || event.altKey) return;
  const tabs = [...tab.closest(TABS).querySelectorAll(TAB)];
  const index = tabs.indexOf(tab);
  const next = { ArrowLeft: index - 1, ArrowRight: (index + 1) % tabs.length, Home: 0, End: -1 }[event.key];
  if (next !== undefined) keep(tab.closest(TABS), tabs.at(next).textContent);
}

function keep(keyed, wanted) {
  const key = keyOf(keyed);
  if (!key) return;
  toggled.set(key, { wanted, until: performance.now() + KEPT_MILLISECONDS });
  // Runs before the next paint, so that an answer at the same moment as the choice has no visible effect.
  requestAnimationFrame(repeatToggles);
}

function repeatToggles() {
  toggled.forEach(({ wanted, until }, key) => {
    if (performance.now() > until) toggled.delete(key);
    else if (typeof wanted === "string") repeatTab(key, wanted);
    else repeatBox(key, wanted);
  });
}

function repeatTab(key, label) {
  const tabs = [...document.querySelectorAll(`.${CSS.escape(key)} ${TAB}`)];
  const tab = tabs.find((one) => one.textContent === label);
  if (tab && tab.ariaSelected !== "true") repeat(tab);
}

function repeatBox(key, isWanted) {
  const box = document.querySelector(`.${CSS.escape(key)} > ${BOX}`);
  if (box && isOpen(box) !== isWanted) repeat(box.querySelector("summary"));
}

function repeat(part) {
  const focused = document.activeElement;
  isRepeating = true;
  part.click();
  isRepeating = false;
  // Typing goes on in its field.
  if (focused?.matches("input, textarea")) focused.focus({ preventScroll: true });
  else if (focused?.matches(TAB) && part.matches(TAB)) part.focus({ preventScroll: true });
}

function onTabFocus(event) {
  if (event.type === "focusin") focusedTab = event.target.closest?.(TAB) ?? null;
  else if (focusedTab?.hasAttribute("tabindex")) focusedTab = null;
}

function onToggleChange() {
  if (focusedTab?.isConnected && !focusedTab.hasAttribute("tabindex")) {
    focusedTab.tabIndex = 0;
    if (document.activeElement === document.body) focusedTab.focus({ preventScroll: true });
  }
  repeatToggles();
}

// Streamlit disables the tabs until the run has drawn them, and removes the focus with the tabindex.
const TOGGLE_STATES = ["aria-selected", "aria-disabled", "inert"];
const toggleChange = new MutationObserver(onToggleChange);
listen("click", onToggle, true);
listen("keydown", onTabKey, true);
listen("focusin", onTabFocus, false);
listen("focusout", onTabFocus, false);
