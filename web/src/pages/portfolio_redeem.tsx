// Redeem what resolved, and merge complete sets: from the wallet itself, or from its Safe through the relayer.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import type { Position } from "../api/data";
import { unitsOf } from "../lib/amounts";
import { useConfig, useNotify } from "../lib/context";
import { dollars, dollarsOf } from "../lib/format";
import { t } from "../strings";
import { Problem } from "../ui/parts";
import { approvals, merge, readTokens, redeem } from "../wallet/calls";
import type { Call, Hex } from "../wallet/provider";
import { useExecute, useSession } from "../wallet/session";

const BUNDLE_MAX = 30;

/** Run calls of the wallet, and read the portfolio again; the caller shows what is happening. */
export function useChainAction(): { isBusy: boolean; error: unknown; run: (make: () => Promise<Call[]>, done: string) => Promise<void> } {
  const execute = useExecute();
  const notify = useNotify();
  const client = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run = async (make: () => Promise<Call[]>, done: string): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const calls = await make();
      for (let from = 0; from < calls.length; from += BUNDLE_MAX) await execute(calls.slice(from, from + BUNDLE_MAX));
      notify("good", done);
      await client.invalidateQueries({ queryKey: ["portfolio"] });
      await client.invalidateQueries({ queryKey: ["own"] });
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, error, run };
}

/** Return the positions by condition: one call redeems both outcomes. */
function byCondition(positions: Position[]): Position[][] {
  const groups = new Map<string, Position[]>();
  for (const position of positions) groups.set(position.conditionId, [...(groups.get(position.conditionId) ?? []), position]);
  return [...groups.values()];
}

export function RedeemAll({ positions }: { positions: Position[] }) {
  const config = useConfig();
  const { session } = useSession();
  const { isBusy, error, run } = useChainAction();
  const redeemable = positions.filter((position) => position.redeemable);
  if (redeemable.length === 0 || session === null) return null;
  const worth = redeemable.reduce((sum, position) => sum + position.currentValue, 0);
  const groups = byCondition(redeemable);
  const calls = async (): Promise<Call[]> => {
    const needsAdapter = redeemable.some((position) => position.negativeRisk);
    const made: Call[] = needsAdapter ? approvals(config).slice(-1) : [];
    for (const group of groups) {
      const [first] = group;
      if (first === undefined) continue;
      const held = { conditionId: first.conditionId as Hex, isNegRisk: first.negativeRisk };
      const [yes, no] = first.outcomeIndex === 0 ? [first.asset, first.oppositeAsset] : [first.oppositeAsset, first.asset];
      made.push(redeem(config, held, await readTokens(config, session.provider, session.maker, [yes, no])));
    }
    return made;
  };
  return (
    <section className="callout good">
      <div className="row spread wraps">
        <span className="stack tight">
          <strong>{t.portfolio.redeemTitle(dollars(worth))}</strong>
          <span className="muted small">{t.portfolio.redeemText(groups.length)}</span>
        </span>
        <button type="button" className="button buy" disabled={isBusy} onClick={() => void run(calls, t.portfolio.redeemed(dollars(worth)))}>
          {isBusy ? t.wallet.sending : t.portfolio.redeemAll}
        </button>
      </div>
      {error !== null ? <Problem error={error} /> : null}
    </section>
  );
}

export function MergeButton({ position, other }: { position: Position; other: Position | undefined }) {
  const config = useConfig();
  const { isBusy, error, run } = useChainAction();
  if (other === undefined) return null;
  const units = unitsOf(Math.min(position.size, other.size));
  const held = { conditionId: position.conditionId as Hex, isNegRisk: position.negativeRisk };
  return (
    <span className="stack tight">
      <button
        type="button" className="button slim" disabled={isBusy} title={t.portfolio.mergeHint(dollarsOf(units))}
        onClick={() => void run(async () => [merge(config, held, units)], t.portfolio.merged(dollarsOf(units)))}
      >
        {isBusy ? t.wallet.sending : t.portfolio.merge}
      </button>
      {error !== null ? <Problem error={error} /> : null}
    </span>
  );
}
