// Applies the theme chosen in the settings. Streamlit has no API for this: its own menu, hidden by the style sheet,
// changes the theme without a reload and stores it.
const THEME_NAMES = { system: "System", light: "Light", dark: "Dark" };
let chosenTheme = null;

function setTheme(chosen, cookie) {
  // Streamlit sets the color scheme on the app only; dialogs and menus are outside.
  document.documentElement.style.colorScheme = chosen === "system" ? "light dark" : chosen;
  // Only a change in this tab counts: another tab's choice is retained.
  if (chosen === chosenTheme) return;
  chosenTheme = chosen;
  const name = THEME_NAMES[chosen];
  // The key ends with a version number.
  const key = Object.keys(localStorage).find((kept) => kept.startsWith(`stActiveTheme-${location.pathname}-`));
  if ((key ? JSON.parse(localStorage.getItem(key)) : THEME_NAMES.system) === name) return;
  setCookie(cookie, chosen);
  const menu = document.querySelector("[data-testid='stMainMenuButton']");
  if (!menu) return;
  menu.click();
  const find = () => document.querySelector(`[data-testid='stMainMenuItem-theme-${name}']`);
  waitFor(find, (item) => [item, menu].forEach((part) => part.click()));
}
