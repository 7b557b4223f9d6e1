// The ticket: what to buy or sell, what it costs and pays, and the signature.

import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";

import type { Market } from "../api/discovery";
import { numberOf, unitsText } from "../lib/amounts";
import { EMPTY_BOOK } from "../lib/book";
import { useNotify } from "../lib/context";
import { cents, dollars, dollarsOf, shares } from "../lib/format";
import type { LiveMarkets } from "../lib/live_market";
import { readStored, writeStored } from "../lib/stored";
import { t } from "../strings";
import { Field, Problem, Segments } from "../ui/parts";
import { useFunds } from "../wallet/funds";
import type { Side } from "../wallet/orders";
import { type Session, useSession } from "../wallet/session";
import { ApproveTrading, ConnectPrompt, needsApproval } from "./ticket_setup";
import { type Form, type Quote, quoteOf } from "./ticket_quote";
import { usePlacing } from "./ticket_placing";
import { askOf } from "./event_outcomes";

export interface Draft {
  side: Side;
  price: bigint | null;
  serial: number;
}

type Change = (part: Partial<Form> | ((before: Form) => Partial<Form>)) => void;

const EMPTY_FORM: Form = { side: "BUY", kind: "market", limitType: "GTC", marketType: "FAK", price: "", amount: "", minutes: "60", postOnly: false };

export function Ticket({ market, outcome, live, draft, onOutcome }: {
  market: Market; outcome: number; live: LiveMarkets; draft: Draft; onOutcome: (index: number) => void;
}) {
  const { session } = useSession();
  const [form, change] = useKeptForm(market.conditionId);
  useEffect(() => {
    if (draft.price === null) return;
    change({ side: draft.side, kind: "limit", price: unitsText(draft.price * 100n) });
  }, [draft.serial]);
  if (market.closed) return <ClosedTicket market={market} />;
  return (
    <section className="card stack" aria-label={t.ticket.title}>
      <strong className="two-lines">{market.groupItemTitle || market.question}</strong>
      <HaltNotice market={market} />
      <Segments
        options={[{ value: "BUY", label: t.side.BUY }, { value: "SELL", label: t.side.SELL }] as const}
        value={form.side} onChange={(side) => change({ side, amount: "" })} label={t.ticket.side}
      />
      <div className="row" role="group" aria-label={t.book.outcome}>
        {market.outcomes.map((name, index) => (
          <button
            key={name} type="button" className={`outcome ${index === 0 ? "yes" : "no"}`}
            aria-pressed={outcome === index} onClick={() => onOutcome(index)}
          >
            <span className="clip">{name}</span>
            <span>{priceFor(form.side, live, market, index)}</span>
          </button>
        ))}
      </div>
      {session === null ? <ConnectPrompt /> : <OrderForm market={market} outcome={outcome} live={live} session={session} form={form} change={change} />}
    </section>
  );
}

/** What is to know of a market that the chain lost by a reorganization; its orders stay, and new ones are refused. */
export function HaltNotice({ market }: { market: Market }) {
  if (market.closed || market.acceptingOrders) return null;
  return (
    <div className="callout caution" role="status">
      <strong>{t.halt.title}</strong>
      <span>{t.halt.text}</span>
    </div>
  );
}

/** Return what is typed into the ticket of a market, kept for the tab: a reload loses nothing. */
function useKeptForm(conditionId: string): [Form, Change] {
  const name = `ticket.${conditionId}`;
  const [form, setForm] = useState<Form>(() => ({ ...EMPTY_FORM, ...(JSON.parse(readStored("session", name) ?? "{}") as Partial<Form>) }));
  useEffect(() => writeStored("session", name, JSON.stringify(form)), [name, form]);
  return [form, (part) => setForm((before) => ({ ...before, ...(typeof part === "function" ? part(before) : part) }))];
}

function priceFor(side: Side, live: LiveMarkets, market: Market, index: number): string {
  const book = live.books[market.tokens[index] ?? ""];
  if (side === "BUY") return askOf(book, market.prices[index] ?? 0.5);
  const bid = book?.bids[0];
  return bid === undefined ? "–" : cents(numberOf(bid.price));
}

function ClosedTicket({ market }: { market: Market }) {
  const [yes, no] = market.prices;
  return (
    <section className="card stack" aria-label={t.ticket.title}>
      <strong>{t.ticket.closed}</strong>
      <p>{yes === no ? t.event.split : t.ticket.won(market.outcomes[yes > no ? 0 : 1])}</p>
      <p className="muted">{t.ticket.redeemHint}</p>
    </section>
  );
}

function OrderForm({ market, outcome, live, session, form, change }: {
  market: Market; outcome: number; live: LiveMarkets; session: Session; form: Form; change: Change;
}) {
  const notify = useNotify();
  const client = useQueryClient();
  const token = market.tokens[outcome] ?? "";
  const book = live.books[token] ?? EMPTY_BOOK;
  const funds = useFunds(form.side === "BUY" ? undefined : token);
  const feeRateBps = market.takerBaseFee;
  const result = useMemo(() => quoteOf(form, token, book, feeRateBps, Math.floor(Date.now() / 1000)), [form, token, book, feeRateBps]);
  const placing = usePlacing(session, market, feeRateBps);
  const quote = "quote" in result ? result.quote : null;
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (quote === null) return;
    const { amount } = form;
    const placed = await placing.place(quote.wanted);
    if (placed === null) return client.invalidateQueries({ queryKey: ["event"] }); // the refusal may be the first sign of a halt
    notify("good", placed.status === "matched" ? t.ticket.matched(shares(Number(form.side === "BUY" ? placed.takingAmount : placed.makingAmount))) : t.ticket.rests);
    change((now) => (now.amount === amount ? { amount: "" } : {})); // what was typed meanwhile stays
    await client.invalidateQueries({ queryKey: ["own"] });
  };
  if (funds.data !== undefined && needsApproval(funds.data, form.side)) return <ApproveTrading session={session} />;
  return (
    <form className="stack" onSubmit={(event) => void submit(event)} noValidate>
      <Segments
        options={[{ value: "market", label: t.ticket.market }, { value: "limit", label: t.ticket.limit }] as const}
        value={form.kind} onChange={(kind) => change({ kind, amount: "" })} label={t.ticket.kind}
      />
      {form.kind === "limit" ? <LimitFields form={form} change={change} /> : <MarketFields form={form} change={change} />}
      <AmountField form={form} change={change} available={available(funds.data)} problem={"problem" in result ? result.problem : null} />
      {funds.isError ? <Problem error={funds.error} onRetry={() => void funds.refetch()} /> : null}
      {quote === null ? null : <Summary quote={quote} form={form} />}
      <button type="submit" className={`button full ${form.side === "BUY" ? "buy" : "sell"}`} disabled={quote === null || placing.isBusy}>
        {placing.isBusy ? placing.doing : t.ticket.submit(t.side[form.side], market.outcomes[outcome] ?? "")}
      </button>
      {placing.error !== null ? <Shown><Problem error={placing.error} /></Shown> : null}
      <p className="muted small">{session.payer.kind === "eoa" ? t.ticket.fromAddress(session.label) : t.ticket.fromContract[session.payer.kind]}</p>
    </form>
  );
}

/** What must be seen although the ticket is longer than the screen. */
function Shown({ children }: { children: ReactNode }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void element.current?.scrollIntoView({ block: "nearest" });
  }, []);
  return <div ref={element}>{children}</div>;
}

function available(funds: { balance: bigint; reserved: bigint } | undefined): bigint | null {
  if (funds === undefined) return null;
  return funds.balance > funds.reserved ? funds.balance - funds.reserved : 0n;
}

function AmountField({ form, change, available: free, problem }: {
  form: Form; change: Change; available: bigint | null; problem: string | null;
}) {
  const isMoney = form.kind === "market" && form.side === "BUY";
  const cap = free === null ? null : (free / 10_000n) * 10_000n;
  const steps = isMoney ? ["1", "10", "100"] : ["10", "50", "100"];
  const canBeMax = cap !== null && cap > 0n && (isMoney || form.side === "SELL");
  return (
    <div className="stack tight">
      <Field label={isMoney ? t.ticket.amount : t.ticket.shares} problem={problem}>
        <input className="input" inputMode="decimal" autoComplete="off" value={form.amount} aria-invalid={problem !== null && problem !== ""}
          onChange={(event) => change({ amount: event.target.value })} placeholder="0" name="amount" />
      </Field>
      <div className="row spread wraps">
        <span className="muted small">{free === null ? " " : t.ticket.available(form.side === "BUY" ? dollarsOf(free) : shares(numberOf(free)))}</span>
        <span className="quick">
          {steps.map((step) => (
            <button key={step} type="button" className="button slim" onClick={() => change({ amount: step })}>{isMoney ? `$${step}` : step}</button>
          ))}
          {canBeMax ? <button type="button" className="button slim" onClick={() => change({ amount: unitsText(cap) })}>{t.ticket.max}</button> : null}
        </span>
      </div>
    </div>
  );
}

function LimitFields({ form, change }: { form: Form; change: Change }) {
  return (
    <>
      <Field label={t.ticket.price}>
        <input className="input" inputMode="decimal" autoComplete="off" value={form.price} placeholder="50" name="price"
          onChange={(event) => change({ price: event.target.value })} />
      </Field>
      <div className="row">
        <label className="field grow">
          <span>{t.ticket.until}</span>
          <select className="input" value={form.limitType} onChange={(event) => change({ limitType: event.target.value as Form["limitType"] })}>
            <option value="GTC">{t.ticket.types.GTC}</option>
            <option value="GTD">{t.ticket.types.GTD}</option>
          </select>
        </label>
        {form.limitType === "GTD" ? (
          <label className="field">
            <span>{t.ticket.minutes}</span>
            <input className="input" inputMode="numeric" style={{ width: "6rem" }} value={form.minutes} onChange={(event) => change({ minutes: event.target.value })} />
          </label>
        ) : null}
      </div>
      <label className="row small">
        <input type="checkbox" checked={form.postOnly} onChange={(event) => change({ postOnly: event.target.checked })} />
        <span>{t.ticket.postOnly}</span>
      </label>
    </>
  );
}

function MarketFields({ form, change }: { form: Form; change: Change }) {
  return (
    <label className="field">
      <span>{t.ticket.fill}</span>
      <select className="input" value={form.marketType} onChange={(event) => change({ marketType: event.target.value as Form["marketType"] })}>
        <option value="FAK">{t.ticket.types.FAK}</option>
        <option value="FOK">{t.ticket.types.FOK}</option>
      </select>
    </label>
  );
}

function Summary({ quote, form }: { quote: Quote; form: Form }) {
  const isBuy = form.side === "BUY";
  const payout = numberOf(quote.size);
  const cost = numberOf(quote.cost);
  return (
    <dl className="facts" data-quote>
      <dt>{t.ticket.averagePrice}</dt><dd>{cents(quote.averagePrice)}</dd>
      <dt>{t.ticket.shares}</dt><dd>{shares(payout)}</dd>
      <dt>{isBuy ? t.ticket.cost : t.ticket.proceeds}</dt><dd>{dollars(cost)}</dd>
      <dt>{t.ticket.fee}</dt><dd>{dollarsOf(quote.fee)}</dd>
      {isBuy ? <><dt>{t.ticket.payout}</dt><dd className="yes">{t.ticket.payoutOf(dollars(payout), dollars(payout - cost))}</dd></> : null}
      {form.kind === "limit" ? <><dt>{t.ticket.atOnce}</dt><dd>{shares(numberOf(quote.atOnce))}</dd></> : <><dt>{t.ticket.worstPrice}</dt><dd>{cents(numberOf(quote.wanted.price))}</dd></>}
    </dl>
  );
}
