// An API key as it is kept in the browser: its secret is encrypted under the passphrase, as in the SDK's key
// files. The passphrase is kept apart, for as long as the tab is open.

import { gcm } from "@noble/ciphers/aes.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { scryptAsync } from "@noble/hashes/scrypt.js";
import { bytesToHex } from "@noble/hashes/utils.js";

export interface Credentials {
  apiKey: string;
  secret: string;
  passphrase: string;
}

export interface KeyFile {
  version: 1;
  address: string;
  apiKey: string;
  derivation: { name: "scrypt"; n: number; r: number; p: 1; salt: string };
  cipher: "aes-256-gcm";
  nonce: string;
  wrappedSecret: string;
  digest: string;
}

const COST = 2 ** 15;
const BLOCK_SIZE = 8;
const encoder = new TextEncoder();

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

function fromBase64(text: string): Uint8Array {
  const standard = text.replace(/-/g, "+").replace(/_/g, "/");
  return Uint8Array.from(atob(standard), (character) => character.charCodeAt(0));
}

/** Return JSON with sorted names and without blanks, of all fields but those left out. */
function canonical(file: KeyFile, ...leftOut: (keyof KeyFile)[]): Uint8Array {
  const sorted = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => [k, sorted(v)]));
  };
  const kept = Object.fromEntries(Object.entries(file).filter(([name]) => !leftOut.includes(name as keyof KeyFile)));
  return encoder.encode(JSON.stringify(sorted(kept)));
}

/** Return the cipher's key; it takes some tenths of a second, so it is derived once a page. */
export function cipherKey(file: KeyFile, passphrase: string): Promise<Uint8Array> {
  const { n, r, p, salt } = file.derivation;
  return scryptAsync(encoder.encode(passphrase), fromBase64(salt), { N: n, r, p, dkLen: 32 });
}

export async function wrapKey(address: string, credentials: Credentials): Promise<KeyFile> {
  const random = (count: number): string => base64(crypto.getRandomValues(new Uint8Array(count)));
  const draft: KeyFile = {
    version: 1,
    address: address.toLowerCase(),
    apiKey: credentials.apiKey,
    derivation: { name: "scrypt", n: COST, r: BLOCK_SIZE, p: 1, salt: random(16) },
    cipher: "aes-256-gcm",
    nonce: random(12),
    wrappedSecret: "",
    digest: "",
  };
  const key = await cipherKey(draft, credentials.passphrase);
  const cipher = gcm(key, fromBase64(draft.nonce), canonical(draft, "wrappedSecret", "digest"));
  const wrapped = { ...draft, wrappedSecret: base64(cipher.encrypt(encoder.encode(credentials.secret))) };
  return { ...wrapped, digest: bytesToHex(sha256(canonical(wrapped, "digest"))) };
}

/** Return the secret; raise if the key is not that of the passphrase, or the file was changed. */
export function unwrapSecret(file: KeyFile, key: Uint8Array): string {
  const cipher = gcm(key, fromBase64(file.nonce), canonical(file, "wrappedSecret", "digest"));
  return new TextDecoder().decode(cipher.decrypt(fromBase64(file.wrappedSecret)));
}
