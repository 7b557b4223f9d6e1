// A wallet's profit over time, from what it did on the chain and from the prices of its tokens.

import type { Activity, Position } from "../api/data";
import type { Point } from "../api/trading";

interface Tokens {
  eventSlug: string;
  conditionId: string;
  assets: [string, string];
}

/** Return both tokens of each condition, in the order of its outcomes. */
function tokensByCondition(positions: Position[]): Map<string, Tokens> {
  return new Map(
    positions.map((position) => {
      const { asset, oppositeAsset, outcomeIndex, conditionId, eventSlug } = position;
      const assets: [string, string] = outcomeIndex === 0 ? [asset, oppositeAsset] : [oppositeAsset, asset];
      return [conditionId, { eventSlug, conditionId, assets }];
    }),
  );
}

/** Change holdings by one row, and return the cash that it brought. */
function applied(row: Activity, tokens: Tokens | undefined, held: Map<string, number>): number {
  const add = (asset: string | undefined, size: number): void => {
    if (asset !== undefined) held.set(asset, (held.get(asset) ?? 0) + size);
  };
  const both = tokens?.assets ?? [];
  switch (row.type) {
    case "TRADE": {
      const sign = row.side === "BUY" ? 1 : -1;
      add(tokens?.assets[row.outcomeIndex ?? 0], sign * row.size);
      return -sign * row.usdcSize;
    }
    case "SPLIT":
      for (const asset of both) add(asset, row.size);
      return -row.usdcSize;
    case "MERGE":
      for (const asset of both) add(asset, -row.size);
      return row.usdcSize;
    case "REDEEM":
      for (const asset of both) held.set(asset, 0);
      return row.usdcSize;
    default:
      return row.usdcSize;
  }
}

/** Change holdings by a conversion: of the event's No tokens those that are held are given, of others the Yes comes. */
function convert(row: Activity, tokens: Tokens[], held: Map<string, number>): void {
  const amount = row.size - row.usdcSize; // so many were given once more than they were paid
  if (amount <= 0) return;
  let given = Math.round(row.size / amount);
  for (const { assets: [yes, no] } of tokens.filter((each) => each.eventSlug === row.eventSlug)) {
    const has = held.get(no) ?? 0;
    if (given > 0 && has >= amount) {
      held.set(no, has - amount);
      given -= 1;
    } else held.set(yes, (held.get(yes) ?? 0) + amount);
  }
}

/** Return the last price before a time, or where there is none the price that a complete set's half costs. */
function priceAt(points: Point[], t: number): number {
  let price = 0.5;
  for (const point of points) {
    if (point.t > t) break;
    price = point.p;
  }
  return price;
}

/** Return profit by time: cash out less cash in, plus what is held at the prices of that time. */
export function profitOverTime(
  activity: Activity[],
  positions: Position[],
  histories: Record<string, Point[]>,
  nowS: number,
): Point[] {
  const tokens = tokensByCondition(positions);
  const rows = [...activity].sort((a, b) => a.timestamp - b.timestamp);
  const first = rows[0];
  if (first === undefined) return [];
  const times = new Set(rows.map((row) => row.timestamp));
  for (const points of Object.values(histories)) for (const point of points) if (point.t > first.timestamp) times.add(point.t);
  const held = new Map<string, number>();
  let [cash, next] = [0, 0];
  const result: Point[] = [{ t: first.timestamp - 1, p: 0 }];
  for (const t of [...times].sort((a, b) => a - b)) {
    for (; next < rows.length && (rows[next]?.timestamp ?? 0) <= t; next += 1) {
      const row = rows[next];
      if (row?.type === "CONVERSION") convert(row, [...tokens.values()], held);
      if (row !== undefined) cash += applied(row, tokens.get(row.conditionId), held);
    }
    let value = 0;
    for (const [asset, size] of held) value += size * priceAt(histories[asset] ?? [], t);
    result.push({ t, p: cash + value });
  }
  const now = positions.reduce((sum, position) => sum + position.currentValue, 0);
  return [...result, { t: Math.max(nowS, (result.at(-1)?.t ?? 0) + 1), p: cash + now }];
}
