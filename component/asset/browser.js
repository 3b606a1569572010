// What the page needs of the browser and Streamlit has no widget for. One listener each, on the document.
const YEAR_SECONDS = 31536000;

async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    return navigator.clipboard.writeText(text);
  }
  // Over plain http from another machine there is no clipboard API.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("copy");
}

export default function ({ data }) {
  document.documentElement.lang = data.language;
  if (data.cookie) {
    document.cookie = `${data.cookie}=${data.language}; path=/; max-age=${YEAR_SECONDS}; samesite=lax`;
  }

  const onClick = async (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    let said = data.copied;
    try {
      await copy(button.dataset.copy);
      button.classList.add("done");
    } catch {
      said = data.copy_failed;
    }
    const label = button.getAttribute("aria-label");
    button.setAttribute("aria-label", said);
    button.title = said;
    setTimeout(() => {
      button.classList.remove("done");
      button.setAttribute("aria-label", label);
      button.title = label;
    }, 1500);
  };

  const onKey = (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable='true'], [role='dialog']")) return;
    const field = document.querySelector(".st-key-ask textarea");
    if (!field) return;
    event.preventDefault();
    field.focus();
  };

  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
  return () => {
    document.removeEventListener("click", onClick);
    document.removeEventListener("keydown", onKey);
  };
}
