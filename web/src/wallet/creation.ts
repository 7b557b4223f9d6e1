// Market creation: the signed request, the transactions of its plan, and the end; every step may be repeated.

import { keccak256, stringToHex } from "viem";

import { type Answer, get, post } from "../client/api";
import type { Config } from "../lib/config";
import { Refusal, pause, request } from "../lib/http";
import { readStored, writeStored } from "../lib/stored";
import { t } from "../strings";
import { type Address, type Hex, WalletProblem, ensureChain, hexOf, sendCall, signTyped, waitForReceipt } from "./provider";
import type { Session } from "./session";

const POLL_MS = 1_000;
const DEADLINE_MS = 20 * 60_000;
const STORED = "creation";

export type Verdict = Answer<"createMarket", "post", "/validate">;

export function validatePayload(config: Config, payload: string): Promise<Verdict> {
  return request<Verdict>(`${config.apis.createMarket}/validate`, { method: "POST", body: payload });
}

export type CreationRecord = NonNullable<Answer<"createMarket", "get", "/pending">["request"]>;
type PlanItem = NonNullable<CreationRecord["prepared"]>["txPlan"][number];

/** What is kept in the browser, so that a reload goes on where it was. */
export interface Unfinished {
  requestId: string;
  creator: Address;
  slug: string;
  title: string;
  hashes: Record<string, Hex>;
}

export function readUnfinished(): Unfinished | null {
  const text = readStored("local", STORED);
  return text === null ? null : (JSON.parse(text) as Unfinished);
}

export function writeUnfinished(unfinished: Unfinished | null): void {
  writeStored("local", STORED, unfinished === null ? null : JSON.stringify(unfinished));
}

/** Files by the names of their fields in the request. */
export type Images = Record<string, Blob>;

const AUTH_TYPES = {
  CreateMarketAuth: [
    { name: "requestId", type: "string" }, { name: "creator", type: "address" }, { name: "payloadHash", type: "bytes32" },
    { name: "nonce", type: "bytes32" }, { name: "expiresAt", type: "uint256" }, { name: "chainId", type: "uint256" },
  ],
};

/** Have the creator sign for a payload, and send both with the picture; return what is unfinished. */
export async function beginCreation(config: Config, session: Session, payload: string, images: Images, slug: string, title: string): Promise<Unfinished> {
  await ensureChain(session.provider, config);
  const payloadHash = keccak256(stringToHex(payload));
  const challenge = await post(config, "createMarket", "/prepare-auth", { creator: session.address, chainId: config.chainId, payloadHash });
  const { requestId, nonce, expiresAt, chainId, domain } = challenge;
  const signature = await signTyped(session.provider, session.address, {
    domain: { name: domain.name, version: domain.version, chainId, verifyingContract: hexOf(domain.verifyingContract) },
    types: AUTH_TYPES,
    primaryType: "CreateMarketAuth",
    message: { requestId, creator: session.address, payloadHash, nonce, expiresAt, chainId },
  });
  const form = new FormData();
  form.set("payload", payload);
  form.set("auth", JSON.stringify({ requestId, nonce, expiresAt, payloadHash, signature }));
  for (const [field, file] of Object.entries(images)) form.set(field, file, "picture.png");
  const unfinished = { requestId, creator: session.address, slug, title, hashes: {} };
  writeUnfinished(unfinished); // before it is sent: a reload meanwhile finds what the server may have accepted
  try {
    await request(`${config.apis.createMarket}/prepare`, { method: "POST", body: form });
  } catch (error) {
    if (error instanceof Refusal && error.status === 0) return unfinished; // it may have arrived: its record says so
    writeUnfinished(null);
    throw error;
  }
  return unfinished;
}

export async function fetchCreation(config: Config, requestId: string): Promise<CreationRecord> {
  const { request: record } = await get(config, "createMarket", "/pending", { requestId });
  if (record === null) throw new WalletProblem(t.create.failed(requestId));
  return record;
}

export interface Progress {
  record: CreationRecord;
  sending: string | null;
  sent: number;
  planned: number;
}

interface Finalization {
  status: string;
  metadataUpdateTxPlan?: PlanItem[];
}

async function until<Value>(look: () => Promise<Value | null>): Promise<Value> {
  for (const end = Date.now() + DEADLINE_MS; Date.now() < end; await pause(POLL_MS)) {
    const found = await look();
    if (found !== null) return found;
  }
  throw new WalletProblem(t.create.tooLong);
}

/** Continue an unfinished creation to its end: send what is missing of the plan, and have it checked. */
export async function continueCreation(config: Config, session: Session, unfinished: Unfinished, show: (progress: Progress) => void): Promise<void> {
  const { requestId, creator } = unfinished;
  const post = <Answer>(path: string, txs: { id: string; hash: Hex }[]): Promise<Answer> =>
    request<Answer>(`${config.apis.createMarket}${path}`, { method: "POST", body: JSON.stringify({ requestId, creator, txs }) });
  const sendPlan = async (plan: PlanItem[], record: CreationRecord): Promise<void> => {
    await ensureChain(session.provider, config);
    for (const [index, item] of plan.entries()) {
      show({ record, sending: item.id, sent: index, planned: plan.length });
      let hash = unfinished.hashes[item.id];
      if (hash === undefined) {
        hash = await sendCall(session.provider, session.address, { to: hexOf(item.to), data: hexOf(item.data), value: BigInt(item.value) });
        unfinished.hashes[item.id] = hash;
        writeUnfinished(unfinished);
      }
      await waitForReceipt(session.provider, hash);
      await post("/tx-confirm", [{ id: item.id, hash }]);
    }
    show({ record, sending: null, sent: plan.length, planned: plan.length });
  };
  const prepared = await until(async () => {
    const record = await fetchCreation(config, requestId);
    show({ record, sending: null, sent: 0, planned: record.prepared?.txPlan.length ?? 0 });
    if (record.status === "auth_pending") throw new WalletProblem(t.create.notSent);
    if (record.status === "failed") throw new WalletProblem(t.create.failed(record.errorMessage ?? ""));
    return record.prepared === undefined ? null : record;
  });
  if (prepared.status === "prepared") await sendPlan(prepared.prepared?.txPlan ?? [], prepared);
  for (;;) {
    const result = await until(async () => {
      const answer = await finalize(post, unfinished);
      show({ record: await fetchCreation(config, requestId), sending: null, sent: 0, planned: 0 });
      return answer.status === "finalize_in_progress" ? null : answer;
    });
    if (result.status === "finalized") return;
    if (result.metadataUpdateTxPlan === undefined) throw new WalletProblem(t.create.failed(result.status));
    await sendPlan(result.metadataUpdateTxPlan, await fetchCreation(config, requestId));
  }
}

type Post = <Answer>(path: string, txs: { id: string; hash: Hex }[]) => Promise<Answer>;

/** Ask for the end; a transaction that is in no block yet is waited for. */
async function finalize(post: Post, unfinished: Unfinished): Promise<Finalization> {
  const txs = Object.entries(unfinished.hashes).map(([id, hash]) => ({ id, hash }));
  try {
    return await post<Finalization>("/finalize", txs);
  } catch (error) {
    if (error instanceof Refusal && error.code === "tx_pending") return { status: "finalize_in_progress" };
    throw error;
  }
}
