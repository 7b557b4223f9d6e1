// What a ticket's fields mean: the order to sign, and what it costs and pays, or what is missing.

import { SIZE_STEP, UNIT, ceilDivide, floorTo, numberOf, parseUnits } from "../lib/amounts";
import { type Book, walk } from "../lib/book";
import { cents, dollarsOf, shares } from "../lib/format";
import { t } from "../strings";
import type { OrderType, Side, Wanted } from "../wallet/orders";

export interface Form {
  side: Side;
  kind: "market" | "limit";
  limitType: "GTC" | "GTD";
  marketType: "FAK" | "FOK";
  price: string;
  amount: string;
  minutes: string;
  postOnly: boolean;
}

export interface Quote {
  wanted: Wanted;
  size: bigint;
  cost: bigint;
  averagePrice: number;
  fee: bigint;
  /** Tokens that the book fills at once, for a limit order. */
  atOnce: bigint;
}

export const MARKET_BUY_MIN = UNIT;
const SLIPPAGE_TICKS = 2n;
const EXPIRATION_S_MIN = 120;
const BPS = 10_000n;

/** Return the exchange's fee: on the smaller of what is paid and what could be won. */
function feeOf(size: bigint, cost: bigint, feeRateBps: number): bigint {
  const base = cost < size - cost ? cost : size - cost;
  return base <= 0n ? 0n : (BigInt(feeRateBps) * base) / BPS;
}

type Result = { quote: Quote } | { problem: string };

export function quoteOf(form: Form, token: string, book: Book, feeRateBps: number, nowS: number): Result {
  const amount = parseUnits(form.amount);
  if (form.amount.trim() === "") return { problem: "" };
  if (amount === null || amount === 0n) return { problem: t.ticket.badAmount };
  return form.kind === "limit"
    ? limitQuote(form, token, book, feeRateBps, amount, nowS)
    : marketQuote(form, token, book, feeRateBps, amount);
}

function limitQuote(form: Form, token: string, book: Book, feeRateBps: number, amount: bigint, nowS: number): Result {
  const inCents = parseUnits(form.price);
  if (inCents === null || inCents === 0n) return { problem: t.ticket.badPrice };
  const price = inCents / 100n;
  if (price * 100n !== inCents || price % book.tick !== 0n || price <= 0n || price >= UNIT) {
    return { problem: t.ticket.offTick(cents(numberOf(book.tick))) };
  }
  const size = floorTo(amount, SIZE_STEP);
  if (size !== amount) return { problem: t.ticket.twoDecimals };
  if (size < book.minimum) return { problem: t.ticket.tooSmall(shares(numberOf(book.minimum))) };
  const minutes = Number(form.minutes);
  if (form.limitType === "GTD" && !(minutes * 60 >= EXPIRATION_S_MIN)) return { problem: t.ticket.badExpiration };
  const levels = (form.side === "BUY" ? book.asks : book.bids).filter((level) => (form.side === "BUY" ? level.price <= price : level.price >= price));
  const atOnce = walk(levels, { size });
  if (form.postOnly && atOnce.size > 0n) return { problem: t.ticket.wouldCross };
  const rest = size - atOnce.size;
  const cost = atOnce.cost + (form.side === "BUY" ? ceilDivide(rest * price, UNIT) : (rest * price) / UNIT);
  const expirationS = form.limitType === "GTD" ? nowS + Math.round(minutes * 60) : 0;
  return {
    quote: {
      wanted: { side: form.side, type: form.limitType, token, price, amount: size, expirationS, postOnly: form.postOnly },
      size, cost, averagePrice: Number(cost) / Number(size), fee: feeOf(size, cost, feeRateBps), atOnce: atOnce.size,
    },
  };
}

function marketQuote(form: Form, token: string, book: Book, feeRateBps: number, typed: bigint): Result {
  const isBuy = form.side === "BUY";
  const amount = floorTo(typed, SIZE_STEP);
  if (isBuy && amount < MARKET_BUY_MIN) return { problem: t.ticket.notLess(dollarsOf(MARKET_BUY_MIN)) };
  const levels = isBuy ? book.asks : book.bids;
  const filled = walk(levels, isBuy ? { cost: amount } : { size: amount });
  if (filled.worst === null || filled.size === 0n) return { problem: isBuy ? t.ticket.nothingOffered : t.ticket.nobodyBuys };
  const isWhole = isBuy ? amount - filled.cost < SIZE_STEP : filled.size === amount;
  if (!isWhole && form.marketType === "FOK") return { problem: t.ticket.bookTooThin(isBuy ? dollarsOf(filled.cost) : shares(numberOf(filled.size))) };
  const slack = SLIPPAGE_TICKS * book.tick;
  const price = isBuy
    ? (filled.worst + slack < UNIT ? filled.worst + slack : UNIT - book.tick)
    : (filled.worst > slack ? filled.worst - slack : book.tick);
  const type: OrderType = form.marketType;
  return {
    quote: {
      wanted: { side: form.side, type, token, price, amount, expirationS: 0, postOnly: false },
      size: filled.size, cost: filled.cost, averagePrice: Number(filled.cost) / Number(filled.size),
      fee: feeOf(filled.size, filled.cost, feeRateBps), atOnce: filled.size,
    },
  };
}
