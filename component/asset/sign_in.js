// The sign-in page: sets the language, stores the URL to return to, and notifies the browser's other tabs, which would
// otherwise stay as they are (visitor.js).
let isTold = false;

export default function ({ data }) {
  document.documentElement.lang = data.language;
  if (isTold) return;
  isTold = true;
  sessionStorage.setItem("turnfold_way_back", location.search);
  localStorage.setItem("turnfold_signed_out", Date.now());
}
