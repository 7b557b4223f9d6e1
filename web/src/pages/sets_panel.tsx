// Split collateral into a complete set, which needs no counterparty, or merge a set back.

import type { Market } from "../api/discovery";
import { parseUnits } from "../lib/amounts";
import { useConfig } from "../lib/context";
import { dollarsOf } from "../lib/format";
import { useKeptText } from "../lib/kept";
import { t } from "../strings";
import { Field, Problem } from "../ui/parts";
import { merge, split } from "../wallet/calls";
import type { Hex } from "../wallet/provider";
import { useSession } from "../wallet/session";
import { useChainAction } from "./portfolio_redeem";

export function SetsPanel({ market }: { market: Market }) {
  const config = useConfig();
  const { session } = useSession();
  const { isBusy, error, run } = useChainAction();
  const [amount, setAmount] = useKeptText(`sets.${market.conditionId}`);
  if (session === null || market.closed) return null;
  const units = parseUnits(amount) ?? 0n;
  const held = { conditionId: market.conditionId as Hex, isNegRisk: market.negRisk };
  return (
    <details className="card" open={amount !== "" || undefined}>
      <summary>{t.sets.title}</summary>
      <div className="stack" style={{ marginTop: "var(--s3)" }}>
        <p className="muted small">{t.sets.text(market.outcomes[0], market.outcomes[1])}</p>
        <Field label={t.sets.amount}>
          <input className="input" inputMode="decimal" value={amount} placeholder="10" onChange={(event) => setAmount(event.target.value)} />
        </Field>
        <div className="row">
          <button type="button" className="button grow" disabled={isBusy || units === 0n} onClick={() => void run(async () => [split(config, held, units)], t.sets.splitDone(dollarsOf(units)))}>{isBusy ? t.wallet.sending : t.sets.split}</button>
          <button type="button" className="button grow" disabled={isBusy || units === 0n} onClick={() => void run(async () => [merge(config, held, units)], t.portfolio.merged(dollarsOf(units)))}>{isBusy ? t.wallet.sending : t.portfolio.merge}</button>
        </div>
        {error !== null ? <Problem error={error} /> : null}
      </div>
    </details>
  );
}
