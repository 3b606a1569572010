// Makes the requests of the scripts (browser.py), which are too large to be sent again with each of them.
export default function ({ setTriggerValue }) {
  globalThis.turnfoldAsk = setTriggerValue;
}
