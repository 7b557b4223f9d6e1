// The page's path as state. Links are real links, so that every page has an address of its own.

import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();

function notify(): void {
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", notify);

export function navigate(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  notify();
  if (!replace) window.scrollTo(0, 0);
}

export function usePath(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => window.location.pathname + window.location.search,
  );
}

/** Return a parameter of the page's query. */
export function useParameter(name: string): string | null {
  return new URLSearchParams(usePath().split("?")[1] ?? "").get(name);
}

export function setParameter(name: string, value: string | null): void {
  const url = new URL(window.location.href);
  if (value === null || value === "") url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  navigate(url.pathname + url.search, true);
}
