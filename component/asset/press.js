// Tells the server which plain button was pressed, with what the button says of itself (component/press_button.py), until
// it says that it has heard it: a request may be lost, and of two that wait for the server, Streamlit drops the first.
// The server may have done some of them, and knows each by its time.
const MOMENT_MILLISECONDS = 30000;
const AGAIN_MILLISECONDS = 3000;

let presses = [];
let again = null;

export default function ({ data, setTriggerValue }) {
  const now = () => performance.timeOrigin + performance.now();
  const wait = () => {
    clearTimeout(again);
    if (presses.length) again = setTimeout(tell, AGAIN_MILLISECONDS);
  };
  const tell = () => {
    presses = presses.filter((press) => now() - press.at < MOMENT_MILLISECONDS);
    if (presses.length) setTriggerValue("pressed", presses);
    wait();
  };
  const onPress = (event) => {
    const button = event.target.closest?.("button[data-press]");
    if (!button) return;
    // The second click of a double one would make another branch: the address may still name the chat that is left.
    if (button.dataset.press === "branch" && event.detail > 1) return;
    presses.push({ ...button.dataset, at: now() });
    tell();
  };
  presses = presses.filter((press) => press.at > data.heard);
  wait();
  document.addEventListener("click", onPress);
  document.documentElement.toggleAttribute("data-hears", true);
  return () => {
    document.documentElement.toggleAttribute("data-hears", false);
    document.removeEventListener("click", onPress);
  };
}
