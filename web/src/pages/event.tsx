// The page of an event: its price history, its markets, books, trades and rules, and the ticket.

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";

import { type Event, type Market, byChance, fetchEvent } from "../api/discovery";
import { useConfig } from "../lib/context";
import { day, percent, shortDollars } from "../lib/format";
import { type LiveMarkets, useLiveMarkets } from "../lib/live_market";
import { setParameter, useParameter } from "../lib/router";
import { t } from "../strings";
import { EventChart } from "../ui/event_chart";
import { Icon, Link, Problem, Skeleton, Tabs } from "../ui/parts";
import { MarketActivity, MarketHolders, MarketRules } from "./event_details";
import { OutcomeList } from "./event_outcomes";
import { BookPanel } from "./order_book";
import { GameBoard } from "./game_board";
import { SetsPanel } from "./sets_panel";
import { Ticket, type Draft } from "./ticket";
import { MarketOrders } from "./market_orders";

const TOKENS_LIVE_MAX = 100;

export function EventPage({ slug }: { slug: string }) {
  const config = useConfig();
  const event = useQuery({
    queryKey: ["event", slug],
    queryFn: () => fetchEvent(config, slug),
    refetchInterval: 15_000,
  });
  if (event.isError && event.data === undefined) {
    return <div className="page narrow stack"><Problem error={event.error} onRetry={() => void event.refetch()} /><Link to="/" className="link">{t.backToMarkets}</Link></div>;
  }
  if (event.data === undefined) return <div className="page"><Skeleton height="6rem" count={4} /></div>;
  return <LoadedEvent key={event.data.slug} event={event.data} />;
}

/** Return the chosen market and outcome. Without a choice it is the market that was the likeliest when the page came: book and ticket stay its own. */
function useSelection(event: Event): [Market, number, (market: Market, index: number) => void] {
  const [likeliest] = useState(() => byChance(event)[0]?.slug);
  const wanted = useParameter("market");
  const index = useParameter("outcome") === "1" ? 1 : 0;
  const market = event.markets.find((each) => each.slug === wanted) ?? event.markets.find((each) => each.slug === likeliest) ?? event.markets[0];
  if (market === undefined) throw new Error(`the event ${event.slug} has no market`);
  const select = (next: Market, outcome: number): void => {
    if (next.slug !== market.slug) setParameter("market", next.slug);
    setParameter("outcome", outcome === 0 ? null : "1");
  };
  return [market, index, select];
}

function LoadedEvent({ event }: { event: Event }) {
  const [market, outcome, select] = useSelection(event);
  const tokens = useMemo(
    () => event.markets.flatMap((each) => each.tokens).slice(0, TOKENS_LIVE_MAX),
    [event.markets.map((each) => each.id).join(",")],
  );
  const live = useLiveMarkets(tokens);
  const [draft, setDraft] = useState<Draft>({ side: "BUY", price: null, serial: 0 });
  useDocumentTitle(event.title);
  return (
    <div className="page">
      <div className="event-layout">
        <div className="stack loose">
          <EventHead event={event} />
          <EventChart event={event} live={live} />
          {event.markets.length > 1 ? (
            <OutcomeList event={event} selected={market} outcome={outcome} live={live} onSelect={select} />
          ) : null}
          <BookPanel
            market={market} outcome={outcome} live={live}
            onOutcome={(index) => select(market, index)}
            onPrice={(side, price) => setDraft({ side, price, serial: draft.serial + 1 })}
          />
          <MarketOrders market={market} />
          <Details event={event} market={market} />
        </div>
        <aside className="event-side stack" id="trade" aria-label={t.ticket.title}>
          <Ticket key={market.conditionId} market={market} outcome={outcome} live={live} draft={draft} onOutcome={(index) => select(market, index)} />
          <SetsPanel market={market} />
          <LiveState live={live} />
        </aside>
      </div>
      <a className="button solid trade-jump" href="#trade">{t.ticket.title}</a>
    </div>
  );
}

function useDocumentTitle(title: string): void {
  const before = useRef(document.title);
  useEffect(() => {
    const original = before.current;
    document.title = `${title} · Foretell`;
    return () => {
      document.title = original;
    };
  }, [title]);
}

function EventHead({ event }: { event: Event }) {
  const [market] = event.markets;
  return (
    <header className="stack">
      <div className="row" style={{ gap: "var(--s4)", alignItems: "flex-start" }}>
        <Icon url={event.image} title={event.title} size="large" />
        <div className="stack tight grow">
          <div className="row wraps">
            {event.tags.slice(0, 4).map((tag) => <Link key={tag.id} to={`/?tag=${tag.slug}`} className="badge">{tag.label}</Link>)}
            {event.closed ? <span className="badge yes">{t.markets.resolved}</span> : null}
            {event.markets.some((each) => !each.closed && !each.acceptingOrders) ? <span className="badge caution">{t.halt.badge}</span> : null}
          </div>
          <h1>{event.title}</h1>
        </div>
        {event.markets.length === 1 && market ? (
          <div className="stack tight" style={{ textAlign: "right" }}>
            <span className="chance">{percent(market.prices[0])}</span>
            <span className="muted small">{market.outcomes[0]}</span>
          </div>
        ) : null}
      </div>
      <GameBoard event={event} />
      <div className="row wraps muted small" style={{ gap: "var(--s4)" }}>
        <span>{t.markets.volume(shortDollars(event.volume))}</span>
        <span>{t.event.liquidity(shortDollars(event.liquidity))}</span>
        <span>{t.event.openInterest(shortDollars(event.openInterest))}</span>
        <span>{t.markets.ends(day(event.endDate))}</span>
      </div>
    </header>
  );
}

function Details({ event, market }: { event: Event; market: Market }) {
  const [tab, setTab] = useState("rules");
  const items = [
    { id: "rules", label: t.event.rules },
    { id: "activity", label: t.event.activity },
    { id: "holders", label: t.event.holders },
  ];
  return (
    <section className="stack">
      <Tabs items={items} selected={tab} onSelect={setTab} label={t.event.details} />
      {tab === "rules" ? <MarketRules event={event} market={market} /> : null}
      {tab === "activity" ? <MarketActivity market={market} /> : null}
      {tab === "holders" ? <MarketHolders market={market} /> : null}
    </section>
  );
}

function LiveState({ live }: { live: LiveMarkets }) {
  return (
    <p className="row small muted" aria-live="polite" data-stream={live.state}>
      <span className={`dot ${live.state}`} aria-hidden="true" />
      {t.event.streams[live.state]}
    </p>
  );
}
