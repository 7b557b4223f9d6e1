// The list of markets: search, tags and sort.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { type Event, type Market, fetchEvents, gameOf, fetchTags, searchEvents } from "../api/discovery";
import { fetchHistories } from "../api/trading";
import { useConfig } from "../lib/context";
import { cents, day, percent, shortDollars } from "../lib/format";
import { setParameter, useParameter } from "../lib/router";
import { t } from "../strings";
import { Empty, Icon, Link, Problem } from "../ui/parts";
import { GameLines } from "./game_board";
import { Sparkline } from "../ui/sparkline";
import type { Point } from "../api/trading";

const PAGE = 24;
const TYPING_MS = 250;
const SPARK_TOKENS_MAX = 20;
const ORDERS = [
  { id: "trending", order: "volume24hr", ascending: false, closed: false },
  { id: "newest", order: "startDate", ascending: false, closed: false },
  { id: "volume", order: "volume", ascending: false, closed: false },
  { id: "ending", order: "endDate", ascending: true, closed: false },
  { id: "resolved", order: "closedTime", ascending: false, closed: true },
] as const;

export function MarketsPage() {
  const config = useConfig();
  const words = useParameter("q") ?? "";
  const tag = useParameter("tag") ?? "";
  const sorted = useParameter("sort");
  const sort = ORDERS.find((each) => each.id === sorted) ?? ORDERS[0];
  const [pages, setPages] = useState(1);
  useEffect(() => setPages(1), [words, tag, sort.id]);
  const found = useQuery({
    queryKey: ["events", words, tag, sort.id, pages],
    queryFn: () =>
      words !== ""
        ? searchEvents(config, words)
        : fetchEvents(config, { ...sort, tag, offset: 0, limit: PAGE * pages }),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  });
  const events = found.data ?? [];
  return (
    <div className="page stack loose">
      <div className="stack tight">
        <h1>{t.markets.title}</h1>
        <p className="muted">{t.markets.lead}</p>
      </div>
      <Toolbar words={words} sort={sort.id} />
      <TagChips selected={tag} />
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isPending ? <MarketSkeletons /> : null}
      {found.isSuccess && events.length === 0 ? (
        <Empty title={t.markets.none}><p className="muted">{words === "" ? t.markets.noneYet : t.markets.noMatch(words)}</p></Empty>
      ) : null}
      <EventGrid events={events} />
      {words === "" && events.length === PAGE * pages ? (
        <button type="button" className="button" onClick={() => setPages(pages + 1)}>{t.markets.more}</button>
      ) : null}
    </div>
  );
}

function Toolbar({ words, sort }: { words: string; sort: string }) {
  const [typed, setTyped] = useState(words);
  useEffect(() => {
    if (typed.trim() === words) return;
    const timer = setTimeout(() => setParameter("q", typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed, words]);
  return (
    <div className="toolbar" role="search">
      <label className="search">
        <span className="hidden-label">{t.markets.search}</span>
        <input className="input" type="search" placeholder={t.markets.search} value={typed} maxLength={120} onChange={(event) => setTyped(event.target.value)} />
      </label>
      <label>
        <span className="hidden-label">{t.markets.sortLabel}</span>
        <select className="input" value={sort} onChange={(event) => setParameter("sort", event.target.value)} disabled={words !== ""}>
          {ORDERS.map((each) => <option key={each.id} value={each.id}>{t.markets.sorts[each.id]}</option>)}
        </select>
      </label>
    </div>
  );
}

function TagChips({ selected }: { selected: string }) {
  const config = useConfig();
  const tags = useQuery({ queryKey: ["tags"], queryFn: () => fetchTags(config), staleTime: 60_000 });
  const shown = [{ slug: "", label: t.markets.allTags }, ...(tags.data ?? [])];
  return (
    <div className="chips" role="group" aria-label={t.markets.tags}>
      {shown.map((tag) => (
        <button key={tag.slug} type="button" className="chip" aria-pressed={tag.slug === selected} onClick={() => setParameter("tag", tag.slug)}>
          {tag.label}
        </button>
      ))}
    </div>
  );
}

function MarketSkeletons() {
  return (
    <div className="market-grid" role="status" aria-label={t.loading}>
      {Array.from({ length: 6 }, (_, index) => <div key={index} className="skeleton" style={{ height: "12rem" }} />)}
    </div>
  );
}

function EventGrid({ events }: { events: Event[] }) {
  const config = useConfig();
  const tokens = events.flatMap((event) => (event.markets.length === 1 ? [event.markets[0]?.tokens[0] ?? ""] : [])).slice(0, SPARK_TOKENS_MAX);
  const histories = useQuery({
    queryKey: ["sparklines", tokens],
    queryFn: () => fetchHistories(config, tokens, "1d"),
    enabled: tokens.length > 0,
    staleTime: 60_000,
  });
  return (
    <ul className="market-grid">
      {events.map((event) => (
        <li key={event.id}>
          <EventCard event={event} points={histories.data?.[event.markets[0]?.tokens[0] ?? ""] ?? []} />
        </li>
      ))}
    </ul>
  );
}

/** The prices of both outcomes on a card; of a resolved market, what they paid. */
function OutcomePrices({ market }: { market: Market }) {
  return (
    <div className="row">
      {market.outcomes.map((name, index) => (
        <span key={name} className={`outcome slim ${index === 0 ? "yes" : "no"}`}><span className="clip">{name}</span><span>{cents(market.prices[index] ?? 0.5)}</span></span>
      ))}
    </div>
  );
}

function EventCard({ event, points }: { event: Event; points: Point[] }) {
  const [market] = event.markets;
  const game = gameOf(event);
  const isGroup = event.markets.length > 1;
  const top = [...event.markets].sort((a, b) => b.prices[0] - a.prices[0]).slice(0, 3);
  return (
    <Link to={`/event/${event.slug}`} className="card market-card">
      <div className="row" style={{ alignItems: "flex-start" }}>
        <Icon url={event.icon} title={event.title} />
        <h2 className="grow two-lines">{event.title}</h2>
        {!isGroup && market ? <span className="chance" title={t.markets.chance}>{percent(market.prices[0])}</span> : null}
      </div>
      {game !== null ? <GameLines event={event} game={game} /> : isGroup ? (
        <ul className="stack tight grow">
          {top.map((each) => (
            <li key={each.id} className="row spread">
              <span className="clip">{each.groupItemTitle || each.question}</span>
              <span className="strong">{percent(each.prices[0])}</span>
            </li>
          ))}
          {event.markets.length > 3 ? <li className="muted small">{t.markets.moreOutcomes(event.markets.length - 3)}</li> : null}
        </ul>
      ) : (
        <div className="grow stack" style={{ justifyContent: "flex-end" }}>
          {points.length < 2 ? null : <Sparkline points={points} label={t.markets.sparkline(event.title)} />}
          {market === undefined ? null : <OutcomePrices market={market} />}
        </div>
      )}
      <div className="row spread muted small">
        <span>{t.markets.volume(shortDollars(event.volume))}</span>
        {event.closed ? <span className="badge">{t.markets.resolved}</span> : <span>{t.markets.ends(day(event.endDate))}</span>}
      </div>
    </Link>
  );
}
