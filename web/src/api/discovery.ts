// The discovery API: events, markets, tags and a search.

import type { Config } from "../lib/config";
import { query, request } from "../lib/http";

interface RawMarket {
  id: string;
  question: string;
  conditionId: string;
  questionID: string;
  slug: string;
  outcomes: string;
  outcomePrices: string;
  clobTokenIds: string;
  volumeNum: number;
  liquidityNum: number;
  closed: boolean;
  closedTime?: string;
  acceptingOrders: boolean;
  groupItemTitle?: string;
  icon: string;
  description: string;
  orderPriceMinTickSize: number;
  orderMinSize: number;
  negRisk: boolean;
  negRiskRequestID?: string;
  negRiskMarketID?: string;
  umaResolutionStatus?: string;
  umaResolutionStatuses?: string;
  resolvedBy: string;
  bestBid?: number;
  bestAsk?: number;
  lastTradePrice?: number;
  oneDayPriceChange?: number;
  sportsMarketType?: string;
  line?: number;
  creator: string;
  events?: { slug: string; title: string; endDate: string }[];
}

export interface Market extends Omit<RawMarket, "outcomes" | "outcomePrices" | "clobTokenIds"> {
  outcomes: [string, string];
  prices: [number, number];
  tokens: [string, string];
  statuses: string[];
}

export interface Tag {
  id: string;
  label: string;
  slug: string;
}

export interface Team {
  name: string;
  abbreviation: string;
  hostStatus: string;
  logo?: string;
}

interface RawEvent {
  id: string;
  slug: string;
  title: string;
  description: string;
  resolutionSource: string;
  startDate: string;
  endDate: string;
  icon: string;
  image: string;
  closed: boolean;
  volume: number;
  volume24hr: number;
  liquidity: number;
  openInterest: number;
  negRisk: boolean;
  markets: RawMarket[];
  tags: Tag[];
  teams?: Team[];
  startTime?: string;
  category: string;
}

export interface Event extends Omit<RawEvent, "markets"> {
  markets: Market[];
}

function marketOf(raw: RawMarket): Market {
  const list = (text: string): string[] => JSON.parse(text) as string[];
  const prices = list(raw.outcomePrices).map(Number);
  return {
    ...raw,
    outcomes: list(raw.outcomes) as [string, string],
    tokens: list(raw.clobTokenIds) as [string, string],
    prices: [prices[0] ?? 0.5, prices[1] ?? 0.5],
    statuses: list(raw.umaResolutionStatuses || "[]"),
  };
}

function eventOf(raw: RawEvent): Event {
  return { ...raw, markets: raw.markets.map(marketOf) };
}

export interface EventFilter {
  tag?: string;
  order: string;
  ascending: boolean;
  closed: boolean;
  offset: number;
  limit: number;
}

export async function fetchEvents(config: Config, filter: EventFilter): Promise<Event[]> {
  const { tag, order, ascending, closed, offset, limit } = filter;
  const parameters = query({ tag_slug: tag, order, ascending, closed, offset, limit });
  return (await request<RawEvent[]>(`${config.apis.discovery}/events${parameters}`)).map(eventOf);
}

export async function searchEvents(config: Config, words: string): Promise<Event[]> {
  const parameters = query({ q: words, limit_per_type: 50, search_tags: false });
  const found = await request<{ events: RawEvent[] }>(`${config.apis.discovery}/public-search${parameters}`);
  return found.events.map(eventOf);
}

export async function fetchEvent(config: Config, slug: string): Promise<Event> {
  return eventOf(await request<RawEvent>(`${config.apis.discovery}/events/slug/${encodeURIComponent(slug)}`));
}

export async function fetchMarkets(config: Config, filter: Record<string, string | number | boolean>): Promise<Market[]> {
  return (await request<RawMarket[]>(`${config.apis.discovery}/markets${query(filter)}`)).map(marketOf);
}

export async function fetchTags(config: Config): Promise<Tag[]> {
  return request<Tag[]>(`${config.apis.discovery}/tags${query({ limit: 100, order: "label", ascending: true })}`);
}

/** Return the markets as they are listed: those of a game in their order, others by their price, open ones first. */
export function byChance(event: Event): Market[] {
  if (event.teams !== undefined && event.teams.length > 0) return event.markets;
  return [...event.markets].sort((a, b) => Number(a.closed) - Number(b.closed) || b.prices[0] - a.prices[0]);
}
