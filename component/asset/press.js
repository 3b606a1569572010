// Tells the server which plain button was pressed, with what the button says of itself (component/turn_buttons.py), until
// it says that it has heard it: a request may be lost, and of two that wait for the server, Streamlit drops the first.
// The server may have done some of them, and knows each by its time.
const MOMENT_MILLISECONDS = 30000;
const AGAIN_MILLISECONDS = 3000;

let presses = [];
let again = null;
let tellServer = null;
// Streamlit calls the function anew without taking away what the call before left, or takes it away afterwards.
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
  // The second click of a double one would make another branch: the address may still name the chat that is left.
  if (button.dataset.press === "branch" && event.detail > 1) return;
  presses.push({ ...button.dataset, at: now() });
  tell();
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
