// The page on which nobody is signed in: its language, and word of it to the browser's other tabs, whose pages would go
// on as they are (`onSignedOut` in browser.js).
let isTold = false;

export default function ({ data }) {
  document.documentElement.lang = data.language;
  if (isTold) return;
  isTold = true;
  localStorage.setItem("turnfold_signed_out", Date.now());
}
