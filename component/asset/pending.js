// Shows a message at once in its turn's place, until the server has committed or refused it.
const CHAT = ".st-key-chat";
const BEFORE_PENDING = "data-before-pending";
const PENDING_CHARS = 2000;

let pending = null;

// A turn and its bubble may be drawn before the text; the bubble's hidden icon is text, too.
function hasQuestion(turn) {
  return Boolean(turn.querySelector("[data-testid='stChatMessageContent']")?.textContent);
}

function lastTurnNumber() {
  const turns = [...document.querySelectorAll(TURN)].filter(hasQuestion);
  return Math.max(0, ...turns.map((turn) => Number(turn.className.match(/st-key-turn_(\d+)/)[1])));
}

function showPending(text, id) {
  const container = document.querySelector(`${CHAT}, .st-key-empty`);
  // Commands have no turn.
  if (!container || !text || pending || text.startsWith("/")) return;
  const bubble = document.createElement("p");
  bubble.className = "pending";
  bubble.ariaHidden = "true"; // screen readers read the turn itself
  bubble.textContent = text.slice(0, PENDING_CHARS);
  pending = { bubble, id, after: lastTurnNumber() };
  container.append(bubble);
  followTurn();
}

function followTurn() {
  const { bubble } = pending;
  if (lastTurnNumber() > pending.after) return removePending();
  // A new chat replaces the empty page first; its turn is drawn a moment later.
  if (!bubble.isConnected) document.querySelector(CHAT)?.append(bubble);
  while (isWithoutWords(bubble.previousElementSibling)) bubble.previousElementSibling.before(bubble);
  // Marked with an attribute: a CSS selector on the message's position would be evaluated for the whole chat at each
  // change.
  document.querySelector("[class*='st-key-last_actions_']")?.toggleAttribute(BEFORE_PENDING, true);
}

// The turn replaces the message, so its parts drawn before the text must not move the message down.
function isWithoutWords(part) {
  if (!part?.matches("[data-testid='stLayoutWrapper']")) return false;
  const turn = part.querySelector(TURN);
  return turn ? !hasQuestion(turn) : !part.textContent;
}

function removePending() {
  pending.bubble.remove();
  for (const row of document.querySelectorAll(`[${BEFORE_PENDING}]`)) row.removeAttribute(BEFORE_PENDING);
  pending = null;
}
