// The way of a market from its opening to its payout, step by step.

import type { Event, Market } from "../api/discovery";
import { useConfig } from "../lib/context";
import { moment, shortAddress } from "../lib/format";
import { t } from "../strings";
import { Link } from "../ui/parts";
import { isAnsweredDirectly } from "../wallet/answers";

interface Step {
  title: string;
  text: string;
  by?: string;
  state: "done" | "running" | "open";
}

const DISPUTED = "disputed";
const FIRST_OUTCOME = "1000000000000000000";

function at(iso: string): string {
  return moment(Date.parse(iso) / 1000);
}

/** Return which outcome a resolved market paid. */
export function winnerOf(market: Market): string {
  const [yes, no] = market.prices;
  return yes === no ? t.event.split : market.outcomes[yes > no ? 0 : 1];
}

/** Return the outcome that an answer at the oracle stands for. */
function answerAt(market: Market, price: string): string {
  if (price === FIRST_OUTCOME) return market.outcomes[0];
  return price === "0" ? market.outcomes[1] : t.event.split;
}

/** Return the steps of a market: those it made, then those to come. */
function stepsOf(event: Event, market: Market, isDirect: boolean, nowMs: number): Step[] {
  const isOver = Date.parse(event.endDate) <= nowMs;
  const isEarly = market.closed && !isOver; // what was planned did not happen
  const answers = market.resolutionSteps ?? [];
  const last = answers.at(-1)?.status;
  const steps: Step[] = [
    { title: t.timeline.opened, text: at(market.startDate), state: "done" },
    ...(isEarly ? [] : [{ title: t.timeline.ends, text: at(event.endDate), state: isOver ? "done" : "running" } as Step]),
    ...answers.map(({ status, price, time, account }, index): Step => ({
      title: t.timeline.answers[status](answerAt(market, price)),
      by: account,
      text: [at(time), ...(status === DISPUTED ? [answers.findIndex((each) => each.status === DISPUTED) === index ? t.timeline.firstDispute : t.timeline.secondDispute] : [])].join(" · "),
      state: index === answers.length - 1 && !market.closed ? "running" : "done",
    })),
  ];
  if (market.closed) {
    return [...steps, { title: t.timeline.resolved(winnerOf(market)), text: market.closedTime === undefined ? "" : at(market.closedTime), state: "done" }];
  }
  if (isDirect) return [...steps, { title: t.timeline.answer, text: t.timeline.direct, state: isOver ? "running" : "open" }, { title: t.timeline.payout, text: t.timeline.payoutText, state: "open" }];
  const isWaiting = last === undefined || (last === DISPUTED && answers.filter(({ status }) => status === DISPUTED).length === 1);
  const next: Step[] = isWaiting ? [{ title: t.timeline.answer, text: t.timeline.optimistic, state: isOver && last === undefined ? "running" : "open" }] : [];
  return [...steps, ...next, { title: t.timeline.payout, text: t.timeline.payoutText, state: "open" }];
}

function StepNote({ step }: { step: Step }) {
  if (step.text === "" && step.by === undefined) return null;
  return (
    <span className="muted small">
      {step.text}
      {step.by === undefined ? null : <> · {t.timeline.by} <Link to={`/portfolio/${step.by}`} className="link">{shortAddress(step.by)}</Link></>}
    </span>
  );
}

export function ResolutionTimeline({ event, market }: { event: Event; market: Market }) {
  const config = useConfig();
  const steps = stepsOf(event, market, isAnsweredDirectly(config, market), Date.now());
  return (
    <ol className="steps still" aria-label={t.event.resolution}>
      {steps.map((step, index) => (
        <li key={index} className="step" data-state={step.state} aria-current={step.state === "running" ? "step" : undefined}>
          <i aria-hidden="true">{step.state === "done" ? "✓" : ""}</i>
          <span className="stack tight"><span>{step.title}</span><StepNote step={step} /></span>
          <span className="hidden-label">{t.create.states[step.state]}</span>
        </li>
      ))}
    </ol>
  );
}
