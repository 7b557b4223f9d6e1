// The way of a market from its opening to its payout, step by step.

import type { Event, Market } from "../api/discovery";
import { useConfig } from "../lib/context";
import { moment } from "../lib/format";
import { t } from "../strings";
import { isAnsweredDirectly } from "../wallet/answers";

interface Step {
  title: string;
  text: string;
  state: "done" | "running" | "open";
}

const DISPUTED = "disputed";
const RESOLVED = "resolved";

function at(iso: string): string {
  return moment(Date.parse(iso) / 1000);
}

/** Return which outcome a resolved market paid. */
export function winnerOf(market: Market): string {
  const [yes, no] = market.prices;
  return yes === no ? t.event.split : market.outcomes[yes > no ? 0 : 1];
}

/** Return the steps of a market: those it made, then those to come. */
function stepsOf(event: Event, market: Market, isDirect: boolean, nowMs: number): Step[] {
  const isOver = Date.parse(event.endDate) <= nowMs;
  const answers = market.statuses.filter((status) => status !== RESOLVED);
  const last = answers.at(-1);
  const steps: Step[] = [
    { title: t.timeline.opened, text: at(market.startDate), state: "done" },
    { title: t.timeline.ends, text: at(event.endDate), state: isOver || market.closed ? "done" : "running" },
    ...answers.map((status, index): Step => ({
      title: t.timeline.answers[status] ?? status,
      text: status === DISPUTED ? (answers.indexOf(DISPUTED) === index ? t.timeline.firstDispute : t.timeline.secondDispute) : "",
      state: index === answers.length - 1 && !market.closed ? "running" : "done",
    })),
  ];
  if (market.closed) {
    return [...steps, { title: t.timeline.resolved(winnerOf(market)), text: market.closedTime === undefined ? "" : at(market.closedTime), state: "done" }];
  }
  if (isDirect) return [...steps, { title: t.timeline.answer, text: t.timeline.direct, state: isOver ? "running" : "open" }, { title: t.timeline.payout, text: t.timeline.payoutText, state: "open" }];
  const isWaiting = last === undefined || (last === DISPUTED && answers.filter((status) => status === DISPUTED).length === 1);
  const next: Step[] = isWaiting ? [{ title: t.timeline.answer, text: t.timeline.optimistic, state: isOver && last === undefined ? "running" : "open" }] : [];
  return [...steps, ...next, { title: t.timeline.payout, text: t.timeline.payoutText, state: "open" }];
}

export function ResolutionTimeline({ event, market }: { event: Event; market: Market }) {
  const config = useConfig();
  const steps = stepsOf(event, market, isAnsweredDirectly(config, market), Date.now());
  return (
    <ol className="steps" aria-label={t.event.resolution}>
      {steps.map((step, index) => (
        <li key={index} className="step" data-state={step.state} aria-current={step.state === "running" ? "step" : undefined}>
          <i aria-hidden="true">{step.state === "done" ? "✓" : ""}</i>
          <span className="stack tight"><span>{step.title}</span>{step.text === "" ? null : <span className="muted small">{step.text}</span>}</span>
          <span className="muted small">{t.create.states[step.state]}</span>
        </li>
      ))}
    </ol>
  );
}
