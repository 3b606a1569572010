// Sends typed messages and presses of plain buttons (component/turn_buttons.py), and keeps each until the server has
// heard it: of two requests that wait for a run Streamlit drops the first, and a lost connection takes what is on its
// way. A message that waits its turn (queue.js) stays here meanwhile; the server is told of it once, to keep its files
// apart and to begin no summary before it.
const HEARD = "i.heard";
const OUTBOX = "turnfold_outbox";
const ID_BYTES = 12;
const LOOK_MILLISECONDS = 50;
const AGAIN_MILLISECONDS = 3000;
const MOMENT_MILLISECONDS = 30000;

// Each message has an id, which makes repeats idempotent, and the session it was typed in. A new chat's session id is
// the id of its first message.
let outbox = JSON.parse(sessionStorage.getItem(OUTBOX) ?? "[]");
let begun = null;
let presses = []; // recognised by their time when they come again
let looking = null;
let askedAt = 0;

function setOutbox(messages) {
  outbox = messages;
  if (!outbox.length) return sessionStorage.removeItem(OUTBOX);
  try {
    sessionStorage.setItem(OUTBOX, JSON.stringify(outbox));
  } catch {
    // The storage is full of drafts: the message is sent anyway, and lost only on a reload.
  }
}

function putOut(text, typedFor) {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES)); // `randomUUID` needs a secure context
  const id = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (typedFor === "") begun ??= id;
  const session = typedFor || begun;
  const waits = text.trim().toLowerCase() === "/help" ? "" : reasonToWait(session, outbox);
  const last = (isReading() ? unreadCount : 0) + readCount; // files that are chosen from now on are for the next
  const files = (isReading() || hasKept()) && !outbox.some((before) => before.files >= last && !before.tries) ? last : 0;
  setOutbox([...outbox, { id, text, session, is_new: typedFor === "", files, waits, is_queued: false, tries: 0 }]);
  if (!waits) showPending(text.trim(), id);
  sendOutbox();
  drawQueue();
}

function now() {
  return performance.timeOrigin + performance.now();
}

function onPlainPress(button) {
  presses = [...presses, { ...button.dataset, at: now() }];
  sendOutbox();
}

function sendOutbox() {
  if (outbox.length || presses.length) looking ??= setInterval(lookAtOutbox, LOOK_MILLISECONDS);
  const messages = outbox
    .filter(({ waits, tries }) => !waits || (waits === "turn" && !tries))
    .map((message) => ({ ...message, behind: outbox.filter(({ session, waits }) => waits && session === message.session).length }));
  if (!globalThis.turnfoldAsk || (!messages.length && !presses.length)) return;
  askedAt = performance.now();
  askServer("sent", { messages, presses });
}

function lookAtOutbox() {
  const heard = document.querySelector(HEARD)?.dataset;
  presses = presses.filter(({ at }) => at > Number(heard?.pressed ?? 0) && now() - at < MOMENT_MILLISECONDS);
  const isIn = (ids, message) => ids?.split(" ").includes(message.id);
  const refused = outbox.filter((message) => isIn(heard?.refused, message));
  const isOpen = (message) => !refused.includes(message) && !isIn(heard?.taken, message);
  if (!outbox.every(isOpen)) setOutbox(outbox.filter(isOpen));
  refused.forEach(giveBack);
  outbox.filter(({ id, tries }) => heard?.waiting.split(" ").includes(`${id}.${tries}`)).forEach(({ id, waits, tries }) => {
    if (pending?.id === id) removePending();
    if (!waits) tried.set(id, performance.now());
    change(id, { waits: "turn", tries: tries + 1 });
  });
  moveQueue();
  if (!outbox.length && !presses.length) {
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
  // Text typed meanwhile is appended.
  const text = [message.text, field ? field.value : sessionStorage.getItem(key)].filter(Boolean).join("\n");
  if (field) setField(field, text);
  else sessionStorage.setItem(key, text);
}

listenIn("button[data-press]", "click", onPlainPress);
