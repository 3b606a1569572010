// Opens and closes the panel: beside the chat where the text has room, else over it.
const PANEL = ".st-key-panel";
const PANEL_OPENER = "button.open-panel";
const RATE = ".st-key-rate input";
const ROOM_REMS = 58.5; // the panel, 32 of text less a scroll bar, and the text's padding
const [PANEL_REMS, LEAST_REMS, MOST_REMS, STEP_REMS] = [23, 18, 44, 1];
const EDGE_KEYS = { ArrowLeft: STEP_REMS, ArrowRight: -STEP_REMS, Home: -MOST_REMS, End: MOST_REMS };

// `width` is the one chosen, in pixels; where the text has no room beside it, the panel is narrower.
const panel = { isOver: null, isOpen: false, opener: null, width: 0 };
const edge = Object.assign(document.createElement("div"), { className: "panel-edge", tabIndex: 0, role: "separator" });
edge.ariaOrientation = "vertical";

function pixelsOf(rems) {
  return rems * parseFloat(getComputedStyle(document.documentElement).fontSize);
}

function widenPanel(width) {
  const room = document.querySelector(SCROLLER)?.offsetWidth - pixelsOf(ROOM_REMS - PANEL_REMS);
  const [least, most] = [pixelsOf(LEAST_REMS), Math.floor(Math.min(pixelsOf(MOST_REMS), room))];
  const now = Math.round(Math.max(least, Math.min(width, most)));
  const { style } = document.documentElement;
  if (panel.isOver) return style.setProperty("--panel-width", `${PANEL_REMS}rem`);
  style.setProperty("--panel-width", `${now}px`);
  Object.assign(edge, { ariaValueMin: least, ariaValueMax: most, ariaValueNow: now, ariaLabel: words.panel_edge });
}

function keepPanelWidth() {
  panel.width = Number(edge.ariaValueNow);
  setCookie(words.panel_width_cookie, panel.width);
}

function onEdge(event) {
  if (event.target !== edge) return;
  event.preventDefault(); // no text is selected
  if (event.type === "pointerdown") edge.setPointerCapture(event.pointerId);
  else if (!edge.hasPointerCapture(event.pointerId)) return;
  else if (event.type === "pointermove") widenPanel(innerWidth - event.clientX);
  else keepPanelWidth();
  if (event.type === "pointerdown") edge.focus({ preventScroll: true });
}

function onEdgeKey(event) {
  const rems = EDGE_KEYS[event.key];
  if (event.target !== edge || !rems || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  widenPanel(Number(edge.ariaValueNow) + pixelsOf(rems));
  keepPanelWidth();
}

function fitPanel() {
  const rem = pixelsOf(1);
  const isOver = document.querySelector(SCROLLER)?.offsetWidth < ROOM_REMS * rem;
  // Only the panel beside the chat is remembered: over the chat it would hide what a page is opened for.
  if (isOver !== panel.isOver) panel.isOpen = !isOver && !document.cookie.includes(`${words.panel_cookie}=closed`);
  panel.isOver = isOver;
  panel.width ||= Number(document.cookie.match(`${words.panel_width_cookie}=(\\d+)`)?.[1]) || PANEL_REMS * rem;
  widenPanel(panel.width);
  showPanel();
}

// Streamlit may draw the panel, or what is around it, anew.
function showPanel() {
  const drawn = document.querySelector(PANEL);
  const isOver = panel.isOpen && panel.isOver;
  const state = isOver ? "over" : panel.isOpen ? "beside" : "closed";
  if (document.documentElement.dataset.panel !== state) {
    document.documentElement.dataset.panel = state;
    markWide(); // what is closed has no width
  }
  if (!drawn) return;
  if (edge.parentElement !== drawn) drawn.prepend(edge);
  drawn.tabIndex = -1;
  drawn.role = isOver ? "dialog" : "region";
  drawn.ariaModal = isOver ? "true" : null;
  drawn.ariaLabel = words.panel;
  for (let part = drawn; part && !part.matches("[data-testid='stApp']"); part = part.parentElement) {
    [...part.parentElement.children].forEach((other) => {
      if (other !== part && !other.matches("[data-testid='stToastContainer']")) other.inert = isOver;
    });
  }
}

// Streamlit tells the server of a slider once it is released; its words follow it from here while it moves.
function showRate() {
  const slider = document.querySelector(RATE);
  if (!slider) return;
  const rate = Number(Number(slider.value).toFixed(2));
  document.querySelectorAll("[data-rate]").forEach((part) => {
    const chars = Math.min(Math.floor(part.dataset.chars * rate), part.dataset.most);
    const summary = Number(chars.toPrecision(2)).toLocaleString("en-US");
    const values = { rate, percent: Math.round(100 * rate), summary };
    const text = part.dataset.rate.replace(/\{(\w+)\}/g, (_, name) => values[name]);
    if (part.textContent !== text) part.textContent = text;
  });
  document.querySelectorAll(".sample[data-begin]").forEach((sample) => {
    sample.hidden = rate < sample.dataset.begin || rate >= sample.dataset.end;
  });
}

function turnPanel(isOpen) {
  panel.isOpen = isOpen;
  if (!panel.isOver) setCookie(words.panel_cookie, isOpen ? "open" : "closed");
  showPanel();
}

function closePanel() {
  turnPanel(false);
  // The opener may be gone, or in a sidebar closed since.
  [panel.opener, document.querySelector(`.st-key-open_panel ${PANEL_OPENER}`)].find((button) => {
    button?.focus({ preventScroll: true });
    return button && document.activeElement === button;
  });
}

function uncoverChat() {
  if (panel.isOver && panel.isOpen) closePanel();
}

function openPanel(button) {
  panel.opener = button;
  turnPanel(true);
  const drawn = document.querySelector(PANEL);
  drawn?.focus({ preventScroll: true });
  if (!button.dataset.to) return;
  uncover();
  const find = () => drawn.querySelector(button.dataset.to);
  const light = (found) => {
    found.focus();
    mark([found.closest(".st-key-panel_head")]);
  };
  whenReady(find, light, find() ? null : () => drawn.querySelector("[role='tab']").click());
}

// All but the panel and what it is in is inert, so a press beside it is on what it is in.
function onBesidePanel(event) {
  const drawn = document.querySelector(PANEL);
  if (!panel.isOver || event.target === drawn || !event.target.contains?.(drawn)) return;
  event.preventDefault(); // it would take the focus
  uncoverChat();
}

const panelRoom = new ResizeObserver(fitPanel);
listenIn("button.close-panel", "click", closePanel);
listenIn(PANEL_OPENER, "click", openPanel);
listen("mousedown", onBesidePanel, false);
listen("pointerdown pointermove pointerup", onEdge, false);
listen("keydown", onEdgeKey, false);
