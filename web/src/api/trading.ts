// The public part of the trading API: books and price history.

import { type Answer, get, post } from "../client/api";
import { type Book, bookOf } from "../lib/book";
import type { Config } from "../lib/config";

type History = Answer<"trading", "post", "/batch-prices-history">["history"];
export type Point = History[string][number];
export type Interval = "1h" | "6h" | "1d" | "1w" | "1m" | "all";

export async function fetchBook(config: Config, token: string): Promise<Book> {
  return bookOf(await get(config, "trading", "/book", { token_id: token }));
}

/** Return the histories of at most 20 tokens. */
export async function fetchHistories(config: Config, tokens: string[], interval: Interval): Promise<History> {
  return (await post(config, "trading", "/batch-prices-history", { markets: tokens, interval })).history;
}
