// What a wallet needs before its first order: a connection, and the approvals of its assets.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useConfig, useNotify } from "../lib/context";
import { t } from "../strings";
import { Problem } from "../ui/parts";
import { ConnectDialog } from "../ui/connect";
import { approvals } from "../wallet/calls";
import type { Funds } from "../wallet/orders";
import { type Session, useExecute } from "../wallet/session";

export function ConnectPrompt() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="button solid full" onClick={() => setOpen(true)}>{t.wallet.connect}</button>
      <p className="muted small">{t.wallet.connectHint}</p>
      {isOpen ? <ConnectDialog onClose={() => setOpen(false)} /> : null}
    </>
  );
}

const ENOUGH = 2n ** 128n;

/** Return whether the exchange may not yet move what an order of this side gives. */
export function needsApproval(funds: Funds, side: "BUY" | "SELL"): boolean {
  return side === "BUY" ? funds.allowance < ENOUGH : funds.allowance === 0n && funds.balance > 0n;
}

export function ApproveTrading({ session }: { session: Session }) {
  const config = useConfig();
  const notify = useNotify();
  const client = useQueryClient();
  const execute = useExecute();
  const [done, setDone] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const calls = approvals(config);
  const approve = async (): Promise<void> => {
    setError(null);
    setDone(0);
    try {
      await execute(calls, setDone);
      notify("good", t.ticket.approved);
      await client.invalidateQueries({ queryKey: ["own"] });
    } catch (failure) {
      setError(failure);
    } finally {
      setDone(null);
    }
  };
  return (
    <div className="stack">
      <div className="callout">
        <strong>{t.ticket.approveTitle}</strong>
        <span>{t.ticket.approveText}</span>
      </div>
      <button type="button" className="button solid full" onClick={() => void approve()} disabled={done !== null}>
        {done === null ? t.ticket.approve : t.ticket.approving(done, session.payer.kind === "eoa" ? calls.length : 1)}
      </button>
      {error !== null ? <Problem error={error} onRetry={() => void approve()} /> : null}
    </div>
  );
}
