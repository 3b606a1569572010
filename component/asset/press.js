// Sends presses of plain buttons with their data attributes (component/turn_buttons.py), until the server confirms
// them: a request may be lost, and of two waiting requests Streamlit drops the first. The server recognises repeated
// presses by their time.
const MOMENT_MILLISECONDS = 30000;
const AGAIN_MILLISECONDS = 3000;
const REDRAW_MILLISECONDS = 10000;

let presses = [];
let again = null;
let tellServer = null;
// Streamlit calls the function again without the cleanup of the previous call, or runs the cleanup later.
let mounted = 0;

function now() {
  return performance.timeOrigin + performance.now();
}

function tell() {
  presses = presses.filter((press) => now() - press.at < MOMENT_MILLISECONDS);
  if (presses.length) tellServer("pressed", presses);
  waitForServer();
}

function waitForServer() {
  clearTimeout(again);
  if (presses.length) again = setTimeout(tell, AGAIN_MILLISECONDS);
}

function onPress(event) {
  const button = event.target.closest?.("button[data-press]");
  if (!button) return;
  // The second click of a double click would make another branch: the URL may still name the chat left by the first.
  if (button.dataset.press === "branch" && event.detail > 1) return;
  presses.push({ ...button.dataset, at: now() });
  tell();
  keepFocus(button);
}

// A press in the list of missing facts has the list drawn anew: the focus goes on to the same button or the next row's,
// and in a turn to the same button, or at the last version to the one that goes back.
function keepFocus(button) {
  const row = button.closest("ul.missing li") ?? button.closest(".turn-buttons");
  if (!row) return;
  const turn = button.closest("[class*='st-key-turn_']");
  const within = turn ? `.${[...turn.classList].find((name) => name.startsWith("st-key-turn_"))}` : "ul.missing";
  const isLike = (other) => other.dataset.press === button.dataset.press;
  const labels = [row, row.nextElementSibling, row.previousElementSibling].flatMap((near) =>
    [...(near?.querySelectorAll("button") ?? [])].filter(isLike).map((other) => other.ariaLabel),
  );
  labels.unshift(button.ariaLabel);
  const until = now() + REDRAW_MILLISECONDS;
  // Not once: the list may be drawn more than one time.
  const look = () => {
    if (!button.isConnected && document.activeElement === document.body) {
      const shown = [...document.querySelectorAll(`${within} button:enabled`)].filter((other) => other.checkVisibility());
      labels.map((label) => shown.find((other) => other.ariaLabel === label)).find(Boolean)?.focus();
    }
    if (now() < until) requestAnimationFrame(look);
  };
  look();
}

export default function ({ data, setTriggerValue }) {
  const mount = ++mounted;
  tellServer = setTriggerValue;
  presses = presses.filter((press) => press.at > data.heard);
  waitForServer();
  document.addEventListener("click", onPress);
  document.documentElement.toggleAttribute("data-hears", true);
  return () => {
    if (mount !== mounted) return;
    document.documentElement.toggleAttribute("data-hears", false);
    document.removeEventListener("click", onPress);
  };
}
