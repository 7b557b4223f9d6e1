// The live books and trades of some tokens, for React.

import { useEffect, useState } from "react";

import { parseUnits } from "./amounts";
import { type Book, type RawBook, bookOf, withLevel } from "./book";
import { useConfig } from "./context";
import { streamUrl } from "./config";
import { Stream, type StreamState } from "./stream";

const TRADES_KEPT = 50;

export interface LiveTrade {
  token: string;
  price: number;
  size: number;
  side: "BUY" | "SELL";
  timestampMs: number;
  id: string;
}

export interface LiveMarkets {
  books: Record<string, Book>;
  trades: LiveTrade[];
  state: StreamState;
  isResolved: boolean;
}

const NOTHING: LiveMarkets = { books: {}, trades: [], state: "connecting", isResolved: false };

interface Change {
  asset_id: string;
  side: string;
  price: string;
  size: string;
}

/** Return the live state after a message of the market channel. */
function after(live: LiveMarkets, message: Record<string, unknown>, tokens: string[]): LiveMarkets {
  switch (message["event_type"]) {
    case "book": {
      const raw = message as unknown as RawBook;
      return { ...live, books: { ...live.books, [raw.asset_id]: bookOf(raw) } };
    }
    case "price_change": {
      const books = { ...live.books };
      for (const change of message["price_changes"] as Change[]) {
        const book = books[change.asset_id];
        if (book !== undefined) books[change.asset_id] = withLevel(book, change.side, change.price, change.size);
      }
      return { ...live, books };
    }
    case "last_trade_price": {
      const trade: LiveTrade = {
        token: String(message["asset_id"]),
        price: Number(message["price"]),
        size: Number(message["size"]),
        side: message["side"] as "BUY" | "SELL",
        timestampMs: Number(message["timestamp"]),
        id: `${String(message["stream_id"])}-${String(message["sequence"])}`,
      };
      return { ...live, trades: [trade, ...live.trades].slice(0, TRADES_KEPT) };
    }
    case "tick_size_change": {
      const token = String(message["asset_id"]);
      const book = live.books[token];
      const tick = parseUnits(String(message["new_tick_size"]));
      return book === undefined || tick === null ? live : { ...live, books: { ...live.books, [token]: { ...book, tick } } };
    }
    case "market_resolved": {
      const resolved = message["assets_ids"] as string[];
      return resolved.some((token) => tokens.includes(token)) ? { ...live, isResolved: true } : live;
    }
    default:
      return live;
  }
}

/** Return live books and trades; they begin with fresh books after every reconnection. */
export function useLiveMarkets(tokens: string[]): LiveMarkets {
  const config = useConfig();
  const [live, setLive] = useState<LiveMarkets>(NOTHING);
  const key = tokens.join(",");
  useEffect(() => {
    const wanted = key === "" ? [] : key.split(",");
    setLive(NOTHING);
    if (wanted.length === 0) return;
    const stream = new Stream(streamUrl(config, "market"), {
      hello: () => ({ type: "market", assets_ids: wanted, custom_feature_enabled: true }),
      onMessage: (message) => setLive((before) => after(before, message, wanted)),
      onState: (state) => setLive((before) => (before.state === state ? before : { ...before, state })),
    });
    return () => stream.close();
  }, [config, key]);
  return live;
}
