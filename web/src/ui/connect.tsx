// The choice of a wallet: one of the sandbox's, or the browser's own.

import { useState } from "react";

import { useConfig } from "../lib/context";
import { shortAddress } from "../lib/format";
import { t } from "../strings";
import { hasToken } from "../wallet/sandbox";
import { labelOf, useSession } from "../wallet/session";
import { Dialog, Problem } from "./parts";

export function ConnectDialog({ onClose }: { onClose: () => void }) {
  const config = useConfig();
  const { sandbox, sandboxError, connectSandbox, connectInjected } = useSession();
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const connect = (connecting: () => Promise<void>): void => {
    setBusy(true);
    setError(null);
    connecting().then(onClose, setError).finally(() => setBusy(false));
  };
  return (
    <Dialog title={t.wallet.connect} onClose={onClose}>
      <button type="button" className="menu-item" disabled={isBusy || window.ethereum === undefined} onClick={() => connect(connectInjected)}>
        <span className="grow stack tight">
          <strong>{t.wallet.browser}</strong>
          <span className="muted small">{window.ethereum === undefined ? t.wallet.browserMissing : t.wallet.browserHint}</span>
        </span>
      </button>
      {config.isSandbox ? (
        <section className="stack">
          <h3>{t.wallet.sandbox}</h3>
          <p className="muted small">{hasToken() ? t.wallet.sandboxHint : t.wallet.sandboxNoToken}</p>
          {sandboxError !== null ? <Problem error={sandboxError} /> : null}
          <ul className="stack tight">
            {sandbox.map((account) => (
              <li key={account.address}>
                <button type="button" className="menu-item" disabled={isBusy} onClick={() => connect(() => connectSandbox(account))}>
                  <span className="grow strong">{labelOf(account, sandbox)}</span>
                  <span className="muted small">{shortAddress(account.address)}</span>
                </button>
              </li>
            ))}
          </ul>
        </section>
      ) : null}
      {error !== null ? <Problem error={error} /> : null}
    </Dialog>
  );
}
