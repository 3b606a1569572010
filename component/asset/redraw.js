// Asks the server to draw what has changed, for a part of the page that found a change.
const REDRAW = "i.redraw";
// Streamlit sends what is set at once as one request, which is for one part of the page.
const APART_FROM_WIDGETS_MILLISECONDS = 10;

let redrawn = null;

function onRedraw() {
  const asking = document.querySelector(REDRAW);
  if (!asking || !askServer || asking.dataset.mark === redrawn) return;
  redrawn = asking.dataset.mark;
  setTimeout(() => askServer("changed", redrawn), APART_FROM_WIDGETS_MILLISECONDS);
}

const redrawAsked = new MutationObserver(onRedraw);
