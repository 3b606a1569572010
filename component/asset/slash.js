// The list of commands above the message field while it holds the beginning of one.
const SLASH = "ul.slash";
const BEGUN_COMMAND = /^\/\p{L}*$/u;

function markCommand(field, marked) {
  document.querySelectorAll(`${SLASH} li`).forEach((option) => (option.ariaSelected = String(option === marked)));
  if (marked) field.setAttribute("aria-activedescendant", marked.id);
  else field.removeAttribute("aria-activedescendant");
}

function listCommands(field, isHidden) {
  const list = document.querySelector(SLASH);
  if (!list) return;
  const typed = field.value.toLowerCase();
  const fits = (option) => option.dataset.command.startsWith(typed) && option.dataset.command !== typed;
  [...list.children].forEach((option) => (option.hidden = !fits(option)));
  const first = list.querySelector("li:not([hidden])");
  list.hidden = isHidden || !first || !BEGUN_COMMAND.test(typed);
  markCommand(field, list.hidden ? null : first);
}

function onSlashInput(event) {
  if (event.target.matches?.(FIELD)) listCommands(event.target, event.type === "focusout");
}

function onSlashKey(event) {
  const list = document.querySelector(`${SLASH}:not([hidden])`);
  if (!list || !event.target.matches?.(FIELD) || event.isComposing || event.shiftKey) return;
  const shown = [...list.querySelectorAll("li:not([hidden])")];
  const index = shown.findIndex((option) => option.ariaSelected === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) markCommand(event.target, shown.at((index + step) % shown.length));
  else if (event.key === "Enter" || event.key === "Tab") setField(event.target, shown[index].dataset.command);
  else if (event.key === "Escape") listCommands(event.target, true);
  else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

function onSlashPress(option, event) {
  event.preventDefault(); // the field keeps the focus
  if (event.type === "click") setField(document.querySelector(FIELD), option.dataset.command);
}

listen("input focusin focusout", onSlashInput, false);
listen("keydown", onSlashKey, true);
listenIn(`${SLASH} li`, "mousedown click", onSlashPress);
