// Books and accounts over the streams of the trading API, whole again after every lost connection.

import type { Installation } from "./api.js";
import { type Book, type RawBook, bookOf, withLevel } from "./book.js";
import { Stream, type StreamState, type SocketConstructor } from "./stream.js";
import type { Trader } from "./trader.js";

interface Change {
  asset_id: string;
  side: string;
  price: string;
  size: string;
}

export interface WatchOptions {
  onState?: (state: StreamState) => void;
  /** The WebSocket to use where there is none built in: in Node.js 20, that of the package `ws`. */
  socket?: SocketConstructor;
}

function streamUrl(installation: Installation, channel: "market" | "user"): string {
  const url = new URL(installation.apis.trading);
  url.protocol = url.protocol.replace("http", "ws");
  return `${url.href.replace(/\/$/, "")}/ws/${channel}`;
}

/** Call back with the book of a token, whole, after each change; close the stream to end. */
export function watchBooks(
  installation: Installation, tokens: string[], onBook: (token: string, book: Book) => void, options: WatchOptions = {},
): Stream {
  const books = new Map<string, Book>();
  const keep = (token: string, book: Book): void => {
    books.set(token, book);
    onBook(token, book);
  };
  const onMessage = (message: Record<string, unknown>): void => {
    if (message["event_type"] === "book") {
      const raw = message as unknown as RawBook;
      keep(raw.asset_id, bookOf(raw));
    }
    if (message["event_type"] !== "price_change") return;
    for (const change of message["price_changes"] as Change[]) {
      const book = books.get(change.asset_id);
      if (book !== undefined) keep(change.asset_id, withLevel(book, change.side, change.price, change.size));
    }
  };
  const onState = (state: StreamState): void => {
    if (state === "lost") books.clear(); // a book is only right without a gap: the next connection begins with it whole
    options.onState?.(state);
  };
  const hello = (): Record<string, unknown> => ({ type: "market", assets_ids: tokens, custom_feature_enabled: true });
  return new Stream(streamUrl(installation, "market"), { hello, onMessage, onState }, options.socket);
}

/** Call back with each message about the trader's own orders and trades. After a loss, read them from the API. */
export function watchAccount(trader: Trader, onMessage: (message: Record<string, unknown>) => void, options: WatchOptions = {}): Stream {
  const hello = (): Record<string, unknown> => ({ type: "user", markets: [], auth: trader.credentials });
  const onState = options.onState ?? (() => undefined);
  return new Stream(streamUrl(trader.installation, "user"), { hello, onMessage, onState }, options.socket);
}
