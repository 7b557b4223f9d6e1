// Convert No shares of an exclusive event: n of them are worth n − 1 collateral and the Yes of every other outcome.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import type { Position } from "../api/data";
import { type Event, fetchEvent } from "../api/discovery";
import { floorTo, numberOf, parseUnits, SIZE_STEP, unitsOf, unitsText } from "../lib/amounts";
import { useConfig } from "../lib/context";
import { dollarsOf, shares } from "../lib/format";
import { useKeptText } from "../lib/kept";
import { t } from "../strings";
import { Field, Problem } from "../ui/parts";
import { approvals, convert } from "../wallet/calls";
import type { Hex } from "../wallet/provider";
import { useChainAction } from "./portfolio_redeem";

const EVENTS_MAX = 10;
const NO = 1;

/** Return the No positions that can be converted, by the slug of their event. */
function convertible(positions: Position[]): [string, Position[]][] {
  const groups = new Map<string, Position[]>();
  for (const position of positions) {
    if (!position.negativeRisk || position.outcomeIndex !== NO || position.redeemable || position.size <= 0) continue;
    groups.set(position.eventSlug, [...(groups.get(position.eventSlug) ?? []), position]);
  }
  return [...groups].slice(0, EVENTS_MAX);
}

export function ConvertSets({ positions }: { positions: Position[] }) {
  return convertible(positions).map(([slug, held]) => <EventConversion key={slug} slug={slug} held={held} />);
}

function EventConversion({ slug, held }: { slug: string; held: Position[] }) {
  const config = useConfig();
  const event = useQuery({ queryKey: ["event", slug], queryFn: () => fetchEvent(config, slug), staleTime: 60_000 });
  if (event.data === undefined) return event.isError ? <Problem error={event.error} onRetry={() => void event.refetch()} /> : null;
  return (
    <details className="card">
      <summary>{t.convert.title(event.data.title)}</summary>
      <ConversionForm event={event.data} held={held} />
    </details>
  );
}

/** Return the bit of a question in its event's index set: the last byte of its id is its number. */
function bitOf(questionId: string): bigint {
  return 1n << BigInt(`0x${questionId.slice(-2)}`);
}

function ConversionForm({ event, held }: { event: Event; held: Position[] }) {
  const config = useConfig();
  const { isBusy, error, run } = useChainAction();
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [amount, setAmount] = useKeptText(`convert.${event.slug}`);
  const given = held.filter((position) => !left.has(position.conditionId));
  const others = event.markets.filter((market) => !given.some((position) => position.conditionId === market.conditionId));
  const most = given.reduce((least, position) => (unitsOf(position.size) < least ? unitsOf(position.size) : least), unitsOf(given[0]?.size ?? 0));
  const units = amount === "" ? floorTo(most, SIZE_STEP) : parseUnits(amount);
  const isValid = units !== null && units > 0n && units <= most;
  const [first] = event.markets;
  const toggle = (id: string): void => setLeft((before) => new Set(before.has(id) ? [...before].filter((each) => each !== id) : [...before, id]));
  const make = async () => {
    const bits = given.map((position) => bitOf(event.markets.find((market) => market.conditionId === position.conditionId)?.questionID ?? "0x00"));
    const indexSet = bits.reduce((set, bit) => set | bit, 0n);
    return [...approvals(config).slice(-1), convert(config, first?.negRiskMarketID as Hex, indexSet, units ?? 0n)];
  };
  return (
    <div className="stack" style={{ marginTop: "var(--s3)" }}>
      <p className="muted small">{t.convert.text}</p>
      <fieldset className="stack tight">
        <legend>{t.convert.given}</legend>
        {held.map((position) => (
          <label key={position.conditionId} className="row">
            <input type="checkbox" checked={!left.has(position.conditionId)} onChange={() => toggle(position.conditionId)} />
            <span className="grow clip">{position.title}</span>
            <span className="no">{t.convert.shares(shares(position.size), position.outcome)}</span>
          </label>
        ))}
      </fieldset>
      <Field label={t.convert.amount} problem={amount !== "" && !isValid ? t.convert.tooMany(unitsText(most)) : null}>
        <input className="input" inputMode="decimal" value={amount} placeholder={unitsText(floorTo(most, SIZE_STEP))} onChange={(change) => setAmount(change.target.value)} />
      </Field>
      {isValid ? <p>{t.convert.gives(dollarsOf(units * BigInt(given.length - 1)), shares(numberOf(units)), others.map((market) => market.groupItemTitle || market.question))}</p> : null}
      <div><button type="button" className="button solid" disabled={!isValid || isBusy} onClick={() => void run(make, t.convert.done)}>{isBusy ? t.wallet.sending : t.convert.submit}</button></div>
      {error !== null ? <Problem error={error} /> : null}
    </div>
  );
}
