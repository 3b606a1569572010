// Attachments of the message field: the server reads them first, then the message is sent with them.
const CHIP = ".st-key-ask [data-testid='stFileChip']:not([aria-invalid])";
const UPLOADING = ".st-key-ask [data-testid='stFileChipIconSpinner']";
const KEPT = ".st-key-attached";
const UPLOAD = "[data-testid='stChatInputFileUploadButton']";
const SUBMIT = ".st-key-ask [data-testid='stChatInputSubmitButton']";
const READ_MILLISECONDS = 60000;

let reading = null;
let isHandedOver = false;

function hasFiles() {
  return document.querySelector(CHIP) !== null;
}

function hasKept() {
  return document.querySelector(KEPT) !== null;
}

function canSend() {
  return reading === null && !document.querySelector(UPLOADING);
}

function readCount() {
  return Number(document.querySelector(HEARD)?.dataset.read ?? 0);
}

function sendWithFiles(text, session) {
  reading = { text, session, after: readCount(), until: performance.now() + READ_MILLISECONDS };
  // Stored as a draft in case the user leaves the page now.
  if (text) sessionStorage.setItem(draftKey(session), text);
  document.querySelector(".st-key-ask").ariaBusy = "true";
  // Streamlit submits the files with the field's text, empty once React has handled the change. A timer could run after
  // the next key, and the typed text would be submitted with the files.
  queueMicrotask(() => {
    isHandedOver = true;
    document.querySelector(SUBMIT)?.click();
    isHandedOver = false;
  });
  reading.timer = setInterval(lookAtReading, LOOK_MILLISECONDS);
}

function lookAtReading() {
  const isRead = readCount() > reading.after;
  if (!isRead && performance.now() < reading.until) return;
  clearInterval(reading.timer);
  const { text, session } = reading;
  reading = null;
  document.querySelector(".st-key-ask")?.removeAttribute("aria-busy");
  if (sessionStorage.getItem(draftKey(session)) === text) sessionStorage.removeItem(draftKey(session));
  if (isRead && document.querySelector(HEARD).dataset.readable === "true") sendOut(text, session, true);
  else giveBack({ id: null, text, session, is_new: session === "" });
}

// Streamlit's own labels are English.
function nameParts() {
  const named = (element, name) => {
    if (element && element.ariaLabel !== name) element.ariaLabel = name;
  };
  document.querySelectorAll(".st-key-ask input[type='file']").forEach((input) => named(input, words.attach));
  const upload = document.querySelector(`${UPLOAD} button`);
  named(upload, words.attach);
  if (upload) upload.title = words.attach;
  document.querySelectorAll(".st-key-ask [data-testid='stFileChip']").forEach((chip) => {
    const name = chip.querySelector("[data-testid='stFileChipName']")?.title ?? "";
    named(chip.querySelector("button"), words.detach.replace("{name}", name));
    if (chip.ariaInvalid) nameError(chip);
  });
  const hint = [...document.querySelectorAll("[data-testid='stChatInput'] div")].find(
    (part) => part.childElementCount === 0 && part.textContent.startsWith("Drag and drop"),
  );
  if (hint) hint.firstChild.data = words.drop;
}

function nameError(chip) {
  const told = chip.querySelector("[role='alert']");
  if (!told || told.dataset.told) return;
  const reason = told.textContent.includes("File must be") ? words.too_large : words.upload_failed;
  told.dataset.told = reason;
  [...told.childNodes].forEach((part, number) => (part.data = number ? "" : reason));
  chip.title = reason;
}

const partsNamed = new MutationObserver(nameParts);

function watchField() {
  partsNamed.disconnect();
  const bottom = document.querySelector("[data-testid='stBottom']");
  if (bottom) partsNamed.observe(bottom, { childList: true, subtree: true });
  nameParts();
}

// Streamlit's tooltips are English, too.
function onTipHover(event) {
  if (event.target.closest?.(`${UPLOAD}, .st-key-ask [aria-invalid]`)) event.stopPropagation();
}

const ATTACH_LISTENERS = [["mouseover", onTipHover, true]];
