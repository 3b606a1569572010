// Asks the server to draw what has changed, for a part of the page that found a change.
const REDRAW = "i.redraw";
// Streamlit sends what is set at once as one request, which is for one part of the page.
const APART_FROM_WIDGETS_MILLISECONDS = 10;

let redrawn = -1;

function onRedraw() {
  // A request that was answered may stand until its part is drawn again.
  const newest = Math.max(...[...document.querySelectorAll(REDRAW)].map((asking) => Number(asking.dataset.mark)));
  if (!askServer || newest <= redrawn) return;
  redrawn = newest;
  setTimeout(() => askServer("changed", String(newest)), APART_FROM_WIDGETS_MILLISECONDS);
}

const redrawAsked = new MutationObserver(onRedraw);
