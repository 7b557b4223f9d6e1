// The sandbox's wallets. They sign on the server: the page has a token, which is no key, and only while its
// tab is open.

import { hashMessage, hashTypedData } from "viem";

import { request } from "../lib/http";
import type { OwnAnswer } from "../lib/own_routes";
import { readStored, writeStored } from "../lib/stored";
import type { Address, Hex, Provider, Typed } from "./provider";

type Role = "trader" | "creator" | "proposer";
type Listed = OwnAnswer<"get", "/sandbox/accounts">[number];

export interface SandboxAccount extends Listed {
  address: Address;
  role: Role;
}

const TOKEN = "sandbox-token";

/** Take the token out of the address bar, where `foretell up` put it, and keep it for this tab. */
export function takeToken(): void {
  const match = /^#sandbox=([0-9a-f]{64})$/.exec(window.location.hash);
  if (match === null) return;
  writeStored("session", TOKEN, match[1] ?? null);
  history.replaceState(null, "", window.location.pathname + window.location.search);
}

export function sandboxToken(): string | null {
  return readStored("session", TOKEN);
}

export function hasToken(): boolean {
  return sandboxToken() !== null;
}

function call<Answer>(path: string, body?: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${sandboxToken() ?? ""}` };
  if (body === undefined) return request<Answer>(`/sandbox${path}`, { headers });
  return request<Answer>(`/sandbox${path}`, { method: "POST", body: JSON.stringify(body), headers });
}

export function fetchSandboxAccounts(): Promise<SandboxAccount[]> {
  return call("/accounts");
}

export function sandboxProvider(address: Address): Provider {
  const sign = async (digest: Hex): Promise<string> => (await call<OwnAnswer<"post", "/sandbox/sign">>("/sign", { address, digest })).signature;
  const signTyped = (text: string): Promise<string> => {
    const typed = JSON.parse(text) as Typed;
    return sign(hashTypedData(typed as Parameters<typeof hashTypedData>[0]));
  };
  const send = async (sent: { to: string; data: string; value: string }): Promise<string> => {
    const body = { address, to: sent.to, data: sent.data, value: BigInt(sent.value).toString() };
    return (await call<OwnAnswer<"post", "/sandbox/send">>("/send", body)).hash;
  };
  return {
    request: async ({ method, params = [] }) => {
      if (method === "eth_accounts" || method === "eth_requestAccounts") return [address];
      if (method === "eth_signTypedData_v4") return signTyped(params[1] as string);
      if (method === "personal_sign") return sign(hashMessage({ raw: params[0] as Hex }));
      if (method === "eth_sendTransaction") return send(params[0] as { to: string; data: string; value: string });
      return (await call<OwnAnswer<"post", "/sandbox/chain">>("/chain", { method, params })).result;
    },
  };
}
