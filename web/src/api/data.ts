// The data API: positions, trades, holders and activity, as the chain has them.

import { type Answer, get } from "../client/api";
import type { Config } from "../lib/config";

export type Position = Answer<"data", "get", "/positions">[number];
export type Owed = Answer<"data", "get", "/owed">["owed"][number];
export type ClosedPosition = Answer<"data", "get", "/closed-positions">[number];
export type Activity = Answer<"data", "get", "/activity">[number];
export type Trade = Answer<"data", "get", "/trades">[number];
export type Holders = Answer<"data", "get", "/holders">[number];
export type Ranked = Answer<"data", "get", "/v1/leaderboard">[number];
export type Solvency = Answer<"data", "get", "/solvency">["total"];
export type Period = "DAY" | "WEEK" | "MONTH" | "ALL";
export type RankedBy = "PNL" | "VOL";

const ACTIVITY_PAGE = 500;
const ACTIVITY_MAX = 10_000;

export function fetchPositions(config: Config, user: string): Promise<Position[]> {
  return get(config, "data", "/positions", { user, sizeThreshold: 0, limit: 500 });
}

/** Return the first page of what exchanges keep for a wallet; the next one comes when these are claimed. */
export async function fetchOwed(config: Config, user: string): Promise<Owed[]> {
  return (await get(config, "data", "/owed", { user })).owed;
}

export function fetchClosedPositions(config: Config, user: string): Promise<ClosedPosition[]> {
  return get(config, "data", "/closed-positions", { user, limit: 50, sortBy: "TIMESTAMP" });
}

export async function fetchValue(config: Config, user: string): Promise<number> {
  const [entry] = await get(config, "data", "/value", { user });
  return entry?.value ?? 0;
}

export function fetchActivity(config: Config, user: string, limit: number): Promise<Activity[]> {
  return get(config, "data", "/activity", { user, limit });
}

/** Return all of a wallet's activity that the API gives, newest first. */
export async function fetchAllActivity(config: Config, user: string): Promise<Activity[]> {
  const rows: Activity[] = [];
  for (let offset = 0; offset <= ACTIVITY_MAX; offset += ACTIVITY_PAGE) {
    const page = await get(config, "data", "/activity", { user, limit: ACTIVITY_PAGE, offset });
    rows.push(...page);
    if (page.length < ACTIVITY_PAGE) break;
  }
  return rows;
}

export function fetchTrades(config: Config, market: string, limit: number): Promise<Trade[]> {
  return get(config, "data", "/trades", { market: [market], limit });
}

export function fetchHolders(config: Config, market: string): Promise<Holders[]> {
  return get(config, "data", "/holders", { market: [market], limit: 10, minBalance: 0 });
}

export function fetchLeaderboard(config: Config, timePeriod: Period, orderBy: RankedBy): Promise<Ranked[]> {
  return get(config, "data", "/v1/leaderboard", { timePeriod, orderBy, limit: 50 });
}

export async function fetchSolvency(config: Config): Promise<Solvency> {
  return (await get(config, "data", "/solvency", { limit: 0 })).total;
}
