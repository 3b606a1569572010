// Tells the server which plain button was pressed, with what the button says of itself (component/press_button.py).
// All of a moment go out again with the last one: of two requests that wait for the server, Streamlit drops the first.
// It may have done some of them, and knows each by its time.
const MOMENT_MILLISECONDS = 10000;

let presses = [];

export default function ({ setTriggerValue }) {
  const onPress = (event) => {
    const button = event.target.closest?.("button[data-press]");
    if (!button) return;
    // The second click of a double one would make another branch: the address may still name the chat that is left.
    if (button.dataset.press === "branch" && event.detail > 1) return;
    const at = performance.timeOrigin + performance.now();
    presses = presses.filter((other) => at - other.at < MOMENT_MILLISECONDS).concat({ ...button.dataset, at });
    setTriggerValue("pressed", presses);
  };
  document.addEventListener("click", onPress);
  document.documentElement.toggleAttribute("data-hears", true);
  return () => {
    document.documentElement.toggleAttribute("data-hears", false);
    document.removeEventListener("click", onPress);
  };
}
