// Orders: amounts from what the user wants, the typed data, and the requests.

import { orderTyped } from "foretell-client";
import { zeroAddress } from "viem";

import type { Answer } from "../client/api";
import type { Market } from "../api/discovery";
import { UNIT, ceilDivide } from "../lib/amounts";
import type { Config } from "../lib/config";
import { query } from "../lib/http";
import { t } from "../strings";
import { keyId, signed } from "./credentials";
import { WalletProblem, ensureChain, hexOf, signTyped } from "./provider";
import { type Session, fetchAccount } from "./session";

export type Side = "BUY" | "SELL";
export type OrderType = "GTC" | "GTD" | "FOK" | "FAK";

export interface Wanted {
  side: Side;
  type: OrderType;
  token: string;
  /** Millionths of a collateral: the limit, or the worst price of a market order. */
  price: bigint;
  /** Tokens; for a market order that buys, the collateral to spend. */
  amount: bigint;
  expirationS: number;
  postOnly: boolean;
}

export interface SignedOrder {
  order: Record<string, unknown>;
  owner: string;
  orderType: OrderType;
  postOnly: boolean;
}

/** Return what the maker gives and wants, in units; nothing that it gives is rounded up. */
export function amountsOf(wanted: Wanted): { makerAmount: bigint; takerAmount: bigint } {
  const isMarket = wanted.type === "FOK" || wanted.type === "FAK";
  if (wanted.side === "SELL") return { makerAmount: wanted.amount, takerAmount: (wanted.amount * wanted.price) / UNIT };
  if (isMarket) return { makerAmount: wanted.amount, takerAmount: (wanted.amount * UNIT) / wanted.price };
  return { makerAmount: ceilDivide(wanted.amount * wanted.price, UNIT), takerAmount: wanted.amount };
}

const STRUCT_VERSION = 1;

/** Have the wallet sign an order; nothing is sent yet. */
export async function signOrder(config: Config, session: Session, market: Market, wanted: Wanted, feeRateBps: number): Promise<SignedOrder> {
  await ensureChain(session.provider, config);
  const account = await fetchAccount(config, session.address);
  const exchange = account.exchanges.find((each) => each.negRisk === market.negRisk);
  const domain = exchange?.domains.find((each) => each.structVersion === STRUCT_VERSION);
  if (exchange === undefined || domain === undefined) throw new WalletProblem(t.ticket.noExchange);
  const { makerAmount, takerAmount } = amountsOf(wanted);
  const message = {
    salt: crypto.getRandomValues(new Uint32Array(1))[0] ?? 0,
    maker: session.maker,
    signer: session.address,
    taker: zeroAddress,
    tokenId: wanted.token,
    makerAmount: makerAmount.toString(),
    takerAmount: takerAmount.toString(),
    expiration: wanted.expirationS.toString(),
    nonce: exchange.nonces[session.maker] ?? "0",
    feeRateBps: feeRateBps.toString(),
    side: wanted.side === "BUY" ? 0 : 1,
    signatureType: session.signatureType,
  };
  hexOf(domain.verifyingContract); // what a server sends is signed as an address alone
  const signature = await signTyped(session.provider, session.address, orderTyped(domain, message));
  const order = { ...message, side: wanted.side, signature };
  return { order, owner: await keyId(config, session), orderType: wanted.type, postOnly: wanted.postOnly };
}

export type Placement = Answer<"trading", "post", "/order">;
export type Verdict = Answer<"trading", "post", "/order/validate">;

/** Place a signed order; the same one may be sent again, and is placed once. */
export function placeOrder(config: Config, session: Session, body: SignedOrder): Promise<Placement> {
  return signed(config, session, { api: "trading", method: "POST", path: "/order", body });
}

/** Have the server check an order as it would when it is placed, with what to do about a failure. */
export function validateOrder(config: Config, session: Session, body: SignedOrder): Promise<Verdict> {
  return signed(config, session, { api: "trading", method: "POST", path: "/order/validate", body });
}

export type OpenOrder = Answer<"trading", "get", "/data/orders">["data"][number];
export type OwnTrade = Answer<"trading", "get", "/data/trades">["data"][number];
export type Canceled = Answer<"trading", "delete", "/order">;

export async function fetchOpenOrders(config: Config, session: Session, market?: string): Promise<OpenOrder[]> {
  const page = await signed(config, session, { api: "trading", method: "GET", path: "/data/orders", query: query({ market }) });
  return page.data;
}

export async function fetchOwnTrades(config: Config, session: Session, market?: string): Promise<OwnTrade[]> {
  const page = await signed(config, session, { api: "trading", method: "GET", path: "/data/trades", query: query({ market }) });
  return page.data;
}

export function cancelOrder(config: Config, session: Session, orderID: string): Promise<Canceled> {
  return signed(config, session, { api: "trading", method: "DELETE", path: "/order", body: { orderID } });
}

export function cancelMarketOrders(config: Config, session: Session, market: string): Promise<Canceled> {
  return signed(config, session, { api: "trading", method: "DELETE", path: "/cancel-market-orders", body: { market } });
}

export interface Funds {
  balance: bigint;
  reserved: bigint;
  allowance: bigint;
}

/** Return what the wallet can trade: of the collateral, or of a token. */
export async function fetchFunds(config: Config, session: Session, token?: string): Promise<Funds> {
  const parameters = query({
    asset_type: token === undefined ? "COLLATERAL" : "CONDITIONAL", token_id: token, signature_type: session.signatureType,
  });
  const found = await signed(
    config, session, { api: "trading", method: "GET", path: "/balance-allowance", query: parameters },
  );
  return { balance: BigInt(found.balance), reserved: BigInt(found.reserved), allowance: smallest(config, found.allowances) };
}

/** Return the smaller allowance of the two exchanges: approving covers both. */
function smallest(config: Config, allowances: Record<string, string>): bigint {
  const ours = ["exchange", "negRiskExchange"].map((name) => config.contracts[name]?.toLowerCase());
  const amounts = Object.entries(allowances).filter(([spender]) => ours.includes(spender.toLowerCase())).map(([, units]) => BigInt(units));
  return amounts.reduce((least, units) => (units < least ? units : least), amounts[0] ?? 0n);
}
