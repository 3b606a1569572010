// The form for editing a question: focuses the field once drawn, and scrolls to its first line.
const EDITED = ".st-key-edit_choice";

function onEdit(event) {
  if (!event.target.closest?.("button[data-press='edit']")) return;
  holdPlace(document.querySelector(SCROLLER));
  const find = () => document.querySelector(EDITED)?.closest("[data-testid='stForm']")?.querySelector("textarea");
  whenReady(find, (field) => {
    field.focus({ preventScroll: true });
    bringDown(field);
    // The field grows to the height of its text.
    setTimeout(() => bringDown(field), SETTLE_MILLISECONDS);
  });
}

function bringDown(field) {
  const box = document.querySelector(SCROLLER);
  const above = field.getBoundingClientRect().top - box.getBoundingClientRect().top - TOP_PIXELS;
  if (above >= 0) return;
  box.scrollTop += above;
  holdPlace(box);
}

listen("click", onEdit, false);
