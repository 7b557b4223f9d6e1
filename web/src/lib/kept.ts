// Texts that the user typed, kept for the tab until they are used: a reload loses nothing.

import { useState } from "react";

import { readStored, writeStored } from "./stored";

/** Return a kept text and how it is changed; an empty one is forgotten. */
export function useKeptText(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => readStored("session", `typed.${name}`) ?? "");
  const change = (next: string): void => {
    writeStored("session", `typed.${name}`, next === "" ? null : next);
    setText(next);
  };
  return [text, change];
}
