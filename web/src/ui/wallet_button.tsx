// The connected wallet in the head of the page: its balance, and a dialog to change it.

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { numberOf, parseUnits } from "../lib/amounts";
import { useConfig, useNotify } from "../lib/context";
import { dollars, dollarsOf } from "../lib/format";
import { useKeptText } from "../lib/kept";
import { t } from "../strings";
import { transfer } from "../wallet/calls";
import { useFunds } from "../wallet/funds";
import { ensureChain, sendCall, waitForReceipt } from "../wallet/provider";
import { type Session, useSession } from "../wallet/session";
import { ConnectDialog } from "./connect";
import { Dialog, Field, Problem, Segments } from "./parts";

export function WalletButton() {
  const { session, isRestoring } = useSession();
  const [shown, setShown] = useState<"connect" | "account" | null>(null);
  const close = (): void => setShown(null);
  return (
    <>
      {session === null ? (
        <button type="button" className="button solid" disabled={isRestoring} onClick={() => setShown("connect")}>{t.wallet.connect}</button>
      ) : (
        <button type="button" className="button" onClick={() => setShown("account")} data-wallet={session.label}>
          <Balance /><span className="muted">{session.label}</span>
        </button>
      )}
      {shown === "connect" ? <ConnectDialog onClose={close} /> : null}
      {shown === "account" && session !== null ? <AccountDialog session={session} onClose={close} onSwitch={() => setShown("connect")} /> : null}
    </>
  );
}

function Balance() {
  const funds = useFunds();
  return <strong>{funds.data === undefined ? "…" : dollars(numberOf(funds.data.balance))}</strong>;
}

function AccountDialog({ session, onClose, onSwitch }: { session: Session; onClose: () => void; onSwitch: () => void }) {
  const { choosePayer, disconnect } = useSession();
  const funds = useFunds();
  const [error, setError] = useState<unknown>(null);
  return (
    <Dialog title={session.label} onClose={onClose}>
      <dl className="facts">
        <dt>{t.wallet.address}</dt><dd className="small">{session.address}</dd>
        <dt>{t.wallet.payer}</dt><dd className="small">{session.maker}</dd>
        <dt>{t.wallet.balance}</dt><dd>{funds.data === undefined ? "…" : dollarsOf(funds.data.balance)}</dd>
        <dt>{t.wallet.reserved}</dt><dd>{funds.data === undefined ? "…" : dollarsOf(funds.data.reserved)}</dd>
      </dl>
      <Segments
        label={t.wallet.tradeFrom}
        options={session.payers.map(({ kind }) => ({ value: kind, label: t.wallet.payers[kind] }))}
        value={session.payer.kind}
        onChange={(kind) => void choosePayer(kind).catch(setError)}
      />
      <p className="muted small">{t.wallet.payerHints[session.payer.kind]}</p>
      {session.payer.kind === "eoa" ? null : <Deposit session={session} />}
      {error !== null ? <Problem error={error} /> : null}
      <div className="row">
        <button type="button" className="button grow" onClick={onSwitch}>{t.wallet.switch}</button>
        <button type="button" className="button grow" onClick={() => { disconnect(); onClose(); }}>{t.wallet.disconnect}</button>
      </div>
    </Dialog>
  );
}

/** Move collateral from the owner's address to the contract that it trades from. */
function Deposit({ session }: { session: Session }) {
  const config = useConfig();
  const notify = useNotify();
  const client = useQueryClient();
  const [amount, setAmount] = useKeptText(`deposit.${session.maker}`);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const units = parseUnits(amount);
  const deposit = async (): Promise<void> => {
    if (units === null || units === 0n) return;
    setBusy(true);
    setError(null);
    try {
      await ensureChain(session.provider, config);
      const hash = await sendCall(session.provider, session.address, transfer(config, session.maker, units));
      await waitForReceipt(session.provider, hash);
      notify("good", t.wallet.deposited(dollarsOf(units), t.wallet.payers[session.payer.kind]));
      setAmount("");
      await client.invalidateQueries({ queryKey: ["own"] });
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="stack tight">
      <div className="row" style={{ alignItems: "end" }}>
        <div className="grow"><Field label={t.wallet.deposit(t.wallet.payers[session.payer.kind])}><input className="input" inputMode="decimal" value={amount} onChange={(event) => setAmount(event.target.value)} placeholder="100" /></Field></div>
        <button type="button" className="button" disabled={isBusy || units === null || units === 0n} onClick={() => void deposit()}>{isBusy ? t.wallet.sending : t.wallet.move}</button>
      </div>
      {error !== null ? <Problem error={error} /> : null}
    </div>
  );
}
