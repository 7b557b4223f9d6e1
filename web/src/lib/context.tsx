// What every component may use: the configuration, and short notices to the user.

import { createContext, useContext } from "react";

import type { Config } from "./config";

export const ConfigContext = createContext<Config | null>(null);

export function useConfig(): Config {
  const config = useContext(ConfigContext);
  if (config === null) throw new Error("the configuration is loaded before the app is shown");
  return config;
}

export type NoticeKind = "good" | "bad" | "wait";

export interface Notice {
  id: number;
  kind: NoticeKind;
  text: string;
}

export type Notify = (kind: NoticeKind, text: string) => void;

export const NotifyContext = createContext<Notify>(() => undefined);

export function useNotify(): Notify {
  return useContext(NotifyContext);
}
