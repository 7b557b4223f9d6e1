// A game as it is drafted, and the part of a payload that makes its markets.

export interface TeamDraft {
  name: string;
  short: string;
}

export interface GameMarketDraft {
  id: string;
  title: string;
  question: string;
  first: string;
  second: string;
}

export interface GameDraft {
  home: TeamDraft;
  away: TeamDraft;
  sport: string;
  league: string;
  /** In the browser's time zone, as its field gives it. */
  start: string;
  draw: boolean;
  bothScore: boolean;
  /** Lines separated by commas: the home team's handicaps, and totals. */
  spreads: string;
  totals: string;
  provider: string;
  providerId: string;
  livestream: string;
  markets: GameMarketDraft[];
}

export const GAME_MARKETS_MAX = 20;
const SHORT_MAX = 3;
const GAME_MS = 3 * 3_600_000;

export function newGame(): GameDraft {
  return {
    home: { name: "", short: "" }, away: { name: "", short: "" }, sport: "", league: "", start: "", draw: true, bothScore: false,
    spreads: "", totals: "", provider: "", providerId: "", livestream: "", markets: [],
  };
}

export function newGameMarket(others: GameMarketDraft[]): GameMarketDraft {
  const numbers = others.map((market) => Number(market.id.split("-").at(-1)));
  return { id: `market-${Math.max(0, ...numbers) + 1}`, title: "", question: "", first: "Yes", second: "No" };
}

/** Return the end of an event whose game starts then: the present end, unless the game would not be over. */
export function endAfter(start: string, end: string): string {
  const over = new Date(new Date(start).getTime() + GAME_MS);
  if (Number.isNaN(over.getTime()) || new Date(end) >= over) return end;
  return new Date(over.getTime() - over.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Return what a scoreboard calls a team: what was typed, or the beginning of its name. */
export function shortOf(team: TeamDraft): string {
  return team.short.trim() || team.name.replace(/\s+/g, "").slice(0, SHORT_MAX).toUpperCase();
}

/** Return the title of a game whose title was not typed. */
export function titleOf(game: GameDraft): string {
  const [home, away] = [game.home.name.trim(), game.away.name.trim()];
  return home === "" || away === "" ? "" : `${home} – ${away}`;
}

/** Return the tags that a game gives by itself. */
export function gameTags(game: GameDraft): string[] {
  return ["Sports", game.sport, game.league, game.home.name, game.away.name].map((tag) => tag.trim()).filter((tag) => tag !== "");
}

function linesOf(text: string): string[] {
  return text.split(",").map((line) => line.trim().replace("−", "-")).filter((line) => line !== "");
}

function instantOf(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString();
}

/** Return the fields that are not empty. */
function typed(fields: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}

/** Return the sports part of a payload: a standard template, and the markets that were added to it. */
export function sportsOf(game: GameDraft, slugOf: (title: string) => string): object {
  const team = (side: "home" | "away") => ({ name: game[side].name.trim(), abbreviation: shortOf(game[side]), host_status: side });
  const [spreadLines, totalLines] = [linesOf(game.spreads), linesOf(game.totals)];
  const start = instantOf(game.start);
  return {
    section: "games", eventVariant: "standard",
    ...typed({
      sourceProvider: game.provider.trim(), sourceEventId: game.providerId.trim(), livestreamUrl: game.livestream.trim(),
      sportSlug: slugOf(game.sport), leagueSlug: slugOf(game.league), sourceLeagueLabel: game.league.trim(),
      eventDate: start.slice(0, 10), startTime: start,
    }),
    teams: [team("home"), team("away")],
    template: {
      includeDraw: game.draw, includeBothTeamsToScore: game.bothScore, includeSpreads: spreadLines.length > 0,
      includeTotals: totalLines.length > 0, spreadLines, totalLines,
    },
    markets: game.markets.map((market) => ({
      id: market.id, title: market.title.trim(), shortName: market.title.trim(), slug: slugOf(market.title),
      question: market.question.trim(), outcomes: [market.first.trim(), market.second.trim()],
    })),
  };
}
