// Wallets by profit or by volume.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { fetchLeaderboard } from "../api/data";
import { useConfig } from "../lib/context";
import { dollars, shortAddress, signedDollars } from "../lib/format";
import { t } from "../strings";
import { Empty, Link, Problem, Segments, Skeleton } from "../ui/parts";

type Period = "DAY" | "WEEK" | "MONTH" | "ALL";
const PERIODS: readonly Period[] = ["DAY", "WEEK", "MONTH", "ALL"];

export function LeaderboardPage() {
  const config = useConfig();
  const [period, setPeriod] = useState<Period>("ALL");
  const [order, setOrder] = useState<"PNL" | "VOL">("PNL");
  const rows = useQuery({ queryKey: ["leaderboard", period, order], queryFn: () => fetchLeaderboard(config, period, order) });
  return (
    <div className="page narrow stack loose">
      <h1>{t.leaderboard.title}</h1>
      <div className="row wraps">
        <div className="choice"><Segments label={t.leaderboard.period} value={period} onChange={setPeriod} options={PERIODS.map((value) => ({ value, label: t.leaderboard.periods[value] }))} /></div>
        <div className="choice"><Segments label={t.leaderboard.order} value={order} onChange={setOrder} options={[{ value: "PNL", label: t.leaderboard.profit }, { value: "VOL", label: t.leaderboard.volume }] as const} /></div>
      </div>
      {rows.isError ? <Problem error={rows.error} onRetry={() => void rows.refetch()} /> : null}
      {rows.isPending ? <Skeleton height="2.5rem" count={5} /> : null}
      {rows.data?.length === 0 ? <Empty title={t.leaderboard.none} /> : null}
      {rows.data !== undefined && rows.data.length > 0 ? (
        <div className="card flush scrolls">
          <table>
            <thead><tr><th>{t.leaderboard.rank}</th><th>{t.event.wallet}</th><th className="number">{t.leaderboard.profit}</th><th className="number">{t.leaderboard.volume}</th></tr></thead>
            <tbody>
              {rows.data.map((row) => (
                <tr key={row.proxyWallet}>
                  <td>{row.rank}</td>
                  <td><Link to={`/portfolio/${row.proxyWallet}`} className="link">{shortAddress(row.proxyWallet)}</Link></td>
                  <td className={`number ${row.pnl < 0 ? "no" : "yes"}`}>{signedDollars(row.pnl)}</td>
                  <td className="number">{dollars(row.vol)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </div>
  );
}
