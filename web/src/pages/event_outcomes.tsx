// The markets of an event as one distribution, each with its prices.

import { type Event, type Market, byChance, byType, gameOf } from "../api/discovery";
import { type Book, midpoint } from "../lib/book";
import { numberOf } from "../lib/amounts";
import { cents, percent, shortDollars } from "../lib/format";
import type { LiveMarkets } from "../lib/live_market";
import { t } from "../strings";
import { Icon } from "../ui/parts";

const SUM_SHOWN_FROM = 2;

export function livePrice(market: Market, live: LiveMarkets): number {
  const book = live.books[market.tokens[0]];
  if (market.closed || book === undefined) return market.prices[0];
  return midpoint(book) ?? market.prices[0];
}

/** Return what buying costs at once: the best offer, a dash if there is none, the listed price before the book is known. */
export function askOf(book: Book | undefined, fallback: number): string {
  if (book === undefined) return cents(fallback);
  const ask = book.asks[0];
  return ask === undefined ? "–" : cents(numberOf(ask.price));
}

export function OutcomeList({ event, selected, outcome, live, onSelect }: {
  event: Event; selected: Market; outcome: number; live: LiveMarkets; onSelect: (market: Market, outcome: number) => void;
}) {
  const groups: [string, Market[]][] = gameOf(event) === null ? [["", byChance(event)]] : byType(event);
  const hasIcons = event.markets.some((market) => market.icon !== event.icon);
  const sum = event.markets.reduce((total, market) => total + livePrice(market, live), 0);
  return (
    <section className="stack" aria-label={t.event.outcomes}>
      <div className="row spread">
        <h2>{t.event.outcomes}</h2>
        {event.negRisk && event.markets.length >= SUM_SHOWN_FROM ? <span className="muted small">{t.event.sum(percent(Math.min(sum, 9.99)))}</span> : null}
      </div>
      {groups.map(([type, markets]) => (
        <div key={type} className="stack tight">
          {groups.length > 1 ? <h3>{kindOf(type)}</h3> : null}
          <div className="card flush" data-closed={event.closed || undefined}>
            {markets.map((market) => (
              <OutcomeRow
                key={market.id} market={market} icon={hasIcons ? ownIcon(event, market) : null} live={live} isSelected={market.id === selected.id}
                outcome={outcome} onSelect={onSelect}
              />
            ))}
          </div>
        </div>
      ))}
    </section>
  );
}

/** Return the heading of a kind of sports market; a kind without a text is its own name. */
function kindOf(type: string): string {
  const words = type.replaceAll("_", " ");
  return t.event.kinds[type] ?? words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** Return the picture of a market, empty if it has the event's: its letter says more. */
function ownIcon(event: Event, market: Market): string {
  return market.icon === event.icon ? "" : market.icon;
}

function OutcomeRow({ market, icon, live, isSelected, outcome, onSelect }: {
  market: Market; icon: string | null; live: LiveMarkets; isSelected: boolean; outcome: number; onSelect: (market: Market, outcome: number) => void;
}) {
  const price = livePrice(market, live);
  const name = market.groupItemTitle || market.question;
  return (
    <div className="bar-row" data-selected={isSelected}>
      <div className="stack tight" style={{ minWidth: 0 }}>
        <span className="row">{market.closed || market.acceptingOrders ? null : <span className="badge caution">{t.halt.badge}</span>}{icon === null ? null : <Icon url={icon} title={name} size="mini" />}<span className="strong clip">{name}</span></span>
        <span className="muted small">{t.markets.volume(shortDollars(market.volumeNum))}</span>
      </div>
      <div className="bar" aria-hidden="true"><i style={{ width: `${Math.round(price * 100)}%` }} /></div>
      <span className="strong number">{percent(price)}</span>
      {market.closed ? (
        <span className={`badge ${market.prices[0] >= 0.5 ? "yes" : "no"}`}>{market.prices[0] === 0.5 ? t.event.split : market.outcomes[market.prices[0] > 0.5 ? 0 : 1]}</span>
      ) : (
        <div className="row">
          {[0, 1].map((index) => (
            <button
              key={index} type="button" className={`outcome ${index === 0 ? "yes" : "no"}`}
              aria-pressed={isSelected && outcome === index}
              onClick={() => onSelect(market, index)}
            >
              <span className="clip"><span className="hidden-label">{t.event.pick(name)}</span>{market.outcomes[index]}</span>
              <span>{askOf(live.books[market.tokens[index] ?? ""], market.prices[index] ?? 0.5)}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
