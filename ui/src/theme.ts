// Light and dark: as the system says, until the person chooses.
import { useEffect, useState } from "preact/hooks";

export type Theme = "light" | "dark";
const KEY = "clew.theme";
const listeners = new Set<(theme: Theme) => void>();
const system = window.matchMedia("(prefers-color-scheme: dark)");

function chosen(): Theme | null {
  try {
    const value = window.localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null; // storage is refused, as in some file:// pages
  }
}

export function theme(): Theme {
  return document.documentElement.dataset["theme"] === "dark" ? "dark" : "light";
}

function apply(next: Theme): void {
  document.documentElement.dataset["theme"] = next;
  for (const listener of [...listeners]) listener(next);
}

export function startTheme(): void {
  apply(chosen() ?? (system.matches ? "dark" : "light"));
  system.addEventListener("change", (event) => chosen() ?? apply(event.matches ? "dark" : "light"));
}

export function switchTheme(): void {
  const next = theme() === "dark" ? "light" : "dark";
  try {
    window.localStorage.setItem(KEY, next);
  } catch {
    // then it holds until the page is closed
  }
  apply(next);
}

/** The theme in force; canvases draw again when it changes. */
export function useTheme(): Theme {
  const [now, set] = useState(theme);
  useEffect(() => {
    listeners.add(set);
    return () => void listeners.delete(set);
  }, []);
  return now;
}

/** A colour of theme.css by its name, for canvases. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
