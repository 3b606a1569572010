// Messages that wait their turn: shown below the running answer, edited and taken back there, sent when it ends.
const TRY_MILLISECONDS = 5000;

const queue = Object.assign(document.createElement("div"), { className: "waiting", role: "group" });
const tried = new Map(); // when a message was last refused as the chat was busy, by its id
let edited = null;
let drawnQueue = "";

function turnOf(session) {
  const heard = document.querySelector(HEARD)?.dataset;
  return heard?.session === session ? heard.turn : null;
}

function reasonToWait(session, before) {
  if (isReading()) return "files";
  return turnOf(session) === "running" || before.some((message) => message.session === session) ? "turn" : "";
}

function change(id, changes) {
  setOutbox(outbox.map((message) => (message.id === id ? { ...message, ...changes } : message)));
}

function moveQueue() {
  outbox.forEach(({ id, session, waits }, index) => {
    if (waits !== "files" || isReading()) return;
    change(id, { waits: reasonToWait(session, outbox.slice(0, index)), has_files: hasKept() });
    sendOutbox();
  });
  const due = outbox.find((message, index) => isDue(message, outbox.slice(0, index)));
  if (due) sendNow(due, true);
  drawQueue();
}

// Of another chat nothing is known here: it is tried. After a failed answer a message waits for a click.
function isDue({ id, session, text, waits }, before) {
  if (waits !== "turn" || edited === id || before.some((message) => message.session === session)) return false;
  if (performance.now() - (tried.get(id) ?? -Infinity) < TRY_MILLISECONDS) return false;
  const turn = turnOf(session);
  return turn === null ? !text.startsWith("/") : turn !== "running" && turn !== "failed";
}

function sendNow({ id, text, session }, isQueued) {
  change(id, { waits: "", is_queued: isQueued });
  if (session === draft.session) showPending(text.trim(), id);
  sendOutbox();
}

function drawQueue() {
  const chat = document.querySelector(CHAT);
  const shown = chat ? outbox.filter(({ id, session }) => session === draft.session && id !== pending?.id) : [];
  const isHeld = turnOf(draft.session) === "failed";
  const drawing = JSON.stringify([shown.map(({ id, text, waits }) => [id, text, waits]), isHeld, edited]);
  if (drawing === drawnQueue && queue.isConnected === shown.length > 0) return;
  drawnQueue = drawing;
  if (!shown.length) return queue.remove();
  const note = document.createElement("div");
  note.role = "status";
  note.textContent = isHeld ? words.queue.held : words.queue.waits;
  queue.ariaLabel = words.queue.name;
  queue.replaceChildren(...shown.map((message, index) => bubbleOf(message, isHeld && index === 0)), note);
  if (!queue.isConnected) chat.append(queue);
  const field = queue.querySelector("textarea");
  field?.focus();
  field?.setSelectionRange(field.value.length, field.value.length);
}

function bubbleOf({ id, text, waits }, isHeld) {
  const bubble = document.createElement("div");
  const isEdited = edited === id;
  const content = document.createElement(isEdited ? "textarea" : "p");
  content[isEdited ? "value" : "textContent"] = text;
  if (isEdited) content.ariaLabel = words.queue.edit;
  const choices = waits && !isEdited ? [...(isHeld ? ["send"] : []), "edit", "back"] : [];
  const buttons = choices.map((choice) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "press", title: words.queue[choice], ariaLabel: words.queue[choice] });
    Object.assign(button.dataset, { queue: choice, id, icon: { edit: "edit", back: "close", send: "send" }[choice] });
    return button;
  });
  bubble.append(...buttons, content);
  return bubble;
}

function onQueue(event) {
  const button = event.target.closest?.("button[data-queue]");
  const message = button && outbox.find(({ id }) => id === button.dataset.id);
  if (!message?.waits) return;
  if (button.dataset.queue === "send") sendNow(message, false);
  else if (button.dataset.queue === "edit") edited = message.id;
  else takeBack(message);
  drawQueue();
}

function takeBack(message) {
  setOutbox(outbox.filter(({ id }) => id !== message.id));
  if (message.has_files) askServer("taken_back", message.id);
  giveBack(message);
  document.querySelector(FIELD)?.focus();
}

function onQueueKey(event) {
  if (event.target.parentElement?.parentElement !== queue || event.target.tagName !== "TEXTAREA") return;
  const isEnter = event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229;
  if (!isEnter && event.key !== "Escape") return;
  event.preventDefault();
  event.stopImmediatePropagation(); // Escape doesn't stop the answer
  endEditing(isEnter ? event.target.value : "");
}

function onQueueBlur(event) {
  if (edited && event.target.closest?.(".waiting textarea")) endEditing(event.target.value);
}

function endEditing(text) {
  const id = edited;
  edited = null;
  if (text.trim()) change(id, { text });
  drawQueue();
}

listen("click", onQueue, false);
listen("keydown", onQueueKey, true);
listen("focusout", onQueueBlur, false);
