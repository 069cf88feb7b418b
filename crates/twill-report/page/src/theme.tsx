// Dark, light, or as the system has it. Kept for the next report, where the browser allows that.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

type Theme = "system" | "light" | "dark";

const KEY = "twill-report-theme";
const NEXT: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // Pages from files have no storage in some browsers.
  }
}

/** Called when the theme changes, for what is painted and not styled. */
export const themeChanged = new Set<() => void>();

/** The button that goes from theme to theme. */
export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(stored);
  useLayoutEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Not kept then.
    }
    for (const changed of themeChanged) changed();
  }, [theme]);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const tell = () => themeChanged.forEach((changed) => changed());
    dark.addEventListener("change", tell);
    return () => dark.removeEventListener("change", tell);
  }, []);
  return (
    <button type="button" class="theme" data-theme-now={theme} onClick={() => setTheme(NEXT[theme])}>
      Theme: {theme}
    </button>
  );
}
