// Answers to open questions: by the sandbox's proposer, or by a proposer's own wallet.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { type Event, type Market, fetchEvents } from "../api/discovery";
import { useConfig, useNotify } from "../lib/context";
import { day } from "../lib/format";
import { t } from "../strings";
import { Empty, Link, Problem, Skeleton } from "../ui/parts";
import { type Answer, answerCalls, isAnsweredDirectly } from "../wallet/answers";
import { type Address, type Provider, WalletProblem, ensureChain, sendCall, waitForReceipt } from "../wallet/provider";
import { sandboxProvider } from "../wallet/sandbox";
import { useSession } from "../wallet/session";
import { OptimisticAnswer, OracleOwes } from "./resolve_optimistic";

const EVENTS_SHOWN = 100;

interface Proposer {
  address: Address;
  provider: Provider;
  label: string;
}

function useProposer(): Proposer | null {
  const { session, sandbox } = useSession();
  const own = sandbox.find((account) => account.role === "proposer");
  if (own !== undefined) return { address: own.address, provider: sandboxProvider(own.address), label: t.wallet.roles.proposer };
  return session;
}

export function ResolvePage() {
  const config = useConfig();
  const proposer = useProposer();
  const events = useQuery({
    queryKey: ["events", "open"],
    queryFn: () => fetchEvents(config, { order: "endDate", ascending: true, closed: false, offset: 0, limit: EVENTS_SHOWN }),
    refetchInterval: 5_000,
  });
  return (
    <div className="page narrow stack loose">
      <div className="stack tight">
        <h1>{t.resolve.title}</h1>
        <p className="muted">{proposer === null ? t.resolve.noProposer : t.resolve.lead(proposer.label)}</p>
      </div>
      {events.isError ? <Problem error={events.error} onRetry={() => void events.refetch()} /> : null}
      {events.isPending ? <Skeleton height="6rem" count={3} /> : null}
      {events.data?.length === 0 ? <Empty title={t.resolve.none} /> : null}
      <OracleOwes />
      <ul className="stack">
        {(events.data ?? []).map((event) => <li key={event.id}><EventAnswers event={event} proposer={proposer} /></li>)}
      </ul>
    </div>
  );
}

function EventAnswers({ event, proposer }: { event: Event; proposer: Proposer | null }) {
  const open = event.markets.filter((market) => !market.closed);
  return (
    <section className="card stack" aria-label={event.title}>
      <div className="row spread wraps">
        <h2><Link to={`/event/${event.slug}`}>{event.title}</Link></h2>
        <span className="muted small">{t.markets.ends(day(event.endDate))}</span>
      </div>
      {open.map((market) => <MarketAnswer key={market.id} event={event} market={market} proposer={proposer} />)}
    </section>
  );
}

function MarketAnswer({ event, market, proposer }: { event: Event; market: Market; proposer: Proposer | null }) {
  const config = useConfig();
  const notify = useNotify();
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const answer = async (given: Answer): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      if (proposer === null) throw new WalletProblem(t.resolve.noProposer);
      await ensureChain(proposer.provider, config);
      const calls = await answerCalls(config, proposer.provider, market, event.markets, given);
      for (const call of calls) await waitForReceipt(proposer.provider, await sendCall(proposer.provider, proposer.address, call));
      notify("good", t.resolve.done);
      await client.invalidateQueries();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  const choices: [Answer, string, string][] = [
    ["first", market.outcomes[0], "buy"],
    ["second", market.outcomes[1], "sell"],
    ...(market.negRisk ? [] : [["half", t.resolve.half, ""] as [Answer, string, string]]),
  ];
  return (
    <div className="stack tight">
      <div className="row spread wraps">
        {event.markets.length > 1 ? <span className="grow">{market.groupItemTitle || market.question}</span> : <span className="grow muted">{market.question === event.title ? "" : market.question}</span>}
        {isAnsweredDirectly(config, market) ? (
          <span className="row" role="group" aria-label={t.resolve.answerOf(market.question)}>
            {choices.map(([given, label, kind]) => (
              <button key={given} type="button" className={`button slim ${kind}`} disabled={isBusy || proposer === null} onClick={() => void answer(given)}>{label}</button>
            ))}
          </span>
        ) : <span className="badge">{t.resolve.optimistic}</span>}
      </div>
      {isAnsweredDirectly(config, market) ? null : <OptimisticAnswer event={event} market={market} />}
      {error !== null ? <Problem error={error} /> : null}
    </div>
  );
}
