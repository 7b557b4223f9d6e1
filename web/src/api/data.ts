// The data API: positions, trades, holders and activity, as the chain has them.

import type { Config } from "../lib/config";
import { query, request } from "../lib/http";

export interface Position {
  proxyWallet: string;
  asset: string;
  conditionId: string;
  size: number;
  avgPrice: number;
  initialValue: number;
  currentValue: number;
  cashPnl: number;
  percentPnl: number;
  realizedPnl: number;
  totalBoughtUsdc: number;
  curPrice: number;
  redeemable: boolean;
  mergeable: boolean;
  title: string;
  slug: string;
  icon: string;
  eventSlug: string;
  outcome: string;
  outcomeIndex: number;
  oppositeAsset: string;
  negativeRisk: boolean;
  timestamp: number;
}

export interface Activity {
  proxyWallet: string;
  type: "TRADE" | "SPLIT" | "MERGE" | "REDEEM" | "CONVERSION";
  side: "BUY" | "SELL" | null;
  size: number;
  price: number | null;
  usdcSize: number;
  timestamp: number;
  transactionHash: string;
  title: string;
  eventSlug: string;
  outcome: string;
  outcomeIndex: number | null;
  conditionId: string;
}

export interface Holders {
  token: string;
  holders: { proxyWallet: string; amount: number; outcomeIndex: number }[];
}

export interface Ranked {
  rank: string;
  proxyWallet: string;
  vol: number;
  pnl: number;
}

const ACTIVITY_PAGE = 500;
const ACTIVITY_MAX = 10_000;

export function fetchPositions(config: Config, user: string): Promise<Position[]> {
  return request(`${config.apis.data}/positions${query({ user, sizeThreshold: 0, limit: 500 })}`);
}

export function fetchClosedPositions(config: Config, user: string): Promise<Position[]> {
  return request(`${config.apis.data}/closed-positions${query({ user, limit: 50, sortBy: "TIMESTAMP" })}`);
}

export async function fetchValue(config: Config, user: string): Promise<number> {
  const [entry] = await request<{ value: number }[]>(`${config.apis.data}/value${query({ user })}`);
  return entry?.value ?? 0;
}

export function fetchActivity(config: Config, user: string, limit: number): Promise<Activity[]> {
  return request(`${config.apis.data}/activity${query({ user, limit })}`);
}

/** Return all of a wallet's activity that the API gives, newest first. */
export async function fetchAllActivity(config: Config, user: string): Promise<Activity[]> {
  const rows: Activity[] = [];
  for (let offset = 0; offset <= ACTIVITY_MAX; offset += ACTIVITY_PAGE) {
    const parameters = query({ user, limit: ACTIVITY_PAGE, offset });
    const page = await request<Activity[]>(`${config.apis.data}/activity${parameters}`);
    rows.push(...page);
    if (page.length < ACTIVITY_PAGE) break;
  }
  return rows;
}

export function fetchTrades(config: Config, market: string, limit: number): Promise<Activity[]> {
  return request(`${config.apis.data}/trades${query({ market, limit })}`);
}

export function fetchHolders(config: Config, market: string): Promise<Holders[]> {
  return request(`${config.apis.data}/holders${query({ market, limit: 10, minBalance: 0 })}`);
}

export function fetchLeaderboard(config: Config, timePeriod: string, orderBy: string): Promise<Ranked[]> {
  return request(`${config.apis.data}/v1/leaderboard${query({ timePeriod, orderBy, limit: 50 })}`);
}
