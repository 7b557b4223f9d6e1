// All open orders of the session's wallet, in every market.

import { useQuery } from "@tanstack/react-query";

import { fetchMarkets } from "../api/discovery";
import { useConfig } from "../lib/context";
import { cents, shares } from "../lib/format";
import { t } from "../strings";
import { Empty, Link, Problem, Skeleton } from "../ui/parts";
import { cancelOrder, fetchOpenOrders } from "../wallet/orders";
import { useSession } from "../wallet/session";
import { useCancel } from "./market_orders";

export function AllOrders() {
  const config = useConfig();
  const { session } = useSession();
  const orders = useQuery({
    queryKey: ["own", "orders", session?.address, "all"],
    queryFn: () => (session === null ? Promise.resolve([]) : fetchOpenOrders(config, session)),
    refetchInterval: 15_000,
  });
  const conditions = [...new Set((orders.data ?? []).map((order) => order.market))];
  const markets = useQuery({
    queryKey: ["markets", conditions],
    queryFn: () => fetchMarkets(config, conditions, 500),
    enabled: conditions.length > 0,
  });
  const cancel = useCancel((id) => {
    if (session === null) throw new Error(t.wallet.noAccount);
    return cancelOrder(config, session, id);
  });
  if (orders.isError) return <Problem error={orders.error} onRetry={() => void orders.refetch()} />;
  if (orders.data === undefined) return <Skeleton height="3rem" count={3} />;
  if (orders.data.length === 0) return <Empty title={t.orders.none} />;
  return (
    <div className="card flush scrolls">
      <table>
        <thead><tr><th>{t.portfolio.market}</th><th>{t.book.side}</th><th className="number">{t.book.price}</th><th className="number">{t.orders.filled}</th><th /></tr></thead>
        <tbody>
          {orders.data.map((order) => {
            const market = markets.data?.find((each) => each.conditionId === order.market);
            return (
              <tr key={order.id}>
                <td className="wide">{market === undefined ? "…" : <Link to={`/event/${market.events?.[0]?.slug ?? ""}?market=${market.slug}`}>{market.question}</Link>}</td>
                <td className={order.side === "BUY" ? "yes" : "no"}>{t.side[order.side]} {order.outcome}</td>
                <td className="number">{cents(Number(order.price))}</td>
                <td className="number">{shares(Number(order.size_matched))} / {shares(Number(order.original_size))}</td>
                <td className="number"><button type="button" className="button slim" disabled={cancel.isPending} onClick={() => cancel.mutate(order.id)}>{t.orders.cancel}</button></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
