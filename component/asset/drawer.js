// The drawer's title is the open tab. Streamlit draws the title when the drawer opens: drawn again with another title,
// the drawer would take the focus from the pressed tab.
function nameDrawer(event) {
  const drawer = event.target.closest?.("[role='tab']")?.closest("[role='dialog']");
  if (!drawer) return;
  requestAnimationFrame(() => {
    const open = drawer.querySelector("[role='tab'][aria-selected='true']");
    const title = document.getElementById(drawer.getAttribute("aria-labelledby")) ?? drawer.querySelector("h1, h2");
    const words = title && document.createTreeWalker(title, NodeFilter.SHOW_TEXT).nextNode();
    if (open && words) words.nodeValue = open.textContent;
  });
}

const DRAWER_LISTENERS = [
  ["click", nameDrawer, true],
  ["keyup", nameDrawer, true],
];
