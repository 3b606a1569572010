// What is done with answers: the tab's title tells of one that ended behind, code wraps,
// is saved and shown as a page, and what is selected is quoted.
const ENDED_MARK = "● ";
const CODE = "[data-testid='stCode']";
// Of languages whose files end in another word.
const ENDINGS = {
  bash: "sh", console: "txt", csharp: "cs", "c++": "cpp", haskell: "hs", javascript: "js", julia: "jl", kotlin: "kt",
  latex: "tex", markdown: "md", matlab: "m", mermaid: "mmd", perl: "pl", plaintext: "txt", powershell: "ps1", python: "py",
  ruby: "rb", rust: "rs", shell: "sh", text: "txt", typescript: "ts", yaml: "yml", zsh: "sh",
};
const SHOWABLE = "code:is(.language-html, .language-svg, .language-xml)";
const PREVIEW_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";
const PREVIEW_HEAD = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${PREVIEW_POLICY}">`;
const QUOTE_PIXELS = 8;
const LEAVE_MILLISECONDS = 300;
const ended = { isAwaited: false, isTold: false };

function noteEnd() {
  if (document.querySelector(`${TURN} p.phase`)) ended.isAwaited = true;
  else if (document.querySelector("[class*='st-key-last_actions_']")) {
    ended.isTold ||= ended.isAwaited;
    ended.isAwaited = false;
  }
  ended.isTold &&= document.hidden;
  const title = document.title.replace(ENDED_MARK, "");
  const told = ended.isTold ? ENDED_MARK + title : title;
  if (document.title !== told) document.title = told;
}

// Beside Streamlit's button that copies the code.
function drawCodeTools() {
  document.querySelectorAll(`${CODE} > :last-child:not(pre)`).forEach((bar) => {
    if (!bar.closest(TURN)) return;
    const block = bar.parentElement;
    const shown = block.querySelector("iframe");
    // Streamlit reuses a block for other code.
    if (shown && shown.code !== block.querySelector("code").textContent) shown.remove();
    const icons = [...(block.querySelector(SHOWABLE) ? ["preview"] : []), "wrap_text", "download"];
    const drawing = [words.language, block.querySelector("iframe") !== null, ...icons].join();
    if (bar.drawing === drawing) return;
    bar.drawing = drawing;
    bar.querySelectorAll("[data-code]").forEach((button) => button.remove());
    bar.prepend(...icons.map((icon) => codeButton(icon, block)));
  });
}

function codeButton(icon, block) {
  const button = Object.assign(document.createElement("button"), { type: "button", title: words.code[icon] });
  Object.assign(button.dataset, { code: icon, icon });
  if (icon === "wrap_text") button.ariaPressed = block.hasAttribute("data-wraps");
  if (icon === "preview") button.ariaPressed = block.querySelector("iframe") !== null;
  return button;
}

function onCode(button) {
  const block = button.closest(CODE);
  if (button.dataset.code === "wrap_text") button.ariaPressed = block.toggleAttribute("data-wraps");
  else if (button.dataset.code === "preview") button.ariaPressed = showCode(block);
  else saveCode(block.querySelector("code"));
}

// In a sandbox without any permission, and under the page's policy besides, which embeds no address. Scripts don't run: of
// those, no policy keeps WebRTC from the network.
function showCode(block) {
  const shown = block.querySelector("iframe");
  if (shown) return shown.remove() ?? false;
  const code = block.querySelector("code").textContent;
  const frame = Object.assign(document.createElement("iframe"), { title: words.code.preview, sandbox: "", code });
  frame.srcdoc = PREVIEW_HEAD + code;
  block.prepend(frame); // drawn below: the block is in reverse
  return true;
}

function saveCode(code) {
  const language = code.className.match(/language-([\w+#-]+)/)?.[1].toLowerCase() ?? "text";
  const href = URL.createObjectURL(new Blob([code.textContent], { type: "text/plain" }));
  Object.assign(document.createElement("a"), { href, download: `code.${ENDINGS[language] ?? language}` }).click();
  setTimeout(() => URL.revokeObjectURL(href), WAIT_MILLISECONDS);
}

const quoting = Object.assign(document.createElement("button"), { type: "button", className: "quote", hidden: true });
quoting.dataset.icon = "format_quote";

function selectedText() {
  const selection = getSelection();
  const isSaid = (node) => (node?.closest ? node : node?.parentElement)?.closest(SAID);
  return isSaid(selection.anchorNode) && isSaid(selection.focusNode) ? selection.toString().trim() : "";
}

function onSelection() {
  const text = selectedText();
  // On a touch screen the press takes the selection away before it is a click.
  if (!text) return setTimeout(() => (quoting.hidden = !selectedText()), LEAVE_MILLISECONDS);
  const { right, bottom } = getSelection().getRangeAt(0).getBoundingClientRect();
  const box = document.querySelector(SCROLLER);
  const end = document.querySelector("[data-testid='stBottom']").getBoundingClientRect().top;
  Object.assign(quoting, { text, textContent: words.code.quote, title: words.code.quote_help, hidden: false });
  if (!quoting.isConnected) box.append(quoting);
  const most = box.getBoundingClientRect().right - quoting.offsetWidth - TOP_PIXELS;
  const lowest = end - quoting.offsetHeight - QUOTE_PIXELS;
  quoting.style.left = `${Math.max(QUOTE_PIXELS, Math.min(right - quoting.offsetWidth / 2, most))}px`;
  quoting.style.top = `${Math.max(TOP_PIXELS, Math.min(bottom + QUOTE_PIXELS, lowest))}px`;
}

function quote() {
  const [field, text] = [document.querySelector(FIELD), selectedText() || (quoting.hidden ? "" : quoting.text)];
  if (!field || !text) return;
  const lines = text.split(/\n+/).map((line) => `> ${line}`);
  setField(field, `${lines.join("\n")}\n\n${field.value}`);
  getSelection().empty();
  quoting.hidden = true;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
  field.scrollTop = field.scrollHeight;
}

function onQuote(event) {
  if (event.target !== quoting) return;
  if (event.type === "click") quote();
  else event.preventDefault(); // the selection stays
}

// Streamlit sets the title, too.
const titleChange = new MutationObserver(noteEnd);
listen("visibilitychange", noteEnd, false);
listenIn("button[data-code]", "click", onCode);
listen("selectionchange", onSelection, false);
listen("click mousedown", onQuote, false);
