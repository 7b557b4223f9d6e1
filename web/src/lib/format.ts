// Numbers, amounts and times as people read them; the language is the browser's.

import { numberOf } from "./amounts";

const money = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const sizes = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });
const days = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const moments = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
});
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function dollars(value: number): string {
  return value < 0 ? `−$${money.format(-value)}` : `$${money.format(value)}`;
}

export function dollarsOf(units: bigint): string {
  return dollars(numberOf(units));
}

export function signedDollars(value: number): string {
  return value > 0 ? `+${dollars(value)}` : dollars(value);
}

export function shortDollars(value: number): string {
  return `$${compact.format(value)}`;
}

export function shares(value: number): string {
  return sizes.format(value);
}

/** Return a price as cents: 0.455 is 45.5¢. */
export function cents(price: number): string {
  return `${sizes.format(Math.round(price * 10_000) / 100)}¢`;
}

/** Return a probability as a percentage; a tiny one is not shown as none. */
export function percent(price: number): string {
  if (price > 0 && price < 0.01) return "<1%";
  if (price > 0.99 && price < 1) return ">99%";
  return `${Math.round(price * 100)}%`;
}

export function day(iso: string): string {
  return days.format(new Date(iso));
}

export function moment(seconds: number): string {
  return moments.format(new Date(seconds * 1000));
}

export function time(seconds: number): string {
  return clock.format(new Date(seconds * 1000));
}

export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

export function shortAddress(address: string): string {
  return `${address.slice(0, 6)}…${address.slice(-4)}`;
}
