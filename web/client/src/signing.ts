// What wallets sign: a request for an API key (L1), and orders of both structs. And what API keys sign (L2).

import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { type TypedDataDomain, concatHex, domainSeparator, hashStruct, hashTypedData, numberToHex, stringToHex, zeroHash } from "viem";

import type { Answer } from "./api.js";

export type Hex = `0x${string}`;

export interface Typed {
  domain: TypedDataDomain;
  types: Record<string, { name: string; type: string }[]>;
  primaryType: string;
  message: Record<string, unknown>;
}

/** Who signs: an account of viem, or anything else with an address that signs typed data. */
export interface Signer {
  address: Hex;
  signTypedData(typed: Typed): Promise<Hex>;
}

export interface Credentials {
  apiKey: string;
  secret: string;
  passphrase: string;
}

export type Account = Answer<"trading", "get", "/auth/account">;
export type OrderDomain = Account["exchanges"][number]["domains"][number];

const KEY_MESSAGE = "This message attests that I control the given wallet";
const WALLET_DOMAIN = { name: "DepositWallet", version: "1" };
const LENGTH_BYTES = 2;

function fields(text: string): { name: string; type: string }[] {
  return text.split(",").map((each) => {
    const [type, name] = each.split(" ");
    return { name: name ?? "", type: type ?? "" };
  });
}

const ORDER_FIELDS: Record<number, string> = {
  1: "uint256 salt,address maker,address signer,address taker,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint256 expiration,uint256 nonce,uint256 feeRateBps,uint8 side,uint8 signatureType",
  2: "uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder",
};
export const STRUCT_VERSIONS = [1, 2];
const NESTED_FIELDS = "Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt";

/** Return the request of a wallet for the API key of a nonce, in the domain of `GET /auth/account`. */
export function keyRequest(domain: Account["auth"]["domain"], address: Hex, timestamp: string, nonce: number): Typed {
  return {
    domain: domain as TypedDataDomain,
    types: { ClobAuth: fields("address address,string timestamp,uint256 nonce,string message") },
    primaryType: "ClobAuth",
    message: { address, timestamp, nonce, message: KEY_MESSAGE },
  };
}

/** Return an order of a struct version, for a domain of `GET /auth/account`. Numbers are decimal text; `side` is 0 or 1. */
export function orderTyped(domain: OrderDomain, message: Record<string, unknown>): Typed {
  const { name, version, chainId, structVersion } = domain;
  const written = ORDER_FIELDS[structVersion];
  if (written === undefined) throw new Error(`orders of version ${structVersion} are not known here, only of ${STRUCT_VERSIONS.join(", ")}`);
  return {
    domain: { name, version, chainId, verifyingContract: domain.verifyingContract as Hex },
    types: { Order: fields(written) },
    primaryType: "Order",
    message,
  };
}

/** Return the id of an order: the digest that its wallet answers for. */
export function orderId(order: Typed): Hex {
  return hashTypedData(order);
}

/** Return what the owner of a deposit wallet signs for an order of the wallet (ERC-7739). */
function nested(order: Typed, wallet: Hex): Typed {
  return {
    domain: order.domain,
    types: { TypedDataSign: fields(NESTED_FIELDS), ...order.types },
    primaryType: "TypedDataSign",
    message: {
      contents: order.message, ...WALLET_DOMAIN, chainId: order.domain.chainId, verifyingContract: wallet, salt: zeroHash,
    },
  };
}

/** Return the signature of an order by its owner; that of a deposit wallet has the struct around the order, and what rebuilds it. */
export async function signOrder(signer: Signer, order: Typed, depositWallet: Hex | null = null): Promise<Hex> {
  if (depositWallet === null) return signer.signTypedData(order);
  const own = await signer.signTypedData(nested(order, depositWallet));
  const kind = `Order(${order.types["Order"]?.map((each) => `${each.type} ${each.name}`).join(",")})`;
  const contents = hashStruct({ data: order.message, primaryType: "Order", types: order.types });
  const separator = domainSeparator({ domain: order.domain });
  return concatHex([own, separator, contents, stringToHex(kind), numberToHex(kind.length, { size: LENGTH_BYTES })]);
}

function bytesOf(base64: string): Uint8Array {
  const standard = base64.replace(/-/g, "+").replace(/_/g, "/");
  return Uint8Array.from(atob(standard), (character) => character.charCodeAt(0));
}

/** Return the signature of a request by an API key's secret; the path is without its query. */
export function requestSignature(secret: string, timestamp: string, method: string, path: string, body: string): string {
  const message = new TextEncoder().encode(`${timestamp}${method}${path}${body}`);
  const signed = hmac(sha256, bytesOf(secret), message);
  return btoa(String.fromCharCode(...signed)).replace(/\+/g, "-").replace(/\//g, "_");
}
