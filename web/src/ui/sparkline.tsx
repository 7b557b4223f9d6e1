// A small line of a price's history, without axes.

import type { Point } from "../api/trading";

const WIDTH = 240;
const HEIGHT = 36;

export function Sparkline({ points, label }: { points: Point[]; label: string }) {
  const first = points[0];
  const last = points[points.length - 1];
  if (first === undefined || last === undefined || points.length < 2) return <div className="sparkline" aria-hidden="true" />;
  const prices = points.map((point) => point.p);
  const low = Math.min(...prices);
  const span = Math.max(Math.max(...prices) - low, 0.02);
  const line = points
    .map((point) => {
      const x = ((point.t - first.t) / Math.max(last.t - first.t, 1)) * WIDTH;
      const y = HEIGHT - 3 - ((point.p - low) / span) * (HEIGHT - 6);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join(" ");
  const color = last.p >= first.p ? "var(--yes)" : "var(--no)";
  return (
    <svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={line} fill="none" stroke={color} strokeWidth="2" vectorEffect="non-scaling-stroke" />
    </svg>
  );
}
