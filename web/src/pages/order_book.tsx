// The live book of one outcome: levels, depth and trades.

import { useState } from "react";

import type { Market } from "../api/discovery";
import { UNIT, numberOf } from "../lib/amounts";
import { type Book, type Level } from "../lib/book";
import { cents, dollars, shares, time } from "../lib/format";
import type { LiveMarkets } from "../lib/live_market";
import { t } from "../strings";
import { Segments, Skeleton, Tabs } from "../ui/parts";

const LEVELS_SHOWN = 10;
const DEPTH_WIDTH = 600;
const DEPTH_HEIGHT = 140;

type PickPrice = (side: "BUY" | "SELL", price: bigint) => void;

export function BookPanel({ market, outcome, live, onOutcome, onPrice }: {
  market: Market; outcome: number; live: LiveMarkets; onOutcome: (index: number) => void; onPrice: PickPrice;
}) {
  const [tab, setTab] = useState("book");
  const book = live.books[market.tokens[outcome] ?? ""];
  const items = [
    { id: "book", label: t.book.title },
    { id: "depth", label: t.book.depth },
    { id: "trades", label: t.book.trades },
  ];
  if (market.closed) return null;
  return (
    <section className="card stack" aria-label={t.book.title}>
      <div className="row spread wraps">
        <Tabs items={items} selected={tab} onSelect={setTab} label={t.book.title} />
        <Segments
          options={market.outcomes.map((name, index) => ({ value: String(index), label: name }))}
          value={String(outcome)} onChange={(value) => onOutcome(Number(value))} label={t.book.outcome}
        />
      </div>
      {book === undefined && live.state !== "lost" ? <Skeleton height="10rem" /> : null}
      {book === undefined && live.state === "lost" ? <p className="muted">{t.event.streams.lost}</p> : null}
      {book !== undefined && tab === "book" ? <Levels book={book} onPrice={onPrice} /> : null}
      {book !== undefined && tab === "depth" ? <Depth book={book} /> : null}
      {tab === "trades" ? <Trades market={market} live={live} /> : null}
    </section>
  );
}

function Levels({ book, onPrice }: { book: Book; onPrice: PickPrice }) {
  const [bid, ask] = [book.bids[0], book.asks[0]];
  if (bid === undefined && ask === undefined) return <p className="muted">{t.book.empty}</p>;
  return (
    <div className="stack">
      <div className="book">
        <Side levels={book.bids} kind="bid" onPick={(price) => onPrice("SELL", price)} />
        <Side levels={book.asks} kind="ask" onPick={(price) => onPrice("BUY", price)} />
      </div>
      <div className="row wraps muted small" style={{ gap: "var(--s4)" }}>
        {bid && ask ? <span>{t.book.spread(cents(numberOf(ask.price - bid.price)))}</span> : null}
        {book.lastPrice !== null ? <span>{t.book.last(cents(book.lastPrice))}</span> : null}
        <span>{t.book.tick(cents(numberOf(book.tick)))}</span>
      </div>
    </div>
  );
}

function Side({ levels, kind, onPick }: { levels: Level[]; kind: "bid" | "ask"; onPick: (price: bigint) => void }) {
  const shown = levels.slice(0, LEVELS_SHOWN);
  const largest = shown.reduce((most, level) => (level.size > most ? level.size : most), 1n);
  return (
    <div className="book-side" data-side={kind}>
      <div className="level level-head">
        <span>{kind === "bid" ? t.book.bid : t.book.ask}</span>
        <span className="number">{t.book.shares}</span>
        <span className="number">{t.book.total}</span>
      </div>
      {shown.map((level) => (
        <button key={level.price.toString()} type="button" className={`level ${kind}`} onClick={() => onPick(level.price)}
          title={t.book.level(cents(numberOf(level.price)), shares(numberOf(level.size)))}>
          <i style={{ width: `${Number((level.size * 100n) / largest)}%` }} />
          <span className={kind === "bid" ? "yes" : "no"}>{cents(numberOf(level.price))}</span>
          <span className="number">{shares(numberOf(level.size))}</span>
          <span className="number">{dollars(numberOf((level.size * level.price) / UNIT))}</span>
        </button>
      ))}
      {shown.length === 0 ? <span className="muted small level-none">{kind === "bid" ? t.book.noBids : t.book.noAsks}</span> : null}
    </div>
  );
}

/** Return a staircase from the best price outwards: the size that is offered up to each price. */
function staircase(levels: Level[], largest: number): string {
  const points: string[] = [];
  let [sum, y] = [0, DEPTH_HEIGHT];
  levels.forEach((level, index) => {
    const x = numberOf(level.price) * DEPTH_WIDTH;
    if (index === 0) points.push(`${x},${DEPTH_HEIGHT}`);
    else points.push(`${x},${y}`);
    sum += numberOf(level.size);
    y = DEPTH_HEIGHT - (sum / largest) * (DEPTH_HEIGHT - 8);
    points.push(`${x},${y}`);
  });
  return points.join(" ");
}

function Depth({ book }: { book: Book }) {
  const total = (levels: Level[]): number => levels.reduce((sum, level) => sum + numberOf(level.size), 0);
  const largest = Math.max(total(book.bids), total(book.asks), 1);
  if (book.bids.length + book.asks.length === 0) return <p className="muted">{t.book.empty}</p>;
  const close = (line: string, edge: number): string => (line === "" ? "" : `${line} ${edge},${line.split(" ").at(-1)?.split(",")[1]} ${edge},${DEPTH_HEIGHT}`);
  return (
    <figure className="stack tight">
      <svg className="depth" viewBox={`0 0 ${DEPTH_WIDTH} ${DEPTH_HEIGHT}`} preserveAspectRatio="none" role="img"
        aria-label={t.book.depthOf(shares(total(book.bids)), shares(total(book.asks)))}>
        <polygon points={close(staircase(book.bids, largest), 0)} fill="var(--yes-wash)" stroke="var(--yes)" vectorEffect="non-scaling-stroke" />
        <polygon points={close(staircase(book.asks, largest), DEPTH_WIDTH)} fill="var(--no-wash)" stroke="var(--no)" vectorEffect="non-scaling-stroke" />
      </svg>
      <figcaption className="row spread muted small"><span>0¢</span><span>50¢</span><span>100¢</span></figcaption>
    </figure>
  );
}

function Trades({ market, live }: { market: Market; live: LiveMarkets }) {
  const trades = live.trades.filter((trade) => market.tokens.includes(trade.token));
  if (trades.length === 0) return <p className="muted">{t.book.noTrades}</p>;
  return (
    <div className="scrolls">
      <table>
        <thead><tr><th>{t.book.time}</th><th>{t.book.side}</th><th className="number">{t.book.price}</th><th className="number">{t.book.shares}</th></tr></thead>
        <tbody>
          {trades.map((trade) => (
            <tr key={trade.id}>
              <td>{time(trade.timestampMs / 1000)}</td>
              <td className={trade.side === "BUY" ? "yes" : "no"}>{t.side[trade.side]} {market.outcomes[market.tokens.indexOf(trade.token)]}</td>
              <td className="number">{cents(trade.price)}</td>
              <td className="number">{shares(trade.size)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

