// Whoever is signed in: what was typed in this tab and not sent is its writer's alone, and another one may come after.
const OWN_KEYS = "turnfold_";
const VISITOR = "turnfold_visitor";
const WAY_BACK = "turnfold_way_back"; // sign_in.js sets it

function beginVisit(visitor) {
  const before = sessionStorage.getItem(VISITOR);
  if (!visitor || before === visitor) return;
  if (before !== null) {
    Object.keys(sessionStorage)
      .filter((key) => key.startsWith(OWN_KEYS))
      .forEach((key) => sessionStorage.removeItem(key));
    setOutbox([]);
  }
  sessionStorage.setItem(VISITOR, visitor);
}

// The provider leads to the empty page, wherever one was when the sign-in ended.
function goBack() {
  const query = sessionStorage.getItem(WAY_BACK);
  sessionStorage.removeItem(WAY_BACK);
  if (query && !location.search) location.replace(location.pathname + query);
}

// Another tab of this browser shows that nobody is signed in any more (sign_in.js): a reload of this one tells, too.
function onSignedOut(event) {
  if (event.key === "turnfold_signed_out") location.reload();
}

window.addEventListener("storage", onSignedOut);
