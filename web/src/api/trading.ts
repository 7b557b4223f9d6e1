// The public part of the trading API: books and price history.

import type { Config } from "../lib/config";
import { type Book, type RawBook, bookOf } from "../lib/book";
import { query, request } from "../lib/http";

export interface Point {
  t: number;
  p: number;
}

export async function fetchBook(config: Config, token: string): Promise<Book> {
  return bookOf(await request<RawBook>(`${config.apis.trading}/book${query({ token_id: token })}`));
}

export type Interval = "1h" | "6h" | "1d" | "1w" | "1m" | "all";

export async function fetchHistory(config: Config, token: string, interval: Interval): Promise<Point[]> {
  const parameters = query({ market: token, interval });
  return (await request<{ history: Point[] }>(`${config.apis.trading}/prices-history${parameters}`)).history;
}

/** Return the histories of at most 20 tokens. */
export async function fetchHistories(
  config: Config,
  tokens: string[],
  interval: Interval,
  fidelity?: number,
): Promise<Record<string, Point[]>> {
  const body = JSON.stringify({ markets: tokens, interval, ...(fidelity === undefined ? {} : { fidelity }) });
  const url = `${config.apis.trading}/batch-prices-history`;
  return (await request<{ history: Record<string, Point[]> }>(url, { method: "POST", body })).history;
}
