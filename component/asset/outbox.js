// Sends what was typed, and keeps it until the server says that it has it or gives it back: a request may be lost.
const HEARD = "i.heard";
const OUTBOX = "turnfold_outbox";
const ID_BYTES = 12;
const LOOK_MILLISECONDS = 50;
const AGAIN_MILLISECONDS = 3000;
// Streamlit sends what is set at once as one request, which is for one part of the page.
const APART_FROM_WIDGETS_MILLISECONDS = 10;

// Each has an id of its own, so that sending it again changes nothing, and the session that it was typed in. A new chat
// takes the id of its first message.
let outbox = JSON.parse(sessionStorage.getItem(OUTBOX) ?? "[]");
let begun = null;
let looking = null;
let askedAt = 0;

function newId() {
  // `randomUUID` is offered in secure contexts only.
  return [...crypto.getRandomValues(new Uint8Array(ID_BYTES))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function setOutbox(messages) {
  outbox = messages;
  if (!outbox.length) return sessionStorage.removeItem(OUTBOX);
  try {
    sessionStorage.setItem(OUTBOX, JSON.stringify(outbox));
  } catch {
    // Its storage is full, of drafts: the message is sent all the same, and only a reload would lose it.
  }
}

function putOut(text, session, hasFiles) {
  const id = newId();
  if (session === "") begun ??= id;
  setOutbox([...outbox, { id, text, session: session || begun, is_new: session === "", has_files: hasFiles }]);
  sendOutbox();
  return id;
}

function isOut(id) {
  return outbox.some((message) => message.id === id);
}

function sendOutbox() {
  if (!outbox.length) return;
  askedAt = performance.now();
  setTimeout(() => askServer("sent", outbox), APART_FROM_WIDGETS_MILLISECONDS);
  looking ??= setInterval(lookAtOutbox, LOOK_MILLISECONDS);
}

function lookAtOutbox() {
  const heard = document.querySelector(HEARD)?.dataset;
  const isIn = (ids, message) => ids?.split(" ").includes(message.id);
  const refused = outbox.filter((message) => isIn(heard?.refused, message));
  const isOpen = (message) => !refused.includes(message) && !isIn(heard?.taken, message);
  if (!outbox.every(isOpen)) setOutbox(outbox.filter(isOpen));
  refused.forEach(giveBack);
  if (!outbox.length) {
    clearInterval(looking);
    looking = null;
  } else if (performance.now() - askedAt > AGAIN_MILLISECONDS) {
    sendOutbox();
  }
}

function giveBack(message) {
  if (pending?.id === message.id) removePending();
  if (begun === message.id) begun = null;
  const isHere = message.session === draft.session || (message.is_new && draft.session === "");
  const field = isHere ? document.querySelector(FIELD) : null;
  const key = draftKey(message.is_new ? "" : message.session);
  // What was typed meanwhile stays, behind it.
  const text = [message.text, field ? field.value : sessionStorage.getItem(key)].filter(Boolean).join("\n");
  if (field) setField(field, text);
  else sessionStorage.setItem(key, text);
}
