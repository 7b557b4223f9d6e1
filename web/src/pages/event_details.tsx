// A market's rules, its settled trades and its largest holders.

import { useQuery } from "@tanstack/react-query";

import { fetchHolders, fetchTrades } from "../api/data";
import type { Event, Market } from "../api/discovery";
import { useConfig } from "../lib/context";
import { cents, dollars, moment, shares, shortAddress } from "../lib/format";
import { t } from "../strings";
import { Link, Problem, Skeleton } from "../ui/parts";
import { ResolutionTimeline } from "./event_timeline";

const TRADES_SHOWN = 30;

export function MarketRules({ event, market }: { event: Event; market: Market }) {
  return (
    <div className="card stack">
      {event.markets.length > 1 ? <h3>{market.question}</h3> : null}
      <p className="rules">{market.description}</p>
      <dl className="facts">
        <dt>{t.event.source}</dt>
        <dd>
          {event.resolutionSource === "" ? t.event.noSource : (
            <a className="link" href={event.resolutionSource} target="_blank" rel="noopener noreferrer nofollow">{event.resolutionSource}</a>
          )}
        </dd>
        <dt>{t.event.creator}</dt><dd><Link to={`/portfolio/${market.creator}`} className="link">{shortAddress(market.creator)}</Link></dd>
        <dt>{t.event.condition}</dt><dd title={market.conditionId}>{shortAddress(market.conditionId)}</dd>
      </dl>
      <h3>{t.event.resolution}</h3>
      <ResolutionTimeline event={event} market={market} />
    </div>
  );
}

export function MarketActivity({ market }: { market: Market }) {
  const config = useConfig();
  const trades = useQuery({
    queryKey: ["market-trades", market.conditionId],
    queryFn: () => fetchTrades(config, market.conditionId, TRADES_SHOWN),
    refetchInterval: 10_000,
  });
  if (trades.isError) return <Problem error={trades.error} onRetry={() => void trades.refetch()} />;
  if (trades.data === undefined) return <Skeleton height="2rem" count={3} />;
  if (trades.data.length === 0) return <p className="muted">{t.event.noActivity}</p>;
  return (
    <div className="card flush scrolls">
      <table>
        <thead>
          <tr><th>{t.event.wallet}</th><th>{t.book.side}</th><th className="number">{t.book.shares}</th><th className="number">{t.book.price}</th><th className="number">{t.event.amount}</th><th>{t.book.time}</th></tr>
        </thead>
        <tbody>
          {trades.data.map((trade) => (
            <tr key={`${trade.transactionHash}-${trade.proxyWallet}-${trade.timestamp}-${trade.size}`}>
              <td><Link to={`/portfolio/${trade.proxyWallet}`} className="link">{shortAddress(trade.proxyWallet)}</Link></td>
              <td className={trade.side === "BUY" ? "yes" : "no"}>{t.side[trade.side ?? "BUY"]} {trade.outcome}</td>
              <td className="number">{shares(trade.size)}</td>
              <td className="number">{cents(trade.price ?? 0)}</td>
              <td className="number">{dollars(trade.usdcSize)}</td>
              <td>{moment(trade.timestamp)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function MarketHolders({ market }: { market: Market }) {
  const config = useConfig();
  const holders = useQuery({ queryKey: ["holders", market.conditionId], queryFn: () => fetchHolders(config, market.conditionId) });
  if (holders.isError) return <Problem error={holders.error} onRetry={() => void holders.refetch()} />;
  if (holders.data === undefined) return <Skeleton height="2rem" count={3} />;
  return (
    <div className="book">
      {market.outcomes.map((name, index) => {
        const rows = holders.data.find((each) => each.token === market.tokens[index])?.holders ?? [];
        return (
          <div key={name} className="card stack">
            <h3>{t.event.holdersOf(name)}</h3>
            {rows.length === 0 ? <p className="muted">{t.event.noHolders}</p> : null}
            <ol className="stack tight">
              {rows.map((holder) => (
                <li key={holder.proxyWallet} className="row spread">
                  <Link to={`/portfolio/${holder.proxyWallet}`} className="link">{shortAddress(holder.proxyWallet)}</Link>
                  <span>{shares(holder.amount)}</span>
                </li>
              ))}
            </ol>
          </div>
        );
      })}
    </div>
  );
}
