// Asks the server to draw what has changed, for a part of the page that found a change.
const REDRAW = "i.redraw";
// Streamlit sends what is set at once as one request, which is for one part of the page.
const APART_FROM_WIDGETS_MILLISECONDS = 10;

let redrawn = -1;

export default function ({ setTriggerValue }) {
  const look = () => {
    // A request that was answered may stand until its part is drawn again.
    const newest = Math.max(...[...document.querySelectorAll(REDRAW)].map((asking) => Number(asking.dataset.mark)));
    if (newest <= redrawn) return;
    redrawn = newest;
    setTimeout(() => setTriggerValue("changed", String(newest)), APART_FROM_WIDGETS_MILLISECONDS);
  };
  const observer = new MutationObserver(look);
  observer.observe(document.querySelector("[data-testid='stMain']"), { childList: true, subtree: true });
  look();
  return () => observer.disconnect();
}
