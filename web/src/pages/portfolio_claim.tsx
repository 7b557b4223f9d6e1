// Shares that the wallet refused when they were delivered: the exchange keeps them until they are claimed.

import { useQuery } from "@tanstack/react-query";

import { fetchOwed } from "../api/data";
import { useConfig } from "../lib/context";
import { t } from "../strings";
import { Problem } from "../ui/parts";
import { claim } from "../wallet/calls";
import type { Address } from "../wallet/provider";
import { type Session, useSession } from "../wallet/session";
import { useChainAction } from "./portfolio_redeem";

const POLL_MS = 10_000;

export function ClaimShares() {
  const { session } = useSession();
  return session === null ? null : <OwedShares key={session.maker} session={session} />;
}

function OwedShares({ session }: { session: Session }) {
  const config = useConfig();
  const { isBusy, error, run } = useChainAction();
  const owed = useQuery({ queryKey: ["portfolio", "owed", session.maker], queryFn: () => fetchOwed(config, session.maker), refetchInterval: POLL_MS });
  const rows = owed.data ?? [];
  if (rows.length === 0) return null;
  const receivers: { to: Address; label: string }[] = [{ to: session.maker, label: t.claim.claim }];
  if (session.payer.kind !== "eoa") receivers.push({ to: session.address, label: t.claim.toAddress });
  return (
    <section className="callout" aria-label={t.claim.title}>
      <span className="stack tight"><strong>{t.claim.title}</strong><span className="muted small">{t.claim.text}</span></span>
      <ul className="stack tight">
        {rows.map((row) => <li key={`${row.exchange} ${row.asset}`}>{t.claim.row(row.size, row.outcome, row.title)}</li>)}
      </ul>
      <div className="row wraps">
        {receivers.map(({ to, label }) => (
          <button key={label} type="button" className="button" disabled={isBusy} onClick={() => void run(async () => rows.map((row) => claim(row, to)), t.claim.done)}>
            {isBusy ? t.wallet.sending : label}
          </button>
        ))}
      </div>
      {error !== null ? <Problem error={error} /> : null}
    </section>
  );
}
