// Requests a redraw for a fragment that found a change; repeated until answered, as a request may be lost.
const REDRAW = "i.redraw";
const SERVED = "i.heard";
// Streamlit joins values set at the same time to one request, for one fragment.
const APART_FROM_WIDGETS_MILLISECONDS = 10;
const AGAIN_MILLISECONDS = 2000;

let asked = -1;
let askedAt = 0;

export default function ({ setTriggerValue }) {
  let again = null;
  const look = () => {
    clearTimeout(again);
    const newest = Math.max(-1, ...[...document.querySelectorAll(REDRAW)].map((asking) => Number(asking.dataset.mark)));
    // The element of an answered request may stay until its fragment is drawn again.
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
