// A proposer's answers to questions of direct resolution, which are final at once.

import { decodeFunctionResult, encodeFunctionData, parseAbi, stringToHex } from "viem";

import type { Market } from "../api/discovery";
import { type Config, contract } from "../lib/config";
import { t } from "../strings";
import { type Address, type Call, type Hex, type Provider, WalletProblem, readChain } from "./provider";

const ADAPTER = parseAbi([
  "struct Question { uint256 askedAt; uint256 reward; uint256 bond; uint256 liveness; uint256 flaggedAt; bool isResolved; bool isPaused; bool isReset; bool isRefunded; address rewardToken; address creator; bytes text; }",
  "function getQuestion(bytes32 id) view returns (Question)",
]);
const ORACLE = parseAbi([
  "function proposeAndResolve(address adapter, bytes32 questionId, bytes32 identifier, uint256 timestamp, bytes ancillaryData, int256 price) returns (uint256)",
  "function proposeAndResolveNegRisk(address adapter, address operator, bytes32 adapterQuestionId, bytes32 operatorQuestionId, bytes32 identifier, uint256 timestamp, bytes ancillaryData, int256 price) returns (uint256)",
]);
const OPERATOR = parseAbi(["function resolveQuestion(bytes32 questionId)"]);
export const IDENTIFIER = stringToHex("YES_OR_NO_QUERY", { size: 32 });
const ONE = 10n ** 18n;

export type Answer = "first" | "second" | "half";

export const PRICES: Record<Answer, bigint> = { first: ONE, second: 0n, half: ONE / 2n };

/** Return whether a proposer answers the market directly; others have an optimistic oracle. */
export function isAnsweredDirectly(config: Config, market: Market): boolean {
  const adapters = [contract(config, "directResolutionAdapter"), contract(config, "negRiskDirectResolutionAdapter")];
  return adapters.some((adapter) => adapter.toLowerCase() === market.resolvedBy.toLowerCase());
}

/** Return a question as its adapter stores it; all is zero of one that was not asked. */
export async function questionOf(provider: Provider, adapter: Address, asked: Hex) {
  const read = { to: adapter, data: encodeFunctionData({ abi: ADAPTER, functionName: "getQuestion", args: [asked] }) };
  return decodeFunctionResult({ abi: ADAPTER, functionName: "getQuestion", data: await readChain(provider, read) });
}

/** Return the calls that answer a market: a Yes of an exclusive event closes its other markets too. */
export async function answerCalls(config: Config, provider: Provider, market: Market, others: Market[], answer: Answer): Promise<Call[]> {
  const adapter = market.resolvedBy as Address;
  const asked = (market.negRisk ? market.negRiskRequestID : market.questionID) as Hex;
  const question = await questionOf(provider, adapter, asked);
  if (question.askedAt === 0n) throw new WalletProblem(t.resolve.notAsked);
  const oracle = contract(config, "directResolutionOracle");
  const { askedAt, text } = question;
  if (!market.negRisk) {
    const args = [adapter, asked, IDENTIFIER, askedAt, text, PRICES[answer]] as const;
    return [{ to: oracle, data: encodeFunctionData({ abi: ORACLE, functionName: "proposeAndResolve", args }) }];
  }
  const operator = contract(config, "negRiskOperator");
  const args = [adapter, operator, asked, market.questionID as Hex, IDENTIFIER, askedAt, text, PRICES[answer]] as const;
  const proposed = { to: oracle, data: encodeFunctionData({ abi: ORACLE, functionName: "proposeAndResolveNegRisk", args }) };
  if (answer !== "first") return [proposed];
  return [proposed, ...closingCalls(operator, market, others)];
}

/** Return the calls that close the other markets of an exclusive event, once one of them is Yes. */
export function closingCalls(operator: Address, market: Market, others: Market[]): Call[] {
  return others.filter((each) => !each.closed && each.id !== market.id).map((each) => ({
    to: operator, data: encodeFunctionData({ abi: OPERATOR, functionName: "resolveQuestion", args: [each.questionID as Hex] }),
  }));
}
