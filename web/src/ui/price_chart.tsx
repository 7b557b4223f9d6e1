// A chart of prices over time, one line for each outcome; its library is loaded when a chart is shown.

import { useEffect, useRef } from "react";
import type { AutoscaleInfo, IChartApi, ISeriesApi, UTCTimestamp } from "lightweight-charts";

import type { Point } from "../api/trading";
import { dollars } from "../lib/format";
import { useTheme } from "../lib/theme";

export interface ChartLine {
  id: string;
  label: string;
  color: string;
  isDashed?: boolean;
  points: Point[];
}

/** Return the colour of a CSS variable as the browser computes it: the library draws on a canvas. */
function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function resolved(color: string): string {
  return color.startsWith("var(") ? css(color.slice(4, -1)) : color;
}

/** Return rising times without repetition, as the library wants them. */
function rows(points: Point[], scale: number): { time: UTCTimestamp; value: number }[] {
  const byTime = new Map<number, number>();
  for (const point of points) byTime.set(point.t, point.p * scale);
  return [...byTime].sort((a, b) => a[0] - b[0]).map(([time, value]) => ({ time: time as UTCTimestamp, value }));
}

const RANGE_MIN = 8;

/** Return a range of values that is not so narrow that a still price fills the chart. */
function widened(found: AutoscaleInfo | null, isMoney: boolean): AutoscaleInfo | null {
  if (found?.priceRange == null) return found;
  const { minValue, maxValue } = found.priceRange;
  const missing = Math.max(0, RANGE_MIN - (maxValue - minValue)) / 2;
  const low = isMoney ? minValue - missing : Math.max(0, minValue - missing);
  const high = isMoney ? maxValue + missing : Math.min(100, maxValue + missing);
  return { ...found, priceRange: { minValue: low, maxValue: high } };
}

interface Shown {
  chart: IChartApi;
  series: Map<string, ISeriesApi<"Line">>;
  add: (line: ChartLine) => ISeriesApi<"Line">;
}

async function show(element: HTMLElement, isMoney: boolean): Promise<Shown> {
  const { LineSeries, LineStyle, createChart } = await import("lightweight-charts");
  const chart = createChart(element, {
    autoSize: true,
    layout: { background: { color: "transparent" }, textColor: css("--muted"), attributionLogo: false, fontFamily: css("--font") },
    grid: { vertLines: { visible: false }, horzLines: { color: css("--line") } },
    rightPriceScale: { borderVisible: false, scaleMargins: { top: 0.12, bottom: 0.08 } },
    timeScale: { borderVisible: false, timeVisible: true },
    handleScroll: false,
    handleScale: false,
    localization: { priceFormatter: (value: number) => (isMoney ? dollars(value) : `${Math.round(value)}%`) },
  });
  const add = (line: ChartLine): ISeriesApi<"Line"> =>
    chart.addSeries(LineSeries, {
      color: resolved(line.color), lineWidth: 2, lineStyle: line.isDashed === true ? LineStyle.Dashed : LineStyle.Solid, priceLineVisible: false, lastValueVisible: true,
      autoscaleInfoProvider: (original: () => AutoscaleInfo | null) => widened(original(), isMoney),
    });
  return { chart, series: new Map(), add };
}

export function PriceChart({ lines, label, isMoney = false }: { lines: ChartLine[]; label: string; isMoney?: boolean }) {
  const element = useRef<HTMLDivElement>(null);
  const shown = useRef<Shown | null>(null);
  const latest = useRef(lines);
  latest.current = lines;
  const theme = useTheme();
  useEffect(() => {
    let isGone = false;
    const target = element.current;
    if (target === null) return;
    void show(target, isMoney).then((made) => {
      if (isGone) return made.chart.remove();
      shown.current = made;
      draw(made, latest.current, isMoney);
    });
    return () => {
      isGone = true;
      shown.current?.chart.remove();
      shown.current = null;
    };
  }, [theme, isMoney]);
  useEffect(() => {
    if (shown.current !== null) draw(shown.current, lines, isMoney);
  }, [lines, isMoney]);
  return <div ref={element} className="chart" role="img" aria-label={label} />;
}

function draw(shown: Shown, lines: ChartLine[], isMoney: boolean): void {
  const wanted = new Set(lines.map((line) => line.id));
  for (const [id, series] of shown.series) {
    if (wanted.has(id)) continue;
    shown.chart.removeSeries(series);
    shown.series.delete(id);
  }
  for (const line of lines) {
    const series = shown.series.get(line.id) ?? shown.add(line);
    shown.series.set(line.id, series);
    series.setData(rows(line.points, isMoney ? 1 : 100));
  }
  shown.chart.timeScale().fitContent();
}
