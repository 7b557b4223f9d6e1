// The two amounts of an order, from a price and a size in decimal text. Exact: what no whole number of base units
// expresses is refused. docs/reference/amount-vectors.json has the published vectors.

import { unitsText } from "./amounts.js";

export type Side = "BUY" | "SELL";

export interface OrderAmounts {
  makerAmount: bigint;
  takerAmount: bigint;
}

/** An amount that cannot be expressed; the message says what can. */
export class MalformedAmount extends Error {}

interface Ratio {
  numerator: bigint;
  denominator: bigint;
}

const DECIMAL = /^(\d{1,20})(?:\.(\d{1,18}))?$/;
const UNITS_PER_TOKEN = 1_000_000n;
const AMOUNT_UNITS_MAX = 2n ** 63n - 1n;

function divisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : divisor(b, a % b);
}

function ratio(text: string, field: string): Ratio {
  const matched = DECIMAL.exec(text);
  if (matched === null) throw new MalformedAmount(`${field} must be a decimal number as text, such as "0.4", not ${JSON.stringify(text)}`);
  const part = matched[2] ?? "";
  const [numerator, denominator] = [BigInt(`${matched[1] ?? ""}${part}`), 10n ** BigInt(part.length)];
  const shared = divisor(numerator, denominator);
  return { numerator: numerator / shared, denominator: denominator / shared };
}

function baseUnits(text: string, field: string): bigint {
  const { numerator, denominator } = ratio(text, field);
  const scaled = numerator * UNITS_PER_TOKEN;
  if (scaled % denominator !== 0n || scaled / denominator > AMOUNT_UNITS_MAX) {
    throw new MalformedAmount(`${field} must be a number with at most 6 decimals, not ${text}`);
  }
  return scaled / denominator;
}

function priceOf(text: string): Ratio {
  const price = ratio(text, "price");
  if (price.numerator <= 0n || price.numerator >= price.denominator) throw new MalformedAmount(`price must be between 0 and 1, not ${text}`);
  return price;
}

/** Return the amounts of an order for a size of tokens at a price, in base units. */
export function limitAmounts(side: Side, price: string, size: string): OrderAmounts {
  const { numerator, denominator } = priceOf(price);
  const units = baseUnits(size, "size");
  if (units === 0n || (units * numerator) % denominator !== 0n) {
    const lot = denominator / divisor(numerator, denominator);
    const lower = units - (units % lot);
    throw new MalformedAmount(`size must be a whole number of base units at ${price}, such as ${unitsText(lower > lot ? lower : lot)}`);
  }
  const cost = (units * numerator) / denominator;
  return side === "BUY" ? { makerAmount: cost, takerAmount: units } : { makerAmount: units, takerAmount: cost };
}

/** Return the amounts of a BUY that spends a budget (FOK, FAK); the tokens that it wants are rounded down. */
export function budgetAmounts(price: string, budget: string): OrderAmounts {
  const { numerator, denominator } = priceOf(price);
  const units = baseUnits(budget, "budget");
  const size = (units * denominator) / numerator;
  if (size === 0n) throw new MalformedAmount(`budget must be enough for a base unit of tokens at ${price}`);
  return { makerAmount: units, takerAmount: size };
}
