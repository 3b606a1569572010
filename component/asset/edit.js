// A question that is being edited: its field has the focus once it is drawn, and is seen from its first line on.
const EDITED = ".st-key-edit_choice";

function onEdit(event) {
  if (!event.target.closest?.("button[data-press='edit']")) return;
  holdPlace(document.querySelector(SCROLLER));
  const find = () => document.querySelector(EDITED)?.closest("[data-testid='stForm']")?.querySelector("textarea");
  whenReady(find, (field) => {
    field.focus({ preventScroll: true });
    bringDown(field);
    // It grows to what it holds.
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

const EDIT_LISTENERS = [["click", onEdit, false]];
