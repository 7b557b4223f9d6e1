// A market of the optimistic oracle: where its answer stands, and what anybody may do about it.

import { useQuery } from "@tanstack/react-query";

import type { Event, Market } from "../api/discovery";
import { useConfig } from "../lib/context";
import { dollarsOf, moment } from "../lib/format";
import { t } from "../strings";
import { Problem, Skeleton } from "../ui/parts";
import type { Answer } from "../wallet/answers";
import { type OptimisticState, disputeCalls, proposeCalls, readOptimistic, readOwed, reportCalls, withdrawCall } from "../wallet/optimistic";
import type { Call } from "../wallet/provider";
import { type Session, useSession } from "../wallet/session";
import { useChainAction } from "./portfolio_redeem";

const POLL_MS = 5_000;

/** Return the words for an answer to a market. */
function nameOf(market: Market, answer: Answer | null): string {
  if (answer === null) return "";
  return answer === "half" ? t.resolve.half : market.outcomes[answer === "first" ? 0 : 1];
}

export function OptimisticAnswer({ event, market }: { event: Event; market: Market }) {
  const { session } = useSession();
  if (session === null) return <span className="muted small">{t.resolve.connectToAnswer}</span>;
  return <WithWallet event={event} market={market} session={session} />;
}

function WithWallet({ event, market, session }: { event: Event; market: Market; session: Session }) {
  const config = useConfig();
  const now = useQuery({
    queryKey: ["own", "optimistic", market.conditionId],
    queryFn: () => readOptimistic(config, session.provider, market),
    refetchInterval: POLL_MS,
  });
  if (now.isError) return <Problem error={now.error} onRetry={() => void now.refetch()} />;
  if (now.data === undefined) return <Skeleton height="2rem" />;
  return <Standing event={event} market={market} now={now.data} />;
}

function Standing({ event, market, now }: { event: Event; market: Market; now: OptimisticState }) {
  const config = useConfig();
  const { isBusy, error, run } = useChainAction();
  const answer = nameOf(market, now.proposed);
  const act = (label: string, kind: string, make: () => Promise<Call[]>, done: string) => (
    <button key={label} type="button" className={`button slim ${kind}`} disabled={isBusy} onClick={() => void run(make, done)}>{isBusy ? t.wallet.sending : label}</button>
  );
  const choices: [Answer, string][] = [["first", "buy"], ["second", "sell"], ...(market.negRisk ? [] : [["half", ""] as [Answer, string]])];
  const stands = now.isResolved || now.state === "expired" || now.state === "settled";
  return (
    <div className="stack tight" data-state={now.state}>
      <p className="muted small">
        {stands ? t.resolve.stands(answer) : null}
        {!stands && now.state === "requested" ? (now.isAskedAgain ? t.resolve.again : t.resolve.open) : null}
        {!stands && now.state === "proposed" ? t.resolve.proposed(answer, moment(now.expiresAtS)) : null}
        {!stands && now.state === "disputed" ? t.resolve.disputed : null}
      </p>
      <div className="row wraps" role="group" aria-label={t.resolve.answerOf(market.question)}>
        {!stands && now.state === "requested" ? (
          <>
            {choices.map(([each, kind]) => act(t.resolve.propose(nameOf(market, each)), kind, async () => proposeCalls(config, market, now, each), t.resolve.proposedDone))}
            <span className="muted small">{t.resolve.bond(dollarsOf(now.bond))}</span>
          </>
        ) : null}
        {!stands && now.state === "proposed" ? (
          <>
            {act(t.resolve.dispute, "sell", async () => disputeCalls(config, market, now), t.resolve.disputedDone)}
            <span className="muted small">{t.resolve.bond(dollarsOf(now.bond))}</span>
          </>
        ) : null}
        {stands ? act(t.resolve.report, "solid", async () => reportCalls(config, market, event.markets, now), t.resolve.done) : null}
      </div>
      {error !== null ? <Problem error={error} /> : null}
    </div>
  );
}

/** What the oracle owes the wallet: bonds that came back, and rewards. */
export function OracleOwes() {
  const { session } = useSession();
  return session === null ? null : <OwedTo key={session.maker} session={session} />;
}

function OwedTo({ session }: { session: Session }) {
  const config = useConfig();
  const { isBusy, error, run } = useChainAction();
  const owed = useQuery({
    queryKey: ["own", "owed", session.maker],
    queryFn: () => readOwed(config, session.provider, session.maker),
    refetchInterval: POLL_MS,
  });
  if (owed.data === undefined || (owed.data === 0n && error === null)) return null;
  const amount = dollarsOf(owed.data);
  return (
    <section className="callout good">
      <div className="row spread wraps">
        <span className="stack tight"><strong>{t.resolve.owed(amount)}</strong><span className="muted small">{t.resolve.owedText}</span></span>
        <button type="button" className="button buy" disabled={isBusy} onClick={() => void run(async () => [withdrawCall(config)], t.resolve.withdrawn(amount))}>
          {isBusy ? t.wallet.sending : t.resolve.withdraw}
        </button>
      </div>
      {error !== null ? <Problem error={error} /> : null}
    </section>
  );
}
