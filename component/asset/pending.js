// Shows a message at once where its turn will stand, until the server has committed it or has given it back.
const CHAT = ".st-key-chat";
const PENDING_MILLISECONDS = 10000;
const PENDING_CHARS = 2000;

let pending = null;

function lastTurnNumber() {
  const numbers = [...document.querySelectorAll(TURN)].map((turn) => Number(turn.className.match(/st-key-turn_(\d+)/)[1]));
  return Math.max(0, ...numbers);
}

function isAnswering() {
  const last = [...document.querySelectorAll(TURN)].at(-1);
  return last !== undefined && !last.querySelector("[class*='st-key-last_actions_']");
}

function showPending(text, id) {
  const chat = document.querySelector(CHAT);
  // Commands have no turn, and a busy session gives the message back.
  if (!chat || !text || pending || text.startsWith("/") || isAnswering()) return;
  const bubble = document.createElement("p");
  bubble.className = "pending";
  bubble.ariaHidden = "true"; // the turn itself is read out
  bubble.textContent = text.slice(0, PENDING_CHARS);
  const observer = new MutationObserver(endPending);
  pending = { bubble, observer, id, after: lastTurnNumber(), until: performance.now() + PENDING_MILLISECONDS };
  chat.append(bubble);
  // Before the browser paints it, so that the message is never seen twice.
  observer.observe(chat, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
  requestAnimationFrame(watchPending);
}

function watchPending() {
  if (!pending) return;
  endPending();
  if (!pending) return;
  const isOver = performance.now() > pending.until && !isOut(pending.id);
  if (isOver || !pending.bubble.isConnected) removePending();
  else requestAnimationFrame(watchPending);
}

function endPending() {
  if (pending && lastTurnNumber() > pending.after) removePending();
}

function removePending() {
  pending.observer.disconnect();
  pending.bubble.remove();
  pending = null;
}
