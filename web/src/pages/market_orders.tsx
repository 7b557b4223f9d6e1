// The user's open orders and trades of one market, live over the private stream.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";

import type { Market } from "../api/discovery";
import { useConfig, useNotify } from "../lib/context";
import { cents, shares, time } from "../lib/format";
import { t } from "../strings";
import { Problem, Skeleton } from "../ui/parts";
import { type OwnTrade, cancelMarketOrders, cancelOrder, fetchOpenOrders, fetchOwnTrades } from "../wallet/orders";
import { type Session, useSession } from "../wallet/session";

const TRADES_SHOWN = 10;

export function MarketOrders({ market }: { market: Market }) {
  const { session } = useSession();
  if (session === null) return null;
  return (
    <section className="stack" aria-label={t.orders.title}>
      <OpenOrders market={market} session={session} />
      <OwnTrades market={market} session={session} />
    </section>
  );
}

export function useCancel(what: (id: string) => Promise<{ canceled: string[]; not_canceled: Record<string, string> }>) {
  const client = useQueryClient();
  const notify = useNotify();
  return useMutation({
    mutationFn: what,
    onSuccess: (answer) => {
      const [refused] = Object.values(answer.not_canceled);
      if (refused !== undefined) notify("wait", refused);
      if (answer.canceled.length > 0) notify("good", t.orders.canceled(answer.canceled.length));
      return client.invalidateQueries({ queryKey: ["own"] });
    },
    onError: (error) => notify("bad", error.message),
  });
}

function OpenOrders({ market, session }: { market: Market; session: Session }) {
  const config = useConfig();
  const orders = useQuery({
    queryKey: ["own", "orders", session.address, market.conditionId],
    queryFn: () => fetchOpenOrders(config, session, market.conditionId),
    refetchInterval: 15_000,
  });
  const cancel = useCancel((id) => (id === "" ? cancelMarketOrders(config, session, market.conditionId) : cancelOrder(config, session, id)));
  if (orders.isError) return <Problem error={orders.error} onRetry={() => void orders.refetch()} />;
  if (orders.data === undefined) return <Skeleton height="3rem" />;
  if (orders.data.length === 0) return null;
  return (
    <div className="card stack">
      <div className="row spread">
        <h2>{t.orders.open}</h2>
        <button type="button" className="button slim" disabled={cancel.isPending} onClick={() => cancel.mutate("")}>{t.orders.cancelAll}</button>
      </div>
      <div className="scrolls">
        <table>
          <thead><tr><th>{t.book.side}</th><th className="number">{t.book.price}</th><th className="number">{t.orders.filled}</th><th>{t.orders.type}</th><th /></tr></thead>
          <tbody>
            {orders.data.map((order) => (
              <tr key={order.id}>
                <td className={order.side === "BUY" ? "yes" : "no"}>{t.side[order.side]} {order.outcome}</td>
                <td className="number">{cents(Number(order.price))}</td>
                <td className="number">{shares(Number(order.size_matched))} / {shares(Number(order.original_size))}</td>
                <td>{order.order_type === "GTD" ? t.orders.expires(time(Number(order.expiration))) : order.order_type}</td>
                <td className="number">
                  <button type="button" className="button slim" disabled={cancel.isPending} onClick={() => cancel.mutate(order.id)}>{t.orders.cancel}</button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** Return a trade as its reader sees it: a maker sees its own order's side, token and price. */
export function ownSide(trade: OwnTrade, maker: string): { side: string; outcome: string; price: number; size: number } {
  if (trade.trader_side === "TAKER") {
    return { side: trade.side, outcome: trade.outcome, price: Number(trade.price), size: Number(trade.size) };
  }
  const mine = trade.maker_orders.filter((order) => order.maker_address.toLowerCase() === maker.toLowerCase());
  const [first] = mine;
  const size = mine.reduce((sum, order) => sum + Number(order.matched_amount), 0);
  return { side: first?.side ?? trade.side, outcome: first?.outcome ?? trade.outcome, price: Number(first?.price ?? trade.price), size };
}

export function SettlementBadge({ trade }: { trade: OwnTrade }) {
  const kind = { CONFIRMED: "yes", FAILED: "no" }[trade.status] ?? "caution";
  return <span className={`badge ${kind}`} title={trade.err_msg ?? t.orders.statusHints[trade.status]}>{t.orders.statuses[trade.status]}</span>;
}

function OwnTrades({ market, session }: { market: Market; session: Session }) {
  const config = useConfig();
  const trades = useQuery({
    queryKey: ["own", "trades", session.address, market.conditionId],
    queryFn: () => fetchOwnTrades(config, session, market.conditionId),
    refetchInterval: 10_000,
  });
  if (trades.isError || trades.data === undefined || trades.data.length === 0) return null;
  return (
    <div className="card stack">
      <h2>{t.orders.fills}</h2>
      <div className="scrolls">
        <table>
          <thead><tr><th>{t.book.time}</th><th>{t.book.side}</th><th className="number">{t.book.shares}</th><th className="number">{t.book.price}</th><th>{t.orders.settlement}</th></tr></thead>
          <tbody>
            {trades.data.slice(0, TRADES_SHOWN).map((trade) => {
              const own = ownSide(trade, session.maker);
              return (
                <tr key={trade.id}>
                  <td>{time(Number(trade.match_time))}</td>
                  <td className={own.side === "BUY" ? "yes" : "no"}>{t.side[own.side]} {own.outcome}</td>
                  <td className="number">{shares(own.size)}</td>
                  <td className="number">{cents(own.price)}</td>
                  <td><SettlementBadge trade={trade} /></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </div>
  );
}
