// The tables of a portfolio, and their CSV files.

import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { type Activity, type Position, fetchAllActivity } from "../api/data";
import { useConfig, useNotify } from "../lib/context";
import { csv, download } from "../lib/csv";
import { cents, dollars, moment, percent, shares, signedDollars } from "../lib/format";
import { t } from "../strings";
import { Empty, Icon, Link } from "../ui/parts";
import { MergeButton } from "./portfolio_redeem";

const POSITION_COLUMNS: (keyof Position & string)[] = [
  "title", "outcome", "size", "avgPrice", "initialValue", "curPrice", "currentValue", "cashPnl", "realizedPnl", "conditionId", "asset",
];
const ACTIVITY_COLUMNS: (keyof Activity & string)[] = [
  "timestamp", "type", "side", "title", "outcome", "size", "price", "usdcSize", "conditionId", "transactionHash",
];

function Export({ onClick, isBusy = false }: { onClick: () => void; isBusy?: boolean }) {
  return <div><button type="button" className="button slim" onClick={onClick} disabled={isBusy}>{isBusy ? t.portfolio.exporting : t.portfolio.csv}</button></div>;
}

function MarketCell({ position, children }: { position: Position; children?: ReactNode }) {
  return (
    <td className="wide">
      <div className="row">
        <Icon url={position.icon} title={position.title} size="mini" />
        <div className="stack tight">
          <Link to={`/event/${position.eventSlug}?market=${position.slug}`} className="strong">{position.title}</Link>
          <span className="small"><span className={position.outcomeIndex === 0 ? "yes" : "no"}>{position.outcome}</span> {children}</span>
        </div>
      </div>
    </td>
  );
}

export function PositionsTable({ positions, isOwn }: { positions: Position[]; isOwn: boolean }) {
  if (positions.length === 0) return <Empty title={t.portfolio.noPositions}><Link to="/" className="link">{t.backToMarkets}</Link></Empty>;
  return (
    <div className="stack">
      <div className="card flush scrolls">
        <table>
          <thead>
            <tr><th>{t.portfolio.market}</th><th className="number">{t.book.shares}</th><th className="number">{t.portfolio.average}</th><th className="number">{t.portfolio.now}</th><th className="number">{t.portfolio.worth}</th><th className="number">{t.portfolio.profit}</th>{isOwn ? <th /> : null}</tr>
          </thead>
          <tbody>
            {positions.map((position) => (
              <tr key={position.asset}>
                <MarketCell position={position}>{position.redeemable ? <span className="badge caution">{t.portfolio.redeemable}</span> : null}</MarketCell>
                <td className="number">{shares(position.size)}</td>
                <td className="number">{cents(position.avgPrice)}</td>
                <td className="number">{cents(position.curPrice)}</td>
                <td className="number">{dollars(position.currentValue)}</td>
                <td className={`number ${position.cashPnl < 0 ? "no" : "yes"}`}>{signedDollars(position.cashPnl)} <span className="small">{t.portfolio.ofCost(percent(Math.abs(position.percentPnl) / 100))}</span></td>
                {isOwn ? <td className="number">{position.mergeable && !position.redeemable && position.outcomeIndex === 0 ? <MergeButton position={position} other={positions.find((each) => each.asset === position.oppositeAsset)} /> : null}</td> : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Export onClick={() => download("positions.csv", csv(positions, POSITION_COLUMNS))} />
    </div>
  );
}

export function ClosedTable({ positions }: { positions: Position[] }) {
  if (positions.length === 0) return <Empty title={t.portfolio.noClosed} />;
  return (
    <div className="card flush scrolls">
      <table>
        <thead><tr><th>{t.portfolio.market}</th><th className="number">{t.portfolio.average}</th><th className="number">{t.portfolio.paid}</th><th className="number">{t.portfolio.realized}</th><th>{t.book.time}</th></tr></thead>
        <tbody>
          {positions.map((position) => (
            <tr key={position.asset}>
              <MarketCell position={position} />
              <td className="number">{cents(position.avgPrice)}</td>
              <td className="number">{dollars(position.totalBoughtUsdc)}</td>
              <td className={`number ${position.realizedPnl < 0 ? "no" : "yes"}`}>{signedDollars(position.realizedPnl)}</td>
              <td>{moment(position.timestamp)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function ActivityTable({ owner, activity }: { owner: string; activity: Activity[] }) {
  const config = useConfig();
  const notify = useNotify();
  const exporting = useMutation({
    mutationFn: () => fetchAllActivity(config, owner),
    onSuccess: (rows) => download("history.csv", csv(rows, ACTIVITY_COLUMNS)),
    onError: (error) => notify("bad", error.message),
  });
  if (activity.length === 0) return <Empty title={t.portfolio.noHistory} />;
  return (
    <div className="stack">
      <div className="card flush scrolls">
        <table>
          <thead><tr><th>{t.portfolio.what}</th><th>{t.portfolio.market}</th><th className="number">{t.book.shares}</th><th className="number">{t.book.price}</th><th className="number">{t.event.amount}</th><th>{t.book.time}</th></tr></thead>
          <tbody>
            {activity.slice(0, 100).map((row, index) => (
              <tr key={`${row.transactionHash}-${index}`}>
                <td>{row.type === "TRADE" ? t.side[row.side ?? "BUY"] : t.portfolio.kinds[row.type]}</td>
                <td className="wide"><Link to={`/event/${row.eventSlug}`}>{row.title}</Link>{row.type === "TRADE" ? <span className="muted"> · {row.outcome}</span> : null}</td>
                <td className="number">{shares(row.size)}</td>
                <td className="number">{row.price === null ? "" : cents(row.price)}</td>
                <td className="number">{dollars(row.usdcSize)}</td>
                <td title={row.transactionHash}>{moment(row.timestamp)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Export onClick={() => exporting.mutate()} isBusy={exporting.isPending} />
    </div>
  );
}
