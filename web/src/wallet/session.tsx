// The wallet that the user acts as, for every component.

import { type ReactNode, createContext, useCallback, useContext, useEffect, useMemo, useState } from "react";

import { type Answer, get } from "../client/api";
import type { Config } from "../lib/config";
import { useConfig, useNotify } from "../lib/context";
import { readStored, writeStored } from "../lib/stored";
import { shortAddress } from "../lib/format";
import { t } from "../strings";
import { credentialsOf } from "./credentials";
import { PROXY_CALLS_MAX, executeFromProxy } from "./proxy";
import { createSafe, executeFromSafe } from "./safe";
import { type Address, type Call, type Hex, type Provider, WalletProblem, ensureChain, hexOf, sendCall, waitForReceipt, type Typed } from "./provider";
import { type SandboxAccount, fetchSandboxAccounts, hasToken, sandboxProvider } from "./sandbox";

export type Account = Answer<"trading", "get", "/auth/account">;

/** A wallet that can pay for orders: the account itself, or a contract that it owns. */
export type PayerKind = "eoa" | "safe" | "proxy wallet";

export interface Payer {
  kind: PayerKind;
  address: Address;
  isDeployed: boolean;
  signatureType: number;
}

const PAYER_KINDS: readonly PayerKind[] = ["eoa", "safe", "proxy wallet"];

export interface Session {
  kind: "sandbox" | "injected";
  address: Address;
  label: string;
  role: SandboxAccount["role"] | null;
  provider: Provider;
  keyDomain: Typed["domain"];
  /** The wallets that it can trade from. */
  payers: Payer[];
  payer: Payer;
  /** The address of the payer, which pays and holds. */
  maker: Address;
  signatureType: number;
}

interface SessionState {
  session: Session | null;
  /** Whether the page still looks for the wallet of before a reload. */
  isRestoring: boolean;
  sandbox: SandboxAccount[];
  sandboxError: unknown;
  connectSandbox: (account: SandboxAccount) => Promise<void>;
  connectInjected: () => Promise<void>;
  choosePayer: (kind: PayerKind) => Promise<void>;
  disconnect: () => void;
}

const SessionContext = createContext<SessionState | null>(null);
const STORED = "wallet";

declare global {
  interface Window {
    ethereum?: Provider;
  }
}

export function useSession(): SessionState {
  const state = useContext(SessionContext);
  if (state === null) throw new Error("the session is above every page");
  return state;
}

export function fetchAccount(config: Config, address: Address): Promise<Account> {
  return get(config, "trading", "/auth/account", { address });
}

export function labelOf(account: SandboxAccount, all: SandboxAccount[]): string {
  if (account.role !== "trader") return t.wallet.roles[account.role];
  const traders = all.filter((each) => each.role === "trader");
  return t.wallet.trader(traders.findIndex((each) => each.address === account.address) + 1);
}

interface Chosen {
  kind: Session["kind"];
  address: Address;
  payer: PayerKind;
}

/** Return the wallets of an account that the app can trade from. */
function payersOf(account: Account): Payer[] {
  return PAYER_KINDS.flatMap((kind) => {
    const found = account.wallets.find((each) => each.kind === kind);
    return found === undefined ? [] : [{ kind, address: hexOf(found.address), isDeployed: found.isDeployed, signatureType: found.signatureType }];
  });
}

function storedChoice(): Chosen | null {
  const text = readStored("session", STORED);
  return text === null ? null : (JSON.parse(text) as Chosen);
}

export function SessionProvider({ children }: { children: ReactNode }) {
  const config = useConfig();
  const notify = useNotify();
  const [session, setSession] = useState<Session | null>(null);
  const [sandbox, setSandbox] = useState<SandboxAccount[]>([]);
  const [isRestoring, setRestoring] = useState(true);
  const [sandboxError, setSandboxError] = useState<unknown>(null);

  const open = useCallback(
    async (chosen: Chosen, accounts: SandboxAccount[]): Promise<void> => {
      const account = await fetchAccount(config, chosen.address);
      const payers = payersOf(account);
      const payer = payers.find((each) => each.kind === chosen.payer) ?? payers[0];
      const listed = accounts.find((each) => each.address === chosen.address);
      const provider = chosen.kind === "sandbox" ? sandboxProvider(chosen.address) : window.ethereum;
      if (provider === undefined || payer === undefined) throw new WalletProblem(t.wallet.none);
      setSession({
        kind: chosen.kind,
        address: hexOf(account.address),
        label: listed === undefined ? shortAddress(account.address) : labelOf(listed, accounts),
        role: listed?.role ?? null,
        provider,
        keyDomain: account.auth.domain as Typed["domain"],
        payers,
        payer,
        maker: payer.address,
        signatureType: payer.signatureType,
      });
      writeStored("session", STORED, JSON.stringify(chosen));
    },
    [config],
  );

  useEffect(() => {
    const restore = async (): Promise<void> => {
      const accounts = config.isSandbox && hasToken() ? await fetchSandboxAccounts() : [];
      setSandbox(accounts);
      const chosen = storedChoice();
      if (chosen === null) return;
      if (chosen.kind === "injected") {
        const allowed = (await window.ethereum?.request({ method: "eth_accounts" })) as string[] | undefined;
        if (!allowed?.some((each) => each.toLowerCase() === chosen.address.toLowerCase())) return;
      }
      await open(chosen, accounts);
    };
    restore().catch(setSandboxError).finally(() => setRestoring(false));
  }, [config, open]);

  const disconnect = useCallback(() => {
    setSession(null);
    writeStored("session", STORED, null);
  }, []);

  useInjectedChanges(session, (words) => {
    disconnect();
    notify("wait", words);
  });

  const state = useMemo<SessionState>(
    () => ({
      session,
      isRestoring,
      sandbox,
      sandboxError,
      disconnect,
      connectSandbox: (account) => open({ kind: "sandbox", address: account.address, payer: "eoa" }, sandbox),
      connectInjected: async () => {
        if (window.ethereum === undefined) throw new WalletProblem(t.wallet.none);
        const [address] = (await requestAccounts(window.ethereum)) as Address[];
        if (address === undefined) throw new WalletProblem(t.wallet.noAccount);
        await ensureChain(window.ethereum, config);
        await credentialsOf(config, { address, provider: window.ethereum });
        await open({ kind: "injected", address, payer: "eoa" }, sandbox);
      },
      choosePayer: async (payer) => {
        if (session !== null) await open({ kind: session.kind, address: session.address, payer }, sandbox);
      },
    }),
    [session, isRestoring, sandbox, sandboxError, disconnect, open, config],
  );
  return <SessionContext.Provider value={state}>{children}</SessionContext.Provider>;
}

async function requestAccounts(provider: Provider): Promise<unknown> {
  try {
    return await provider.request({ method: "eth_requestAccounts" });
  } catch (error) {
    throw new WalletProblem((error as { code?: number }).code === 4001 ? t.wallet.refused : t.wallet.failed(String((error as Error).message)), true);
  }
}

/** End the session when the browser's wallet switches to another account: it signs for one account only. */
function useInjectedChanges(session: Session | null, end: (words: string) => void): void {
  useEffect(() => {
    if (session?.kind !== "injected") return;
    const { provider } = session;
    const switched = (accounts: string[]): void => {
      const [now] = accounts;
      if (now?.toLowerCase() === session.address.toLowerCase()) return;
      end(now === undefined ? t.wallet.locked : t.wallet.switched(shortAddress(now)));
    };
    provider.on?.("accountsChanged", switched as (value: never) => void);
    return () => provider.removeListener?.("accountsChanged", switched as (value: never) => void);
  });
}

/** Make calls from the user's own contract, which is made first if it does not exist; return the hashes. */
async function executeFromContract(config: Config, session: Session, calls: Call[]): Promise<Hex[]> {
  const { payer } = session;
  if (payer.kind === "safe") {
    if (!payer.isDeployed) await createSafe(config, session, payer.address);
    return [await executeFromSafe(config, session, payer.address, calls)];
  }
  const hashes: Hex[] = [];
  for (let from = 0; from < calls.length; from += PROXY_CALLS_MAX) {
    hashes.push(await executeFromProxy(config, session, payer.address, calls.slice(from, from + PROXY_CALLS_MAX)));
  }
  return hashes;
}

/** Make calls as the session's wallet: a transaction each, or bundles of the contract that it trades from. */
export function useExecute(): (calls: Call[], onStep?: (done: number) => void) => Promise<Hex[]> {
  const config = useConfig();
  const { session, choosePayer } = useSession();
  return useCallback(
    async (calls, onStep) => {
      if (session === null) throw new WalletProblem(t.wallet.noAccount);
      if (session.payer.kind !== "eoa") {
        const made = await executeFromContract(config, session, calls);
        if (!session.payer.isDeployed) await choosePayer(session.payer.kind); // it exists now
        return made;
      }
      await ensureChain(session.provider, config);
      const hashes: Hex[] = [];
      for (const call of calls) {
        const hash = await sendCall(session.provider, session.address, call);
        await waitForReceipt(session.provider, hash);
        hashes.push(hash);
        onStep?.(hashes.length);
      }
      return hashes;
    },
    [config, session, choosePayer],
  );
}
