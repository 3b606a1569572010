// Browser features that Streamlit has no widget for: language, copy buttons, the focus key, clicks on moving elements.
const YEAR_SECONDS = 31536000;
const PRESSABLE = "button, summary, a[href], [role='menuitem']";
const STILL_PIXELS = 4;
const NARROW_PIXELS = 768;
const CHOICE = [".st-key-new_chat", "[class*='st-key-session_']", "[class*='st-key-found_']"]
  .map((chooser) => `${chooser} button`).join();
const ROW = ":is([class*='st-key-row_session_'], [class*='st-key-open_session_'])";
const RELOAD_MILLISECONDS = 10000;

// Streamlit calls the exported function whenever its data changes, so state that must persist is kept here.
let words = {};
let press = null;
const LISTENERS = [];

function listen(types, ...how) {
  types.split(" ").forEach((type) => LISTENERS.push([type, ...how]));
}

// Calls `act` with the part that an event is in, and the event.
function listenIn(selector, types, act, isCaptured = false) {
  const hear = (event) => {
    const part = event.target.closest?.(selector);
    if (part) act(part, event);
  };
  listen(types, hear, isCaptured);
}

function keyOf(element) {
  return [...element.classList].find((name) => name.startsWith("st-key-"));
}

function setCookie(name, value) {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${value}; path=/; max-age=${YEAR_SECONDS}; samesite=lax${secure}`;
}

async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    return navigator.clipboard.writeText(text);
  }
  // Browsers offer the clipboard API in secure contexts only; over plain http from another machine there is none.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("copy");
}

async function onCopy(button) {
  let said = words.copied;
  try {
    await copy(button.dataset.copy);
    button.classList.add("done");
  } catch {
    said = words.copy_failed;
  }
  const label = button.getAttribute("aria-label");
  button.setAttribute("aria-label", said);
  button.title = said;
  setTimeout(() => {
    button.classList.remove("done");
    button.setAttribute("aria-label", label);
    button.title = label;
  }, 1500);
}

// Counts what is typed; the server hears of it once the field is left, for which a dialog that closes doesn't wait.
function countTyped() {
  document.querySelectorAll("[data-count]").forEach((count) => {
    const field = count.closest("[class*='st-key-counted_']").querySelector("textarea");
    const text = [...(field?.value.trim() ?? "")].length.toLocaleString("en-US");
    if (field && count.textContent !== text) count.textContent = text;
  });
}

function onLeave(event) {
  if (event.key === "Escape" && event.target.closest?.("[class*='st-key-counted_']")) event.target.blur();
}

function onKey(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable='true'], [role='dialog']")) return;
  const field = document.querySelector(".st-key-ask textarea");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

// Closes the panel over the chat; and an open dialog though the focused element was removed, and the focus lost.
function onEscape(event) {
  if (event.key !== "Escape" || event.isComposing || event.target.ariaExpanded === "true") return;
  const closing = `[role='dialog'] :is([aria-label='${words.names.Close}'], .close-panel)`;
  const close = [...document.querySelectorAll(closing)].at(-1);
  if (!close || (event.target !== document.body && !event.target.closest?.(PANEL))) return;
  event.stopImmediatePropagation(); // and doesn't stop the answer
  close.click();
}

// A browser sends a click only if press and release hit the same element. When the page moves or redraws the button in
// between, the click goes to a common ancestor or is lost. These two listeners deliver it to the pressed button.
function onPress(event) {
  document.querySelectorAll("details.about[open]").forEach((about) => (about.open = about.contains(event.target)));
  const button = event.button === 0 ? event.target.closest?.(PRESSABLE) : null;
  const keyed = button?.closest("[class*='st-key-']");
  const key = keyed && keyOf(keyed);
  press = button ? { button, key, x: event.clientX, y: event.clientY } : null;
}

// Plain buttons in one group differ in these attributes.
function isSame(other, button) {
  return ["press", "message", "to", "queue", "id"].every((name) => other.dataset[name] === button.dataset[name]);
}

function onRelease(event) {
  if (!press || Math.hypot(event.clientX - press.x, event.clientY - press.y) > STILL_PIXELS) {
    press = null;
  } else if (event.type === "click") {
    const { button } = press;
    press = null;
    if (!button.isConnected || button.contains(event.target)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    button.click();
  } else if (!press.button.isConnected && event.pointerType === "mouse") {
    // For a mouse the browser sends no click in this case; for touch it does, to the new element.
    const inside = press.key ? [...document.querySelectorAll(`.${CSS.escape(press.key)} :is(${PRESSABLE})`)] : [];
    const redrawn = inside.filter((other) => isSame(other, press.button));
    press = null;
    if (redrawn.length === 1) redrawn[0].click();
  }
}

// On a narrow page the sidebar covers the selected chat.
function uncover() {
  if (innerWidth > NARROW_PIXELS) return;
  document.querySelector("[data-testid='stSidebarCollapseButton'] button")?.click();
}

// An icon button gets its label as a tooltip; Streamlit's own tooltip would draw each button twice.
function onHover(button) {
  const label = button.querySelector("[data-testid='stMarkdownContainer']");
  const model = button.closest(".st-key-model_menu") && document.querySelector(".gauge")?.dataset.model;
  if (label) button.title = model || label.textContent; // the menu's own label may be cut
}

// Each chat is one tab stop; its menu becomes the next one while the chat has the focus.
function onRowFocus(event) {
  const row = event.target.closest?.(ROW);
  document.querySelectorAll(`${ROW} [class*='st-key-menu_'] button`).forEach((menu) => {
    menu.tabIndex = row?.contains(menu) ? 0 : -1;
  });
}

listenIn(":is([class*='st-key-icon_'], .st-key-theme, .st-key-model_menu) button", "pointerover focusin", onHover);
listen("pointerdown", onPress, true);
listen("pointerup click", onRelease, true);
listenIn("button[data-copy]", "click", onCopy);
listenIn(CHOICE, "click", uncover);
listen("focusin", onRowFocus, false);
listen("input", countTyped, false);
listen("keydown", onLeave, true);
listen("keydown", onKey, false);
listen("keydown", onEscape, true);

// Streamlit's page stays blank after an update that doesn't fit the drawn elements. Turns, settings and drafts are
// stored elsewhere, so a reload restores the chat.
function onError() {
  setTimeout(() => {
    const reloadedAt = Number(sessionStorage.getItem("turnfold_reloaded_at") ?? 0);
    if (document.querySelector("[data-testid='stApp']") || Date.now() - reloadedAt < RELOAD_MILLISECONDS) return;
    sessionStorage.setItem("turnfold_reloaded_at", Date.now());
    location.reload();
  });
}

window.addEventListener("error", onError);

let openSession = null;
let opened = 0;
let landing = 0;
// Streamlit may call the function again before it runs the cleanup returned by the previous call.
let mounted = 0;

export default function ({ data }) {
  words = data;
  document.documentElement.lang = data.language;
  document.documentElement.toggleAttribute("data-listens", true);
  if (data.cookie) setCookie(data.cookie, data.language);
  setTheme(data.theme, data.theme_cookie);
  LISTENERS.forEach((listener) => document.addEventListener(...listener));
  markPopovers();
  document.querySelector("[data-testid='stSkipToContent']")?.replaceChildren(words.skip); // Streamlit's own is English
  panelRoom.observe(document.querySelector(SCROLLER));
  pageResize.disconnect();
  document.querySelectorAll(SIZED).forEach((part) => pageResize.observe(part));
  const attributeFilter = ["class", "aria-disabled", "aria-valuetext", "disabled", CONNECTION];
  titleChange.observe(document.head, { subtree: true, childList: true, characterData: true });
  pageChange.observe(document.body, { subtree: true, childList: true, attributeFilter });
  if (openSession === null) {
    beginVisit(data.visitor);
    goBack();
    sendOutbox(); // the page was left before everything was sent
  }
  const isOther = data.session !== openSession;
  // A user who opens a chat and returns at once is in the same chat, perhaps without a call in between.
  if (isOther || data.opened !== opened) waitFor(() => document.querySelector(FIELD), (field) => openDraft(data.session, field));
  if (isOther) scrollToEnd();
  if (isOther) find.turn = focused = opener = null;
  if (isOther && openSession && data.session) uncover(); // a branch or an imported chat
  openSession = data.session;
  opened = data.opened;
  if (data.landing !== landing) {
    landing = data.landing;
    goToTurn(data.turn);
  }
  const mount = ++mounted;
  return () => {
    if (mount === mounted) LISTENERS.forEach((listener) => document.removeEventListener(...listener));
  };
}
