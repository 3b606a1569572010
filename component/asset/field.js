// The message field: focuses it and stores a draft for each session.
const FIELD = ".st-key-ask textarea";
const CONNECTION = "data-test-connection-state";

// `early`: the session already in the URL, if the field's text was typed for it.
const draft = { session: null, early: null };

function draftKey(session) {
  return `turnfold_draft_${session}`;
}

function keepDraft(text) {
  const session = draft.early ?? draft.session;
  if (session === null) return;
  if (text) sessionStorage.setItem(draftKey(session), text);
  else sessionStorage.removeItem(draftKey(session));
}

function setField(field, text) {
  // React notices a new value only if React's own setter is bypassed.
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, text);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function focusField(field, isAsked = false) {
  const isFree = document.activeElement === document.body || (isAsked && !document.activeElement?.matches("input, textarea"));
  // On a touch screen, focus would open the keyboard.
  if (isFree && matchMedia("(hover: hover)").matches && !document.querySelector("[role='dialog']")) {
    field?.focus({ preventScroll: true });
  }
}

function onInput(event) {
  if (!event.target.matches?.(FIELD)) return;
  const text = event.target.value;
  // Another chat is being opened and already in the URL: text typed now is for it. Sending also empties the field,
  // hence the check for text.
  if (text && sessionInAddress() !== draft.session) draft.early = sessionInAddress();
  keepDraft(text);
}

function sessionInAddress() {
  return new URLSearchParams(location.search).get("session") ?? "";
}

function onSend(event) {
  const field = document.querySelector(FIELD);
  if (!field || draft.session === null) return;
  if (!field.value.trim() && !isReading() && !hasKept()) return;
  const isEnter = event.type === "keydown" && event.target === field && event.key === "Enter";
  const isPlain = !event.shiftKey && !event.ctrlKey && !event.metaKey;
  const isClick = event.type === "click" && event.target.closest?.(".st-key-ask [data-testid='stChatInputSubmitButton']");
  if (!(isEnter && isPlain) && !isClick) return;
  // Streamlit would send the message, too, and may lose it.
  event.stopPropagation();
  // An Enter that ends an IME composition; browsers without `isComposing` report the code 229.
  if (event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  const text = field.value;
  setField(field, "");
  putOut(text, draft.early ?? draft.session);
  scrollToEnd();
}

function openDraft(session, field) {
  const hasBegun = begun !== null && session === begun;
  // The user may have typed before this script ran.
  const isEarly = draft.early === session || (draft.session === null && field.value !== "");
  if (!hasBegun && pending) removePending();
  begun = null;
  const isAsked = draft.session !== null && !hasBegun;
  Object.assign(draft, { session, early: null });
  const kept = sessionStorage.getItem(draftKey(session)) ?? "";
  // The session was created by the new chat's first message: the field's text was typed since.
  if (hasBegun || isEarly) keepDraft(field.value);
  else if (field.value !== kept) setField(field, kept);
  focusField(field, isAsked);
}

// While the server is away the style sheet shows the page's own sentence.
function onConnection() {
  if (document.querySelector(`[data-testid='stApp'][${CONNECTION}='CONNECTED']`)) return;
  // Streamlit disables every widget: nothing could be written meanwhile, and what is sent stays in the outbox.
  const field = document.querySelector(FIELD);
  if (field?.disabled) field.disabled = false;
  // Its dialog is in English, and about Streamlit; closed once, it doesn't come again before the next loss.
  const dialog = [...document.querySelectorAll("[role='dialog']")].find((one) => one.textContent.startsWith("Connection error"));
  dialog?.querySelector("[aria-label='Close']")?.click();
}

listen("input", onInput, false);
listen("keydown click", onSend, true);
