// A signer that trades: for its own address, its Safe or its deposit wallet, on any installation.

import { type Answer, type Installation, type PathOf, fetchInstallation, get } from "./api.js";
import { Refusal, patiently, pause, query, request } from "./http.js";
import { type OrderAmounts, type Side, budgetAmounts, limitAmounts } from "./order_amounts.js";
import { type Account, type Credentials, type Hex, STRUCT_VERSIONS, type Signer, keyRequest, orderId, orderTyped, requestSignature, signOrder } from "./signing.js";

export type OrderType = "GTC" | "GTD" | "FOK" | "FAK";
type Exchange = Account["exchanges"][number];
export type WalletKind = Account["wallets"][number]["kind"];
export type Placement = Answer<"trading", "post", "/order">;
export type OpenOrder = Answer<"trading", "get", "/data/orders">["data"][number];
export type OwnTrade = Answer<"trading", "get", "/data/trades">["data"][number];
export type Cancellations = Answer<"trading", "delete", "/orders">;

/** An order before it is signed. A BUY that takes (FOK, FAK) names a budget in place of a size. */
export interface OrderDraft {
  tokenId: string;
  side: Side;
  price: string;
  size?: string;
  budget?: string;
  type?: OrderType;
  /** Seconds since 1970; for GTD alone. */
  expirationS?: number;
  postOnly?: boolean;
  /** 32 bytes. An order with one or with metadata is signed by version 2 of the struct, or refused. */
  builder?: Hex;
  metadata?: Hex;
}

export interface SignedOrder {
  /** The order's id: its identity, so that an order that is sent twice exists once. */
  id: Hex;
  body: { order: Record<string, unknown>; owner: string; orderType: OrderType; postOnly: boolean };
}

export interface TraderOptions {
  wallet?: WalletKind;
  /** The version of the order struct; by default the first that the exchange and the wallet accept. */
  structVersion?: number;
  /** The nonce of the API key; each has a key of its own. */
  keyNonce?: number;
}

const CONTRACT_SIGNATURE = 3; // a deposit wallet, whose orders its owner signs nested (ERC-7739)
const CONTRACT_STRUCT = 2;
const BUILDER_STRUCT = 2;
const NO_BYTES: Hex = `0x${"00".repeat(32)}`;
const ATTEMPTS_MAX = 6;
const FIRST_PAUSE_MS = 250;
const AHEAD_S_MAX = 20;
const MS_PER_S = 1000;
const LAST_PAGE = "LTE=";

type Method = "GET" | "POST" | "DELETE";
type TradingPath<Verb extends Method> = PathOf<"trading", Lowercase<Verb>>;

/** Send again what has an identity, when no answer came or it was refused for now. */
async function repeatedly<Value>(call: () => Promise<Value>): Promise<Value> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await patiently(call, () => undefined);
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 0 || attempt >= ATTEMPTS_MAX) throw error;
      await pause(FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}

/** A builder or metadata that no accepted version of the order struct can sign. */
export class BuilderNotSigned extends Error {
  override readonly name = "BuilderNotSigned";

  constructor(reason: string) {
    super(`a builder and metadata are signed by version ${BUILDER_STRUCT} of the order struct alone: ${reason}`);
  }
}

export class Trader {
  private readonly seconds = new Map<string, number>();
  private readonly termsByToken = new Map<string, Promise<{ negRisk: boolean; feeRateBps: number }>>();

  private constructor(
    readonly installation: Installation,
    readonly signer: Signer,
    readonly account: Account,
    readonly wallet: Account["wallets"][number],
    /** In memory alone: the secret signs requests, and the private stream wants all three. */
    readonly credentials: Credentials,
    private readonly structVersion: number | undefined,
    private readonly clockOffsetS: number,
  ) {}

  /** Return the trader of a signer, with a new or its earlier API key, at the address of an installation. */
  static async connect(url: string, signer: Signer, options: TraderOptions = {}): Promise<Trader> {
    const installation = await fetchInstallation(url);
    const account = await get(installation, "trading", "/auth/account", { address: signer.address });
    const kind = options.wallet ?? "eoa";
    const wallet = account.wallets.find((each) => each.kind === kind);
    if (wallet === undefined) throw new Error(`${signer.address} has no wallet ${kind}, only ${account.wallets.map((each) => each.kind).join(", ")}`);
    const serverS = Number(await get(installation, "trading", "/time"));
    const clockOffsetS = serverS - Math.floor(Date.now() / MS_PER_S);
    const credentials = await requestKey(installation, signer, account, serverS, options.keyNonce ?? 0);
    return new Trader(installation, signer, account, wallet, credentials, options.structVersion, clockOffsetS);
  }

  /** Return the signed body of an order, with a new salt: place it as often as needed. */
  async sign(draft: OrderDraft): Promise<SignedOrder> {
    const { negRisk, feeRateBps } = await this.terms(draft.tokenId);
    const exchange = this.account.exchanges.find((each) => each.negRisk === negRisk);
    if (exchange === undefined) throw new Error("the installation has no exchange for this market");
    const isContract = this.wallet.signatureType === CONTRACT_SIGNATURE;
    const domain = this.domainOf(exchange, draft);
    const version = domain.structVersion;
    const { makerAmount, takerAmount } = amountsOf(draft);
    const expiration = String(draft.expirationS ?? 0);
    const common = {
      salt: newSalt(),
      maker: this.wallet.address,
      signer: isContract ? this.wallet.address : this.account.address,
      tokenId: draft.tokenId,
      makerAmount: makerAmount.toString(),
      takerAmount: takerAmount.toString(),
      side: draft.side === "BUY" ? 0 : 1,
      signatureType: this.wallet.signatureType,
    };
    const message = version === 1
      ? { ...common, taker: `0x${"00".repeat(20)}`, expiration, nonce: exchange.nonces[this.wallet.address] ?? "0", feeRateBps: String(feeRateBps) }
      : { ...common, timestamp: String(this.nowS() * MS_PER_S), metadata: draft.metadata ?? NO_BYTES, builder: draft.builder ?? NO_BYTES };
    const typed = orderTyped(domain, message);
    const signature = await signOrder(this.signer, typed, isContract ? (this.wallet.address as Hex) : null);
    const order = { ...message, side: draft.side, expiration, signature };
    const body = { order, owner: this.credentials.apiKey, orderType: draft.type ?? "GTC", postOnly: draft.postOnly ?? false };
    return { id: orderId(typed), body };
  }

  /** Return the domain to sign an order in: that of the version that was asked for, or of the first that both sides know. */
  private domainOf(exchange: Exchange, draft: OrderDraft): Exchange["domains"][number] {
    const usual = this.wallet.signatureType === CONTRACT_SIGNATURE ? [CONTRACT_STRUCT] : STRUCT_VERSIONS;
    const accepted = usual.filter((version) => exchange.domains.some((each) => each.structVersion === version));
    const needsBuilder = [draft.builder, draft.metadata].some((each) => (each ?? NO_BYTES) !== NO_BYTES);
    if (needsBuilder && (this.structVersion ?? BUILDER_STRUCT) !== BUILDER_STRUCT) throw new BuilderNotSigned(`structVersion is ${this.structVersion}`);
    if (needsBuilder && !accepted.includes(BUILDER_STRUCT)) throw new BuilderNotSigned("it is not accepted here");
    const version = needsBuilder ? BUILDER_STRUCT : this.structVersion ?? accepted[0];
    const domain = exchange.domains.find((each) => each.structVersion === version);
    if (version === undefined || domain === undefined || !accepted.includes(version)) {
      throw new Error(`orders of version ${version} are not accepted here, only of ${accepted.join(", ")}`);
    }
    return domain;
  }

  async place(draft: OrderDraft): Promise<Placement> {
    return this.placeSigned(await this.sign(draft));
  }

  /** Place a signed order. If no answer comes, the same one is sent again: it exists once. */
  placeSigned(signed: SignedOrder): Promise<Placement> {
    return this.send("POST", "/order", signed.body);
  }

  cancel(...orderIds: string[]): Promise<Cancellations> {
    return this.send("DELETE", "/orders", orderIds);
  }

  cancelAll(): Promise<Answer<"trading", "delete", "/cancel-all">> {
    return this.send("DELETE", "/cancel-all");
  }

  /** Return the orders that are in books; filters are `market`, `asset_id` and `id`. */
  openOrders(filters: Record<string, string> = {}): Promise<OpenOrder[]> {
    return this.rows<OpenOrder>("/data/orders", filters);
  }

  /** Return the trades of one's own, newest first. */
  trades(filters: Record<string, string> = {}): Promise<OwnTrade[]> {
    return this.rows<OwnTrade>("/data/trades", filters);
  }

  /** Return what the wallet may trade with: the collateral, or a token, in base units. */
  funds(tokenId?: string): Promise<Answer<"trading", "get", "/balance-allowance">> {
    const kind = tokenId === undefined ? "COLLATERAL" : "CONDITIONAL";
    return this.send("GET", "/balance-allowance", undefined, { asset_type: kind, token_id: tokenId, signature_type: this.wallet.signatureType });
  }

  /** Send a request that the API key signs. */
  async send<Verb extends Method, Path extends TradingPath<Verb>>(
    method: Verb, path: Path, body?: unknown, parameters: Parameters<typeof query>[0] = {},
  ): Promise<Answer<"trading", Lowercase<Verb>, Path>> {
    const text = body === undefined ? "" : JSON.stringify(body);
    const timestamp = String(method === "DELETE" ? await this.newSecond(`${path}${text}`) : this.nowS());
    const headers = {
      SERVICE_ADDRESS: this.account.address,
      SERVICE_API_KEY: this.credentials.apiKey,
      SERVICE_PASSPHRASE: this.credentials.passphrase,
      SERVICE_TIMESTAMP: timestamp,
      SERVICE_SIGNATURE: requestSignature(this.credentials.secret, timestamp, method, path, text),
    };
    const url = `${this.installation.apis.trading}${path}${query(parameters)}`;
    return repeatedly(() => request(url, text === "" ? { method, headers } : { method, headers, body: text }));
  }

  private nowS(): number {
    return Math.floor(Date.now() / MS_PER_S) + this.clockOffsetS;
  }

  /** Return a second in which these words were not signed yet: signed twice in one second, they are one request. */
  private async newSecond(words: string): Promise<number> {
    const nowS = this.nowS();
    for (const [key, atS] of this.seconds) if (atS < nowS) this.seconds.delete(key);
    const atS = Math.max(nowS, (this.seconds.get(words) ?? 0) + 1);
    this.seconds.set(words, atS);
    if (atS > nowS + AHEAD_S_MAX) await pause((atS - nowS - AHEAD_S_MAX) * MS_PER_S);
    return atS;
  }

  /** Return the rules for orders of a token; they never change. */
  private terms(tokenId: string): Promise<{ negRisk: boolean; feeRateBps: number }> {
    let found = this.termsByToken.get(tokenId);
    if (found === undefined) {
      found = fetchTerms(this.installation, tokenId);
      this.termsByToken.set(tokenId, found);
      found.catch(() => this.termsByToken.delete(tokenId));
    }
    return found;
  }

  private async rows<Row>(path: "/data/orders" | "/data/trades", filters: Record<string, string>): Promise<Row[]> {
    const rows: Row[] = [];
    for (let cursor = ""; cursor !== LAST_PAGE; ) {
      const page = await this.send("GET", path, undefined, { ...filters, next_cursor: cursor });
      rows.push(...(page.data as Row[]));
      cursor = page.next_cursor;
    }
    return rows;
  }
}

/** Return a random number of 48 bits, which every JSON reader keeps whole. */
function newSalt(): number {
  const [low = 0, high = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high % 2 ** 16) * 2 ** 32 + low;
}

async function fetchTerms(installation: Installation, tokenId: string): Promise<{ negRisk: boolean; feeRateBps: number }> {
  const book = await get(installation, "trading", "/book", { token_id: tokenId });
  const fee = await get(installation, "trading", "/fee-rate", { token_id: tokenId });
  return { negRisk: book.neg_risk, feeRateBps: fee.base_fee };
}

function amountsOf(draft: OrderDraft): OrderAmounts {
  if (draft.budget !== undefined) return budgetAmounts(draft.price, draft.budget);
  return limitAmounts(draft.side, draft.price, draft.size ?? "");
}

async function requestKey(installation: Installation, signer: Signer, account: Account, nowS: number, nonce: number): Promise<Credentials> {
  const timestamp = String(nowS);
  const headers = {
    SERVICE_ADDRESS: signer.address,
    SERVICE_SIGNATURE: await signer.signTypedData(keyRequest(account.auth.domain, signer.address, timestamp, nonce)),
    SERVICE_TIMESTAMP: timestamp,
    SERVICE_NONCE: String(nonce),
  };
  return repeatedly(() => request<Credentials>(`${installation.apis.trading}/auth/api-key`, { method: "POST", headers }));
}
