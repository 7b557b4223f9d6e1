// The live books and trades of some tokens, for React.

import { useEffect, useState } from "react";

import { parseUnits } from "./amounts";
import { type Book, type RawBook, bookOf, withLevel } from "./book";
import { useConfig } from "./context";
import { streamUrl } from "./config";
import { Stream, type StreamState } from "./stream";

const TRADES_KEPT = 50;
const FRAME_MS = 16;

type Message = Record<string, unknown>;

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
function after(live: LiveMarkets, message: Message, tokens: string[]): LiveMarkets {
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

/** Messages that are applied together, once a frame, so that a busy book costs one rendering for each frame. */
class Batch {
  private waiting: Message[] = [];
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly apply: (messages: Message[]) => void) {}

  add(message: Message): void {
    this.waiting.push(message);
    this.timer ??= setTimeout(() => this.flush(), FRAME_MS);
  }

  end(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.waiting = [];
  }

  private flush(): void {
    this.timer = null;
    this.apply(this.waiting.splice(0));
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
    const batch = new Batch((messages) => setLive((before) => messages.reduce((live, message) => after(live, message, wanted), before)));
    const stream = new Stream(streamUrl(config, "market"), {
      hello: () => ({ type: "market", assets_ids: wanted, custom_feature_enabled: true }),
      onMessage: (message) => batch.add(message),
      onState: (state) => setLive((before) => (before.state === state ? before : { ...before, state })),
    });
    return () => {
      stream.close();
      batch.end();
    };
  }, [config, key]);
  return live;
}
