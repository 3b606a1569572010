// Files for the next message: chosen, dropped or pasted anywhere. A hidden field of Streamlit's uploads them, and the
// server reads each at once, before anything is written. And the file of a chat, whose text is sent to the server.
const UPLOAD = ".st-key-files";
const UPLOADED = `${UPLOAD} [data-testid='stFileChip']`;
const READ_MILLISECONDS = 60000;
const FILE_BYTES = 10 * 1024 * 1024;
const FILE_KINDS = ".jsonl,.json,application/jsonl,application/json";

let readCount = 0; // as the server has told
let unreadCount = 0;
let handedAt = -Infinity;
let refusedFiles = [];

const hasKept = () => document.querySelector(".st-key-attached") !== null;

function isReading() {
  const told = Number(document.querySelector(HEARD)?.dataset.read ?? readCount);
  if (told < readCount) handedAt = -Infinity; // to another server
  unreadCount -= Math.max(told - readCount, 0);
  readCount = told;
  return unreadCount > 0 && performance.now() - handedAt < READ_MILLISECONDS;
}

// Where it is clear, nothing is uploaded first.
function reasonAgainst(file) {
  const suffix = file.name.slice(file.name.lastIndexOf(".")).toLowerCase();
  if (words.refused_kinds[suffix]) return words.refused_kinds[suffix];
  if (file.size > words.file_bytes) return "too_large";
  return file.size === 0 ? "empty" : null;
}

function refuse(name, reason) {
  refusedFiles = [...refusedFiles, { name, reason }];
  askServer("refused_files", refusedFiles);
}

function attach(files) {
  const input = document.querySelector(`${UPLOAD} input[type='file']`);
  const given = new DataTransfer();
  for (const file of files) {
    const reason = reasonAgainst(file);
    if (reason) refuse(file.name, reason);
    else given.items.add(file);
  }
  if (!input || !given.files.length) return;
  unreadCount = (isReading() ? unreadCount : 0) + given.files.length;
  handedAt = performance.now();
  input.files = given.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
  onUploads();
  focusField(document.querySelector(FIELD), true);
}

function onUploads() {
  document.documentElement.toggleAttribute("data-reading", isReading());
  if (document.querySelector(`${UPLOAD} [data-testid='stFileChipIconSpinner']`)) return;
  document.querySelectorAll(`${UPLOADED}[aria-invalid]`).forEach((chip) => {
    refuse(chip.querySelector("[data-testid='stFileChipName']")?.title ?? "", "upload");
    chip.querySelector("button").click();
  });
  if (document.querySelector(UPLOADED)) document.querySelector(`${UPLOAD} [data-testid='stChatInputSubmitButton']`)?.click();
}

function chooseFiles(multiple, act, accept = "") {
  const input = document.createElement("input");
  Object.assign(input, { type: "file", multiple, accept });
  input.addEventListener("change", () => act(input.files));
  input.click();
}

async function sendFile([file]) {
  // A larger message would close the connection: only the size is sent.
  if (file) askServer("file", { text: file.size <= FILE_BYTES ? await file.text() : null, size: file.size });
}

function onDrag(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  event.stopPropagation();
  const isOver = event.type !== "drop" && (event.type !== "dragleave" || event.relatedTarget !== null);
  if (isOver) document.documentElement.dataset.dragging = words.drop;
  else delete document.documentElement.dataset.dragging;
  if (event.type === "drop") attach(event.dataTransfer.files);
}

function onPaste(event) {
  const { types, files } = event.clipboardData;
  const field = event.target.closest?.("input, textarea, [contenteditable='true']");
  // Office programs put a picture of the text beside it.
  if (!files.length || (field && !field.matches(FIELD)) || (types.includes("text/plain") && types.includes("text/html"))) return;
  event.preventDefault();
  event.stopPropagation();
  attach(files);
}

listenIn("button.attach", "click", () => chooseFiles(true, attach));
listenIn("button.open-file", "click", () => chooseFiles(false, sendFile, FILE_KINDS));
listen("paste", onPaste, true);
listen("dragenter dragover dragleave drop", onDrag, true);
