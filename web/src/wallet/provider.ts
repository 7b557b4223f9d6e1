// A wallet as EIP-1193 describes it: the browser's own, or one of the sandbox's, which has the same methods.

import type { TypedDataDomain } from "viem";

import type { Config } from "../lib/config";
import { pause } from "../lib/http";
import { t } from "../strings";

export type Address = `0x${string}`;
export type Hex = `0x${string}`;

export interface Provider {
  request(args: { method: string; params?: unknown[] }): Promise<unknown>;
  on?(event: string, listener: (value: never) => void): void;
  removeListener?(event: string, listener: (value: never) => void): void;
}

export interface Typed {
  domain: TypedDataDomain;
  types: Record<string, { name: string; type: string }[]>;
  primaryType: string;
  message: Record<string, unknown>;
}

export interface Call {
  to: Address;
  data: Hex;
  value?: bigint;
}

const HEX = /^0x[0-9a-f]*$/i;

/** Return a text of a server as hex; whatever else it sends is never signed or sent on. */
export function hexOf(text: string): Hex {
  if (!HEX.test(text)) throw new WalletProblem(t.wallet.notHex(text.slice(0, 80)));
  return text as Hex;
}

const RECEIPT_MS = 120_000;
const POLL_MS = 700;
const USER_REJECTED = 4001;
const CHAIN_UNKNOWN = 4902;

/** A wallet that did not do what it was asked; the message says why and what to do. */
export class WalletProblem extends Error {
  constructor(message: string, readonly isRefusal = false) {
    super(message);
  }
}

async function ask(provider: Provider, method: string, params: unknown[]): Promise<unknown> {
  try {
    return await provider.request({ method, params });
  } catch (error) {
    const { code, message } = error as { code?: number; message?: string };
    if (code === USER_REJECTED) throw new WalletProblem(t.wallet.refused, true);
    if (error instanceof Error && !("code" in error && typeof code === "number")) throw error;
    throw new WalletProblem(t.wallet.failed(message ?? String(error)));
  }
}

function domainFields(domain: TypedDataDomain): { name: string; type: string }[] {
  const kinds: [keyof TypedDataDomain, string][] = [["name", "string"], ["version", "string"], ["chainId", "uint256"], ["verifyingContract", "address"]];
  return kinds.filter(([name]) => domain[name] !== undefined).map(([name, type]) => ({ name, type }));
}

export async function signTyped(provider: Provider, address: Address, typed: Typed): Promise<Hex> {
  const types = { EIP712Domain: domainFields(typed.domain), ...typed.types };
  const text = JSON.stringify({ ...typed, types }, (_, value: unknown) => (typeof value === "bigint" ? value.toString() : value));
  return (await ask(provider, "eth_signTypedData_v4", [address, text])) as Hex;
}

/** Have the wallet sign 32 bytes as a personal message (EIP-191). */
export async function signBytes(provider: Provider, address: Address, bytes: Hex): Promise<Hex> {
  return (await ask(provider, "personal_sign", [bytes, address])) as Hex;
}

export async function sendCall(provider: Provider, from: Address, call: Call): Promise<Hex> {
  const value = `0x${(call.value ?? 0n).toString(16)}`;
  return (await ask(provider, "eth_sendTransaction", [{ from, to: call.to, data: call.data, value }])) as Hex;
}

interface Receipt {
  status: string;
}

/** Wait until a transaction is in a block; raise if it failed there, or is in none for long. */
export async function waitForReceipt(provider: Provider, hash: Hex): Promise<void> {
  for (const end = Date.now() + RECEIPT_MS; Date.now() < end; await pause(POLL_MS)) {
    const receipt = (await ask(provider, "eth_getTransactionReceipt", [hash])) as Receipt | null;
    if (receipt === null) continue;
    if (BigInt(receipt.status) !== 1n) throw new WalletProblem(t.wallet.reverted(hash));
    return;
  }
  throw new WalletProblem(t.wallet.notMined(hash));
}

export async function readChain(provider: Provider, call: Call): Promise<Hex> {
  return (await ask(provider, "eth_call", [{ to: call.to, data: call.data }, "latest"])) as Hex;
}

/** Have the wallet use the exchange's chain; refuse to sign for another one. */
export async function ensureChain(provider: Provider, config: Config): Promise<void> {
  const current = async (): Promise<number> => Number(await ask(provider, "eth_chainId", []));
  if ((await current()) === config.chainId) return;
  const chainId = `0x${config.chainId.toString(16)}`;
  try {
    await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  } catch (error) {
    if ((error as { code?: number }).code !== CHAIN_UNKNOWN || config.chainUrl === null) {
      throw new WalletProblem(t.wallet.wrongChain(config.chainId));
    }
    const chain = {
      chainId, chainName: "Foretell", rpcUrls: [config.chainUrl],
      nativeCurrency: { name: "Gas", symbol: "GAS", decimals: 18 },
    };
    await ask(provider, "wallet_addEthereumChain", [chain]);
  }
  if ((await current()) !== config.chainId) throw new WalletProblem(t.wallet.wrongChain(config.chainId));
}
