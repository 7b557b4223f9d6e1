// Small values kept in the browser; a browser that keeps nothing loses only comfort.

export function readStored(storage: "local" | "session", name: string): string | null {
  try {
    return (storage === "local" ? localStorage : sessionStorage).getItem(`foretell.${name}`);
  } catch {
    return null;
  }
}

export function writeStored(storage: "local" | "session", name: string, value: string | null): void {
  try {
    const store = storage === "local" ? localStorage : sessionStorage;
    if (value === null) store.removeItem(`foretell.${name}`);
    else store.setItem(`foretell.${name}`, value);
  } catch {
    return;
  }
}
