// While the server is away: the field stays usable, and the style sheet shows the page's own sentence.
const APP = "[data-testid='stApp']";
const CONNECTION = "data-test-connection-state";

function isConnected() {
  return document.querySelector(APP)?.getAttribute(CONNECTION) === "CONNECTED";
}

function onConnection() {
  if (isConnected()) return;
  // Streamlit disables every widget: nothing could be written meanwhile, and what is sent stays in the outbox.
  const field = document.querySelector(FIELD);
  if (field?.disabled) field.disabled = false;
  // Its dialog is in English, and about Streamlit; closed once, it doesn't come again before the next loss.
  const dialog = [...document.querySelectorAll("[role='dialog']")].find((one) => one.textContent.startsWith("Connection error"));
  dialog?.querySelector("[aria-label='Close']")?.click();
}
