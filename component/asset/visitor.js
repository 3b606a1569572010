// Unsent text in this tab belongs to the user who typed it, and another user may sign in afterwards.
const VISITOR = "turnfold_visitor";
const WAY_BACK = "turnfold_way_back"; // set by sign_in.js

function beginVisit(visitor) {
  const before = sessionStorage.getItem(VISITOR);
  if (!visitor || before === visitor) return;
  if (before !== null) {
    Object.keys(sessionStorage)
      .filter((key) => key.startsWith("turnfold_"))
      .forEach((key) => sessionStorage.removeItem(key));
    setOutbox([]);
  }
  sessionStorage.setItem(VISITOR, visitor);
}

// The provider redirects to the empty page, whichever page was open when the sign-in ended.
function goBack() {
  const query = sessionStorage.getItem(WAY_BACK);
  sessionStorage.removeItem(WAY_BACK);
  if (query && !location.search) location.replace(location.pathname + query);
}

// Another tab of this browser shows the sign-in page (sign_in.js): reload this one, too.
function onSignedOut(event) {
  if (event.key === "turnfold_signed_out") location.reload();
}

window.addEventListener("storage", onSignedOut);
