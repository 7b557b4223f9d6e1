// Questions of the optimistic oracle: where each stands, and the calls that propose, dispute, report and withdraw.

import { decodeFunctionResult, encodeFunctionData, parseAbi } from "viem";

import type { Market } from "../api/discovery";
import { type Config, contract } from "../lib/config";
import { t } from "../strings";
import { type Answer, IDENTIFIER, PRICES, closingCalls, questionOf } from "./answers";
import { allow } from "./calls";
import { type Address, type Call, type Hex, type Provider, WalletProblem, readChain } from "./provider";

const ORACLE = parseAbi([
  "struct Request { address proposer; address disputer; address creator; uint256 reward; uint256 bond; uint256 liveness; int256 proposedPrice; int256 price; uint256 requestedAt; uint256 expiresAt; uint256 disputedAt; uint256 availableAt; bool allowsUnknown; bytes32 successor; bool isFallback; }",
  "function getRequest(address requester, bytes32 identifier, uint256 timestamp, bytes ancillaryData) view returns (Request)",
  "function getState(address requester, bytes32 identifier, uint256 timestamp, bytes ancillaryData) view returns (uint256)",
  "function proposePrice(address requester, bytes32 identifier, uint256 timestamp, bytes ancillaryData, int256 price) returns (uint256)",
  "function disputePrice(address requester, bytes32 identifier, uint256 timestamp, bytes ancillaryData) returns (uint256)",
  "function owed(address account) view returns (uint256)",
  "function withdraw() returns (uint256)",
]);
const ADAPTER = parseAbi(["function resolve(bytes32 questionId)"]);
const OPERATOR = parseAbi(["function resolveQuestion(bytes32 questionId)"]);
const STATES = ["unasked", "requested", "proposed", "expired", "disputed", "unasked", "settled"] as const;

export interface OptimisticState {
  /** Where the newest request stands; a first dispute asks again, so that it is `requested` another time. */
  state: (typeof STATES)[number];
  isResolved: boolean;
  isAskedAgain: boolean;
  askedAt: bigint;
  text: Hex;
  bond: bigint;
  proposed: Answer | null;
  expiresAtS: number;
}

function askedId(market: Market): Hex {
  return (market.negRisk ? market.negRiskRequestID : market.questionID) as Hex;
}

function answerOf(price: bigint): Answer | null {
  const found = Object.entries(PRICES).find(([, each]) => each === price);
  return found === undefined ? null : (found[0] as Answer);
}

/** Return where a market's question stands at the oracle, as the chain has it. */
export async function readOptimistic(config: Config, provider: Provider, market: Market): Promise<OptimisticState> {
  const adapter = market.resolvedBy as Address;
  const question = await questionOf(provider, adapter, askedId(market));
  if (question.askedAt === 0n) throw new WalletProblem(t.resolve.notAsked);
  const args = [adapter, IDENTIFIER, question.askedAt, question.text] as const;
  const to = contract(config, "optimisticOracle");
  const read = (functionName: "getRequest" | "getState") => readChain(provider, { to, data: encodeFunctionData({ abi: ORACLE, functionName, args }) });
  const found = decodeFunctionResult({ abi: ORACLE, functionName: "getRequest", data: await read("getRequest") });
  const number = decodeFunctionResult({ abi: ORACLE, functionName: "getState", data: await read("getState") });
  const state = STATES[Number(number)] ?? "unasked";
  return {
    state, isResolved: question.isResolved, isAskedAgain: question.isReset, askedAt: question.askedAt, text: question.text, bond: found.bond,
    proposed: state === "requested" || state === "unasked" ? null : answerOf(found.proposedPrice), expiresAtS: Number(found.expiresAt),
  };
}

/** Return the calls that propose an answer: its bond is approved first. */
export function proposeCalls(config: Config, market: Market, now: OptimisticState, answer: Answer): Call[] {
  const oracle = contract(config, "optimisticOracle");
  const args = [market.resolvedBy as Address, IDENTIFIER, now.askedAt, now.text, PRICES[answer]] as const;
  return [allow(config, oracle, now.bond), { to: oracle, data: encodeFunctionData({ abi: ORACLE, functionName: "proposePrice", args }) }];
}

/** Return the calls that dispute the proposed answer, against a bond of the same size. */
export function disputeCalls(config: Config, market: Market, now: OptimisticState): Call[] {
  const oracle = contract(config, "optimisticOracle");
  const args = [market.resolvedBy as Address, IDENTIFIER, now.askedAt, now.text] as const;
  return [allow(config, oracle, now.bond), { to: oracle, data: encodeFunctionData({ abi: ORACLE, functionName: "disputePrice", args }) }];
}

/** Return the calls that report an answer that stands; a Yes of an exclusive event closes its other markets too. */
export function reportCalls(config: Config, market: Market, others: Market[], now: OptimisticState): Call[] {
  const resolve = { to: market.resolvedBy as Address, data: encodeFunctionData({ abi: ADAPTER, functionName: "resolve", args: [askedId(market)] }) };
  const made = now.isResolved ? [] : [resolve];
  if (!market.negRisk) return made;
  const operator = contract(config, "negRiskOptimisticOperator");
  const report = { to: operator, data: encodeFunctionData({ abi: OPERATOR, functionName: "resolveQuestion", args: [market.questionID as Hex] }) };
  return [...made, report, ...(now.proposed === "first" ? closingCalls(operator, market, others) : [])];
}

/** Return what the oracle owes an account: bonds that came back, and rewards. */
export async function readOwed(config: Config, provider: Provider, account: Address): Promise<bigint> {
  const data = encodeFunctionData({ abi: ORACLE, functionName: "owed", args: [account] });
  return BigInt(await readChain(provider, { to: contract(config, "optimisticOracle"), data }));
}

export function withdrawCall(config: Config): Call {
  return { to: contract(config, "optimisticOracle"), data: encodeFunctionData({ abi: ORACLE, functionName: "withdraw", args: [] }) };
}
