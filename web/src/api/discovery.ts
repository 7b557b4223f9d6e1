// The discovery API: events, markets, tags and a search.

import { type Answer, get } from "../client/api";
import type { Config } from "../lib/config";

type RawEvent = Answer<"discovery", "get", "/events/slug/{slug}">;
type RawMarket = NonNullable<RawEvent["markets"]>[number];
export type Tag = Answer<"discovery", "get", "/tags">[number];
export type Team = NonNullable<RawEvent["teams"]>[number];

export interface Market extends Omit<RawMarket, "outcomes" | "outcomePrices" | "clobTokenIds"> {
  outcomes: [string, string];
  prices: [number, number];
  tokens: [string, string];
  statuses: string[];
}

export interface Event extends Omit<RawEvent, "markets" | "tags"> {
  markets: Market[];
  tags: Tag[];
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
  return { ...raw, markets: (raw.markets ?? []).map(marketOf), tags: raw.tags ?? [] };
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
  const tags = tag === undefined || tag === "" ? undefined : [tag];
  return (await get(config, "discovery", "/events", { tag_slug: tags, order: [order], ascending, closed, offset, limit })).map(eventOf);
}

export async function searchEvents(config: Config, words: string): Promise<Event[]> {
  const found = await get(config, "discovery", "/public-search", { q: words, limit_per_type: 50, search_tags: false });
  return found.events.map(eventOf);
}

export async function fetchEvent(config: Config, slug: string): Promise<Event> {
  return eventOf(await get(config, "discovery", "/events/slug/{slug}", {}, { slug }));
}

export async function fetchMarkets(config: Config, conditions: string[], limit: number): Promise<Market[]> {
  return (await get(config, "discovery", "/markets", { condition_ids: conditions, limit })).map(marketOf);
}

export async function fetchTags(config: Config): Promise<Tag[]> {
  return get(config, "discovery", "/tags", { limit: 100, order: ["label"], ascending: true });
}

export interface Game {
  home: Team;
  away: Team;
  league: string;
  startMs: number | null;
  livestreamUrl: string | null;
}

/** Return the game that an event is, or null. */
export function gameOf(event: Event): Game | null {
  const home = event.teams?.find((team) => team.hostStatus === "home");
  const away = event.teams?.find((team) => team.hostStatus === "away");
  if (home === undefined || away === undefined) return null;
  return {
    home, away, league: event.eventMetadata?.leagueLabel ?? event.series?.[0]?.title ?? "",
    startMs: event.startTime === undefined ? null : Date.parse(event.startTime),
    livestreamUrl: event.eventMetadata?.livestreamUrl ?? null,
  };
}

export const MONEYLINE = "moneyline";

/** Return the markets for the winner of a game: the home team's, perhaps one for a draw, and the away team's. */
export function winnerMarkets(event: Event): Market[] {
  const markets = event.markets.filter((market) => market.sportsMarketType === MONEYLINE);
  const rank = (market: Market): number => (market.slug.endsWith("-home") ? 0 : market.slug.endsWith("-draw") ? 1 : 2);
  return markets.sort((a, b) => rank(a) - rank(b));
}

/** Return the markets of a game by their kind, in the order of the first of each. */
export function byType(event: Event): [string, Market[]][] {
  const groups = new Map<string, Market[]>();
  for (const market of event.markets) {
    const type = market.sportsMarketType ?? "";
    groups.set(type, [...(groups.get(type) ?? []), market]);
  }
  return [...groups];
}

/** Return the markets as they are listed: those of a game in their order, others by their price, open ones first. */
export function byChance(event: Event): Market[] {
  if (event.teams !== undefined && event.teams.length > 0) return event.markets;
  return [...event.markets].sort((a, b) => Number(a.closed) - Number(b.closed) || b.prices[0] - a.prices[0]);
}
