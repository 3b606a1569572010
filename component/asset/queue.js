// Messages that wait their turn: shown below the running answer, edited and taken back there, sent when it ends.
const TRY_MILLISECONDS = 5000;

const queue = Object.assign(document.createElement("div"), { className: "waiting", role: "group" });
const queueNote = queue.appendChild(Object.assign(document.createElement("div"), { role: "status" }));
const tried = new Map(); // when a message was last refused as the chat was busy, by its id
let edited = null;

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
    change(id, { waits: reasonToWait(session, outbox.slice(0, index)) });
    sendOutbox();
  });
  const due = outbox.find((message, index) => isDue(message, outbox.slice(0, index)));
  if (due) sendNow(due, true);
  drawQueue();
}

// Of another chat nothing is known here: it is tried. After a failed answer a message waits for a click; to calls that
// ask first it would be a no.
function isDue({ id, session, text, waits }, before) {
  if (waits !== "turn" || edited === id || before.some((message) => message.session === session)) return false;
  if (performance.now() - (tried.get(id) ?? -Infinity) < TRY_MILLISECONDS) return false;
  const turn = turnOf(session);
  return turn === null ? !text.startsWith("/") : !["running", "asking", "failed"].includes(turn);
}

function sendNow({ id, text, session }, isQueued) {
  change(id, { waits: "", is_queued: isQueued });
  if (session === draft.session) showPending(text.trim(), id);
  sendOutbox();
}

function drawQueue() {
  const chat = document.querySelector(CHAT);
  const shown = chat ? outbox.filter(({ session, waits }) => waits && session === draft.session) : [];
  if (!shown.length) return queue.remove();
  const isHeld = turnOf(draft.session) === "failed";
  // What hasn't changed stays where it is: a text that is being edited would lose the focus and what was written.
  const bubbles = shown.map((message, index) => drawnBubble(message, isHeld && index === 0));
  [...queue.children].forEach((part) => part === queueNote || bubbles.includes(part) || part.remove());
  bubbles.forEach((bubble, index) => bubble.parentElement === queue || queue.insertBefore(bubble, queue.children[index]));
  const note = isHeld ? words.queue.held : words.queue.waits;
  if (queueNote.textContent !== note) queueNote.textContent = note;
  if (!queue.isConnected) chat.append(Object.assign(queue, { ariaLabel: words.queue.name }));
  const field = queue.querySelector("textarea:not(:focus)");
  field?.focus();
  field?.setSelectionRange(field.value.length, field.value.length);
}

function drawnBubble({ id, text, files }, isHeld) {
  const isEdited = edited === id;
  const drawing = JSON.stringify(isEdited ? [id] : [id, text, files, isHeld, words.language]);
  const drawn = [...queue.children].find((part) => part.drawing === drawing);
  if (drawn) return drawn;
  const bubble = Object.assign(document.createElement("div"), { drawing });
  const content = document.createElement(isEdited ? "textarea" : "p");
  content[isEdited ? "value" : "textContent"] = files && !isEdited ? `📎 ${text}` : text;
  if (isEdited) content.ariaLabel = words.queue.edit;
  const choices = isEdited ? [] : [...(isHeld ? ["send"] : []), "edit", "back"];
  bubble.innerHTML = choices
    .map((choice) => [choice, choice === "back" ? "close" : choice, words.queue[choice]])
    .map(([choice, icon, name]) => `<button data-queue="${choice}" data-id="${id}" data-icon="${icon}" title="${name}"></button>`)
    .join("");
  bubble.append(content);
  return bubble;
}

function onQueue(button) {
  const message = outbox.find(({ id }) => id === button.dataset.id);
  if (!message?.waits) return;
  if (button.dataset.queue === "send") sendNow(message, false);
  else if (button.dataset.queue === "edit") edited = message.id;
  else takeBack(message);
  drawQueue();
}

function takeBack(message) {
  setOutbox(outbox.filter(({ id }) => id !== message.id));
  askServer("taken_back", message.id);
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

function onQueueBlur({ target }) {
  const isLeft = edited && target !== document.activeElement; // and not the whole window
  if (isLeft && target.matches(".waiting textarea")) endEditing(target.value);
}

function endEditing(text) {
  const id = edited;
  edited = null;
  if (text.trim()) change(id, { text });
  drawQueue();
}

listenIn("button[data-queue]", "click", onQueue);
listen("keydown", onQueueKey, true);
listen("focusout", onQueueBlur, false);
