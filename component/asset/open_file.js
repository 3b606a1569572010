// Reads a file chosen by the user and sends its text to the server.
const FILE_BYTES = 10 * 1024 * 1024;
const FILE_KINDS = ".jsonl,.json,application/jsonl,application/json";

function onOpenFile(event) {
  if (!event.target.closest?.("button.open-file")) return;
  chooseFiles(false, (files) => sendFile(files[0]), FILE_KINDS);
}

async function sendFile(file) {
  if (!file) return;
  // A larger message would close the connection: only the size is sent.
  const text = file.size <= FILE_BYTES ? await file.text() : null;
  askServer("file", { text, size: file.size });
}

listen("click", onOpenFile, false);
