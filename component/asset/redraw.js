// Asks the server to draw what has changed, for a part of the page that found a change; again, until it has answered: a
// request may be lost.
const REDRAW = "i.redraw";
const SERVED = "i.heard";
// Streamlit sends what is set at once as one request, which is for one part of the page.
const APART_FROM_WIDGETS_MILLISECONDS = 10;
const AGAIN_MILLISECONDS = 2000;

let asked = -1;
let askedAt = 0;

export default function ({ setTriggerValue }) {
  let again = null;
  const look = () => {
    clearTimeout(again);
    const newest = Math.max(-1, ...[...document.querySelectorAll(REDRAW)].map((asking) => Number(asking.dataset.mark)));
    // A request that was answered may stand until its part is drawn again.
    if (newest < Number(document.querySelector(SERVED)?.dataset.served ?? 0)) return;
    const since = performance.now() - askedAt;
    if (newest === asked && since < AGAIN_MILLISECONDS) {
      again = setTimeout(look, AGAIN_MILLISECONDS - since);
      return;
    }
    asked = newest;
    askedAt = performance.now();
    again = setTimeout(look, AGAIN_MILLISECONDS);
    setTimeout(() => setTriggerValue("changed", String(newest)), APART_FROM_WIDGETS_MILLISECONDS);
  };
  const observer = new MutationObserver(look);
  observer.observe(document.querySelector("[data-testid='stMain']"), { childList: true, subtree: true });
  look();
  return () => {
    clearTimeout(again);
    observer.disconnect();
  };
}
