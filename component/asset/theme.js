// The theme that was chosen in the settings. Streamlit has no call for it: its own menu, which the style sheet hides,
// changes the theme without a reload and keeps it for the next one.
const THEME_NAMES = { system: "System", light: "Light", dark: "Dark" };

const theme = { chosen: null };

function keptTheme() {
  // A version number follows the path.
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
  // Streamlit says it of the app alone; dialogs and menus stand outside.
  document.documentElement.style.colorScheme = chosen === "system" ? "light dark" : chosen;
  // Only a change in this tab counts: another tab's choice must stand.
  if (chosen === theme.chosen) return;
  theme.chosen = chosen;
  const name = THEME_NAMES[chosen];
  if (keptTheme() === name) return;
  setCookie(cookie, chosen);
  const menu = document.querySelector("[data-testid='stMainMenuButton']");
  menu?.click();
  if (menu) pressTheme(menu, name, performance.now() + WAIT_MILLISECONDS);
}
