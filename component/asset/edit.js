// The form for editing a question: focuses the field once drawn, and scrolls to its first line and, where there is room, its buttons.
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
  const end = document.querySelector("[data-testid='stBottom']").getBoundingClientRect().top;
  const below = field.closest("[data-testid='stForm']").getBoundingClientRect().bottom - end + TOP_PIXELS;
  if (above >= 0 && below <= 0) return;
  box.scrollTop += Math.min(above, below);
  holdPlace(box);
}

listen("click", onEdit, false);
