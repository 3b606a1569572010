// The page on which nobody is signed in: its language, the way back to it, and word of it to the browser's other tabs,
// whose pages would go on as they are (visitor.js).
let isTold = false;

export default function ({ data }) {
  document.documentElement.lang = data.language;
  if (isTold) return;
  isTold = true;
  sessionStorage.setItem("turnfold_way_back", location.search);
  localStorage.setItem("turnfold_signed_out", Date.now());
}
