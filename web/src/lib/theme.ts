// Dark or light: what the system prefers, until the user chooses.

import { useSyncExternalStore } from "react";

import { readStored, writeStored } from "./stored";

export type Theme = "dark" | "light";

const listeners = new Set<() => void>();

function preferred(): Theme {
  const chosen = readStored("local", "theme");
  if (chosen === "dark" || chosen === "light") return chosen;
  return window.matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
}

let theme = preferred();
document.documentElement.dataset["theme"] = theme;

export function toggleTheme(): void {
  theme = theme === "dark" ? "light" : "dark";
  writeStored("local", "theme", theme);
  document.documentElement.dataset["theme"] = theme;
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => theme,
  );
}
