// A token's order book as a value: levels by price, in units, the best first.

import { SIZE_STEP, UNIT, parseUnits } from "./amounts.js";

export interface Level {
  price: bigint; // in millionths of a collateral
  size: bigint;
}

export interface Book {
  bids: Level[];
  asks: Level[];
  tick: bigint;
  minimum: bigint;
  lastPrice: number | null;
}

export interface RawLevel {
  price: string;
  size: string;
}

export interface RawBook {
  asset_id: string;
  bids: RawLevel[];
  asks: RawLevel[];
  tick_size: string;
  min_order_size: string;
  last_trade_price: string;
}

export const EMPTY_BOOK: Book = { bids: [], asks: [], tick: 10_000n, minimum: 5n * UNIT, lastPrice: null };

function units(text: string): bigint {
  const parsed = parseUnits(text);
  if (parsed === null) throw new Error(`${text} is no amount`);
  return parsed;
}

function sorted(levels: Level[], isBid: boolean): Level[] {
  return levels.sort((a, b) => Number(isBid ? b.price - a.price : a.price - b.price));
}

export function bookOf(raw: RawBook): Book {
  const levels = (rows: RawLevel[]): Level[] =>
    rows.map((row) => ({ price: units(row.price), size: units(row.size) }));
  return {
    bids: sorted(levels(raw.bids), true),
    asks: sorted(levels(raw.asks), false),
    tick: units(raw.tick_size),
    minimum: units(raw.min_order_size),
    lastPrice: raw.last_trade_price === "" ? null : Number(raw.last_trade_price),
  };
}

/** Return the book with one level at another size; none of it at size 0. */
export function withLevel(book: Book, side: string, price: string, size: string): Book {
  const isBid = side === "BUY";
  const level = { price: units(price), size: units(size) };
  const others = (isBid ? book.bids : book.asks).filter((each) => each.price !== level.price);
  const levels = sorted(level.size === 0n ? others : [...others, level], isBid);
  return isBid ? { ...book, bids: levels } : { ...book, asks: levels };
}

export function midpoint(book: Book): number | null {
  const [bid, ask] = [book.bids[0], book.asks[0]];
  if (bid === undefined || ask === undefined) return book.lastPrice;
  return Number(bid.price + ask.price) / 2 / Number(UNIT);
}

export interface Walk {
  size: bigint;
  cost: bigint;
  worst: bigint | null;
}

/** Return what a taker gets who takes levels until a size, or until a cost, is reached. */
export function walk(levels: Level[], wanted: { size?: bigint; cost?: bigint }): Walk {
  let [size, cost, worst] = [0n, 0n, null as bigint | null];
  for (const level of levels) {
    if (wanted.cost !== undefined && wanted.cost - cost < SIZE_STEP) break; // the rest is rounding
    let take = level.size;
    if (wanted.size !== undefined && size + take > wanted.size) take = wanted.size - size;
    if (wanted.cost !== undefined) {
      const affordable = ((wanted.cost - cost) * UNIT) / level.price;
      if (take > affordable) take = affordable;
    }
    if (take <= 0n) break;
    size += take;
    cost += (take * level.price) / UNIT;
    worst = level.price;
  }
  return { size, cost, worst };
}
