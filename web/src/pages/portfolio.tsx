// A wallet's positions, profit, orders and history; of one's own, what can be redeemed.

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import { fetchActivity, fetchClosedPositions, fetchPositions, fetchValue } from "../api/data";
import { fetchHistories } from "../api/trading";
import { useConfig } from "../lib/context";
import { dollars, dollarsOf, shortAddress, signedDollars } from "../lib/format";
import { profitOverTime } from "../lib/pnl";
import { t } from "../strings";
import { Empty, Problem, Skeleton, Tabs } from "../ui/parts";
import { PriceChart } from "../ui/price_chart";
import { useFunds } from "../wallet/funds";
import { useSession } from "../wallet/session";
import { ActivityTable, ClosedTable, PositionsTable } from "./portfolio_tables";
import { ClaimShares } from "./portfolio_claim";
import { ConvertSets } from "./portfolio_convert";
import { RedeemAll } from "./portfolio_redeem";
import { AllOrders } from "./portfolio_orders";
import { ConnectPrompt } from "./ticket_setup";

const CHART_TOKENS_MAX = 20;
const CHART_ACTIVITY = 500;

export function PortfolioPage({ address }: { address: string | null }) {
  const { session } = useSession();
  const owner = address ?? session?.maker ?? null;
  if (owner === null) {
    return (
      <div className="page narrow stack">
        <h1>{t.portfolio.title}</h1>
        <Empty title={t.portfolio.noWallet}><ConnectPrompt /></Empty>
      </div>
    );
  }
  return <WalletPortfolio key={owner} owner={owner} isOwn={session?.maker.toLowerCase() === owner.toLowerCase()} />;
}

function WalletPortfolio({ owner, isOwn }: { owner: string; isOwn: boolean }) {
  const config = useConfig();
  const [tab, setTab] = useState("positions");
  const every = { refetchInterval: 10_000 };
  const positions = useQuery({ queryKey: ["portfolio", "positions", owner], queryFn: () => fetchPositions(config, owner), ...every });
  const closed = useQuery({ queryKey: ["portfolio", "closed", owner], queryFn: () => fetchClosedPositions(config, owner), ...every });
  const activity = useQuery({ queryKey: ["portfolio", "activity", owner], queryFn: () => fetchActivity(config, owner, CHART_ACTIVITY), ...every });
  const failed = [positions, closed, activity].find((each) => each.isError);
  const items = [
    { id: "positions", label: t.portfolio.positions },
    { id: "closed", label: t.portfolio.closed },
    ...(isOwn ? [{ id: "orders", label: t.orders.open }] : []),
    { id: "history", label: t.portfolio.history },
  ];
  return (
    <div className="page stack loose">
      <h1>{isOwn ? t.portfolio.title : t.portfolio.of(shortAddress(owner))}</h1>
      {failed !== undefined ? <Problem error={failed.error} onRetry={() => void failed.refetch()} /> : null}
      <Figures owner={owner} isOwn={isOwn} realized={[...(positions.data ?? []), ...(closed.data ?? [])].reduce((sum, each) => sum + each.realizedPnl, 0)}
        open={(positions.data ?? []).reduce((sum, each) => sum + each.cashPnl, 0)} />
      <ProfitChart owner={owner} positions={[...(positions.data ?? []), ...(closed.data ?? [])]} activity={activity.data ?? []} />
      {isOwn ? <ClaimShares /> : null}
      {isOwn && positions.data !== undefined ? <RedeemAll positions={positions.data} /> : null}
      {isOwn && positions.data !== undefined ? <ConvertSets positions={positions.data} /> : null}
      <section className="stack">
        <Tabs items={items} selected={tab} onSelect={setTab} label={t.portfolio.title} />
        {tab === "positions" ? (positions.data === undefined ? <Skeleton height="3rem" count={3} /> : <PositionsTable positions={positions.data} isOwn={isOwn} />) : null}
        {tab === "closed" ? (closed.data === undefined ? <Skeleton height="3rem" count={3} /> : <ClosedTable positions={closed.data} />) : null}
        {tab === "orders" ? <AllOrders /> : null}
        {tab === "history" ? (activity.data === undefined ? <Skeleton height="3rem" count={3} /> : <ActivityTable owner={owner} activity={activity.data} />) : null}
      </section>
    </div>
  );
}

function Figures({ owner, isOwn, realized, open }: { owner: string; isOwn: boolean; realized: number; open: number }) {
  const config = useConfig();
  const funds = useFunds();
  const value = useQuery({ queryKey: ["portfolio", "value", owner], queryFn: () => fetchValue(config, owner), refetchInterval: 10_000 });
  const profit = realized + open;
  return (
    <div className="figures">
      <Figure label={t.portfolio.value} text={value.data === undefined ? "…" : dollars(value.data)} />
      {isOwn ? <Figure label={t.portfolio.cash} text={funds.data === undefined ? "…" : dollarsOf(funds.data.balance)} /> : null}
      <Figure label={t.portfolio.profit} text={signedDollars(profit)} tone={profit === 0 ? "" : profit < 0 ? "no" : "yes"} />
      <Figure label={t.portfolio.realized} text={signedDollars(realized)} />
    </div>
  );
}

function Figure({ label, text, tone = "" }: { label: string; text: string; tone?: string }) {
  return (
    <div className="card stack tight">
      <span className="muted small">{label}</span>
      <span className={`figure lesser ${tone}`}>{text}</span>
    </div>
  );
}

function ProfitChart({ owner, positions, activity }: { owner: string; positions: Parameters<typeof profitOverTime>[1]; activity: Parameters<typeof profitOverTime>[0] }) {
  const config = useConfig();
  const tokens = [...new Set(positions.map((each) => each.asset))].slice(0, CHART_TOKENS_MAX);
  const histories = useQuery({
    queryKey: ["portfolio", "histories", owner, tokens],
    queryFn: () => fetchHistories(config, tokens, "all"),
    enabled: tokens.length > 0,
    staleTime: 60_000,
  });
  const points = useMemo(
    () => profitOverTime(activity, positions, histories.data ?? {}, Math.floor(Date.now() / 1000)),
    [activity, positions.length, histories.data],
  );
  const lines = useMemo(() => [{ id: "profit", label: t.portfolio.profit, color: (points.at(-1)?.p ?? 0) < 0 ? "var(--no)" : "var(--yes)", points }], [points]);
  if (points.length < 3) return null;
  return (
    <section className="card stack">
      <h2>{t.portfolio.profitOverTime}</h2>
      <PriceChart lines={lines} label={t.portfolio.profitOverTime} isMoney />
    </section>
  );
}
