// API keys of wallets (L1), and the requests that they sign (L2).

import { type Account, keyRequest, requestSignature } from "foretell-client";

import { type Answer, type PathOf, get } from "../client/api";
import type { Config } from "../lib/config";
import { Refusal, request } from "../lib/http";
import { readStored, writeStored } from "../lib/stored";
import { type Credentials, type KeyFile, cipherKey, unwrapSecret, wrapKey } from "./key_file";
import { type Address, type Provider, type Typed, ensureChain, signTyped } from "./provider";

const NONCE = 0;
const KEY_PROBLEMS = new Set(["unknown_key", "revoked_key", "wrong_passphrase"]);

export interface Signer {
  address: Address;
  provider: Provider;
  /** The domain of its signature for a key, of `GET /auth/account`; it is asked for where it is not known. */
  keyDomain?: Typed["domain"];
}

interface OpenKey {
  file: KeyFile;
  cipherKey: Uint8Array;
  passphrase: string;
}

const openKeys = new Map<string, Promise<OpenKey>>();
let clockOffsetS = 0;

function nowS(): number {
  return Math.floor(Date.now() / 1000) + clockOffsetS;
}

function nameOf(config: Config, address: string): string {
  return `key.${config.chainId}.${address.toLowerCase()}`;
}

/** Learn the server's time from a refusal of ours; return whether that helps. */
function learnClock(error: unknown): boolean {
  if (!(error instanceof Refusal) || error.code !== "clock_skew") return false;
  const serverS = (error.details as { server_time_s?: number } | null)?.server_time_s;
  if (serverS === undefined) return false;
  clockOffsetS = serverS - Math.floor(Date.now() / 1000);
  return true;
}

/** Have the wallet sign for its API key: the same wallet always gets the same key. */
async function createKey(config: Config, signer: Signer): Promise<Credentials> {
  await ensureChain(signer.provider, config);
  const domain = signer.keyDomain ?? (await get(config, "trading", "/auth/account", { address: signer.address })).auth.domain;
  const timestamp = String(nowS());
  const wanted = keyRequest(domain as Account["auth"]["domain"], signer.address, timestamp, NONCE);
  const signature = await signTyped(signer.provider, signer.address, wanted);
  const headers = {
    SERVICE_ADDRESS: signer.address, SERVICE_SIGNATURE: signature, SERVICE_TIMESTAMP: timestamp, SERVICE_NONCE: String(NONCE),
  };
  return request<Credentials>(`${config.apis.trading}/auth/api-key`, { method: "POST", headers });
}

async function open(config: Config, signer: Signer): Promise<OpenKey> {
  const name = nameOf(config, signer.address);
  const [stored, passphrase] = [readStored("local", name), readStored("session", name)];
  if (stored !== null && passphrase !== null) {
    const file = JSON.parse(stored) as KeyFile;
    return { file, cipherKey: await cipherKey(file, passphrase), passphrase };
  }
  let credentials: Credentials;
  try {
    credentials = await createKey(config, signer);
  } catch (error) {
    if (!learnClock(error)) throw error;
    credentials = await createKey(config, signer);
  }
  const file = await wrapKey(signer.address, credentials);
  writeStored("local", name, JSON.stringify(file));
  writeStored("session", name, credentials.passphrase);
  return { file, cipherKey: await cipherKey(file, credentials.passphrase), passphrase: credentials.passphrase };
}

function openKey(config: Config, signer: Signer): Promise<OpenKey> {
  const name = nameOf(config, signer.address);
  let opening = openKeys.get(name);
  if (opening === undefined) {
    opening = open(config, signer);
    openKeys.set(name, opening);
    opening.catch(() => openKeys.delete(name));
  }
  return opening;
}

/** Return whether signing needs no new signature of the wallet. */
export function hasKey(config: Config, address: Address): boolean {
  const name = nameOf(config, address);
  return readStored("local", name) !== null && readStored("session", name) !== null;
}

export function forgetKey(config: Config, address: Address): void {
  const name = nameOf(config, address);
  openKeys.delete(name);
  writeStored("local", name, null);
  writeStored("session", name, null);
}

/** Return the whole credential set, which the private stream wants as its first message. */
export async function credentialsOf(config: Config, signer: Signer): Promise<Credentials> {
  const key = await openKey(config, signer);
  return { apiKey: key.file.apiKey, secret: unwrapSecret(key.file, key.cipherKey), passphrase: key.passphrase };
}

type SignedApi = "trading" | "relayer";
type Method = "GET" | "POST" | "DELETE";

interface SignedRequest<Api extends SignedApi, Verb extends Method, Path> {
  api: Api;
  method: Verb;
  path: Path;
  query?: string;
  body?: unknown;
}

async function sendOnce<Value>(config: Config, signer: Signer, sent: SignedRequest<SignedApi, Method, string>): Promise<Value> {
  const key = await openKey(config, signer);
  const body = sent.body === undefined ? "" : JSON.stringify(sent.body);
  const timestamp = String(nowS());
  const secret = unwrapSecret(key.file, key.cipherKey);
  const headers = {
    SERVICE_ADDRESS: signer.address,
    SERVICE_API_KEY: key.file.apiKey,
    SERVICE_PASSPHRASE: key.passphrase,
    SERVICE_TIMESTAMP: timestamp,
    SERVICE_SIGNATURE: requestSignature(secret, timestamp, sent.method, sent.path, body),
  };
  const options = body === "" ? { method: sent.method, headers } : { method: sent.method, headers, body };
  return request<Value>(`${config.apis[sent.api]}${sent.path}${sent.query ?? ""}`, options);
}

/** Send a request that the wallet's API key signs; a key that was revoked is made again once. */
export async function signed<Api extends SignedApi, Verb extends Method, Path extends PathOf<Api, Lowercase<Verb>>>(
  config: Config, signer: Signer, sent: SignedRequest<Api, Verb, Path>,
): Promise<Answer<Api, Lowercase<Verb>, Path>> {
  try {
    return await sendOnce(config, signer, sent);
  } catch (error) {
    if (error instanceof Refusal && KEY_PROBLEMS.has(error.code)) forgetKey(config, signer.address);
    else if (!learnClock(error)) throw error;
    return sendOnce(config, signer, sent);
  }
}

/** Return the id of the wallet's API key, which an order names as its owner. */
export async function keyId(config: Config, signer: Signer): Promise<string> {
  return (await openKey(config, signer)).file.apiKey;
}
