// The price history of an event: one line for a single market, the likeliest outcomes for a group.

import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";

import type { Event, Market } from "../api/discovery";
import { type Interval, type Point, fetchHistories } from "../api/trading";
import { midpoint } from "../lib/book";
import { useConfig } from "../lib/context";
import { percent } from "../lib/format";
import type { LiveMarkets } from "../lib/live_market";
import { t } from "../strings";
import { Problem, Segments, Skeleton } from "./parts";
import { type ChartLine, PriceChart } from "./price_chart";

const LINES_MAX = 4;
const COLORS = ["var(--act)", "var(--text)", "var(--muted)", "var(--act)"] as const; // the last one is dashed
const INTERVALS: readonly { value: Interval; label: string }[] = [
  { value: "1h", label: "1H" },
  { value: "6h", label: "6H" },
  { value: "1d", label: "1D" },
  { value: "1w", label: "1W" },
  { value: "1m", label: "1M" },
  { value: "all", label: t.event.wholeTime },
];

function top(event: Event): Market[] {
  return [...event.markets].sort((a, b) => b.prices[0] - a.prices[0]).slice(0, LINES_MAX);
}

/** Return the history with the present price at its end. */
function extended(points: Point[], live: LiveMarkets, token: string, market: Market): Point[] {
  const book = live.books[token];
  const now = market.closed ? market.prices[0] : book === undefined ? null : midpoint(book);
  if (now === null) return points;
  const last = points[points.length - 1];
  const t = Math.max(Math.floor(Date.now() / 1000), (last?.t ?? 0) + 1);
  return [...points, { t, p: now }];
}

export function EventChart({ event, live }: { event: Event; live: LiveMarkets }) {
  const config = useConfig();
  const [interval, setInterval] = useState<Interval>("1d");
  const markets = top(event);
  const tokens = markets.map((market) => market.tokens[0]);
  const histories = useQuery({
    queryKey: ["histories", tokens, interval],
    queryFn: () => fetchHistories(config, tokens, interval),
    refetchInterval: 60_000,
  });
  const lines = useMemo<ChartLine[]>(
    () =>
      markets.map((market, index) => ({
        id: market.id,
        label: market.groupItemTitle || market.outcomes[0],
        color: COLORS[index] ?? "var(--act)",
        isDashed: index === LINES_MAX - 1,
        points: extended(histories.data?.[market.tokens[0]] ?? [], live, market.tokens[0], market),
      })),
    [histories.data, live.books, event],
  );
  const isEmpty = lines.every((line) => line.points.length < 2);
  return (
    <section className="card stack" aria-label={t.event.history}>
      <div className="row spread wraps">
        <ul className="legend">
          {lines.map((line) => (
            <li key={line.id} className="row">
              <span className="swatch" data-dashed={line.isDashed || undefined} style={{ color: line.color }} />
              <span className="clip">{line.label}</span>
              <span className="strong">{percent(line.points.at(-1)?.p ?? 0.5)}</span>
            </li>
          ))}
        </ul>
        <Segments options={INTERVALS} value={interval} onChange={setInterval} label={t.event.interval} />
      </div>
      {histories.isPending ? <Skeleton height="18rem" /> : null}
      {histories.isError ? <Problem error={histories.error} onRetry={() => void histories.refetch()} /> : null}
      {histories.isSuccess && isEmpty ? <p className="muted chart none">{t.event.noHistory}</p> : null}
      {histories.isSuccess && !isEmpty ? <PriceChart lines={lines} label={t.event.chartOf(event.title)} /> : null}
    </section>
  );
}
