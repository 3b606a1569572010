// Applies the theme chosen in the settings. Streamlit has no API for this: its own menu, hidden by the style sheet,
// changes the theme without a reload and stores it.
const THEME_NAMES = { system: "System", light: "Light", dark: "Dark" };

const theme = { chosen: null };

function keptTheme() {
  // The key ends with a version number.
  const key = Object.keys(localStorage).find((name) => name.startsWith(`stActiveTheme-${location.pathname}-`));
  return key ? JSON.parse(localStorage.getItem(key)) : THEME_NAMES.system;
}

function pressTheme(menu, name, until) {
  const item = document.querySelector(`[data-testid='stMainMenuItem-theme-${name}']`);
  if (item) {
    item.click();
    menu.click();
  } else if (performance.now() < until) {
    requestAnimationFrame(() => pressTheme(menu, name, until));
  }
}

function setTheme(chosen, cookie) {
  // Streamlit sets the color scheme on the app only; dialogs and menus are outside.
  document.documentElement.style.colorScheme = chosen === "system" ? "light dark" : chosen;
  // Only a change in this tab counts: another tab's choice is retained.
  if (chosen === theme.chosen) return;
  theme.chosen = chosen;
  const name = THEME_NAMES[chosen];
  if (keptTheme() === name) return;
  setCookie(cookie, chosen);
  const menu = document.querySelector("[data-testid='stMainMenuButton']");
  menu?.click();
  if (menu) pressTheme(menu, name, performance.now() + WAIT_MILLISECONDS);
}
