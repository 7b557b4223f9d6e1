// The calls of the contracts that a wallet makes: approvals, splits, merges, redemptions and answers.

import { encodeFunctionData, maxUint256, parseAbi } from "viem";

import { type Config, contract } from "../lib/config";
import { type Address, type Call, type Hex, type Provider, readChain } from "./provider";

const COLLATERAL = parseAbi([
  "function approve(address spender, uint256 amount)",
  "function transfer(address to, uint256 amount)",
]);
const TOKENS = parseAbi([
  "function setApprovalForAll(address operator, bool approved)",
  "function balanceOf(address owner, uint256 id) view returns (uint256)",
  "function splitPosition(address collateral, bytes32 parent, bytes32 condition, uint256[] partition, uint256 amount)",
  "function mergePositions(address collateral, bytes32 parent, bytes32 condition, uint256[] partition, uint256 amount)",
  "function redeemPositions(address collateral, bytes32 parent, bytes32 condition, uint256[] indexSets)",
]);
const NEG_RISK = parseAbi([
  "function splitPosition(bytes32 condition, uint256 amount)",
  "function mergePositions(bytes32 condition, uint256 amount)",
  "function redeemPositions(bytes32 condition, uint256[] amounts)",
  "function convertPositions(bytes32 market, uint256 indexSet, uint256 amount)",
]);
const EXCHANGE = parseAbi(["function claimTokens(uint256 tokenId, address receiver)"]);
const NO_PARENT: Hex = `0x${"0".repeat(64)}`;
const BOTH = [1n, 2n];

export interface Held {
  conditionId: Hex;
  isNegRisk: boolean;
}

/** Return the calls that let the exchanges and the contracts that split and merge move a wallet's assets. */
export function approvals(config: Config): Call[] {
  const [collateral, tokens] = [contract(config, "collateral"), contract(config, "conditionalTokens")];
  const movers = ["exchange", "negRiskExchange", "negRiskAdapter"].map((name) => contract(config, name));
  return [
    ...[tokens, ...movers].map((spender) => ({
      to: collateral, data: encodeFunctionData({ abi: COLLATERAL, functionName: "approve", args: [spender, maxUint256] }),
    })),
    ...movers.map((operator) => ({
      to: tokens, data: encodeFunctionData({ abi: TOKENS, functionName: "setApprovalForAll", args: [operator, true] }),
    })),
  ];
}

/** Return the call that lets a contract take so much of the collateral. */
export function allow(config: Config, spender: Address, units: bigint): Call {
  return { to: contract(config, "collateral"), data: encodeFunctionData({ abi: COLLATERAL, functionName: "approve", args: [spender, units] }) };
}

export function transfer(config: Config, to: Address, units: bigint): Call {
  return { to: contract(config, "collateral"), data: encodeFunctionData({ abi: COLLATERAL, functionName: "transfer", args: [to, units] }) };
}

function tokensOf(config: Config, owner: Address, token: string): Call {
  return { to: contract(config, "conditionalTokens"), data: encodeFunctionData({ abi: TOKENS, functionName: "balanceOf", args: [owner, BigInt(token)] }) };
}

export function split(config: Config, held: Held, units: bigint): Call {
  if (held.isNegRisk) {
    return { to: contract(config, "negRiskAdapter"), data: encodeFunctionData({ abi: NEG_RISK, functionName: "splitPosition", args: [held.conditionId, units] }) };
  }
  const args = [contract(config, "collateral"), NO_PARENT, held.conditionId, BOTH, units] as const;
  return { to: contract(config, "conditionalTokens"), data: encodeFunctionData({ abi: TOKENS, functionName: "splitPosition", args }) };
}

export function merge(config: Config, held: Held, units: bigint): Call {
  if (held.isNegRisk) {
    return { to: contract(config, "negRiskAdapter"), data: encodeFunctionData({ abi: NEG_RISK, functionName: "mergePositions", args: [held.conditionId, units] }) };
  }
  const args = [contract(config, "collateral"), NO_PARENT, held.conditionId, BOTH, units] as const;
  return { to: contract(config, "conditionalTokens"), data: encodeFunctionData({ abi: TOKENS, functionName: "mergePositions", args }) };
}

/** Return the call that redeems all of both outcomes; the neg-risk adapter wants the amounts named. */
export function redeem(config: Config, held: Held, amounts: readonly [bigint, bigint]): Call {
  if (held.isNegRisk) {
    return { to: contract(config, "negRiskAdapter"), data: encodeFunctionData({ abi: NEG_RISK, functionName: "redeemPositions", args: [held.conditionId, amounts] }) };
  }
  const args = [contract(config, "collateral"), NO_PARENT, held.conditionId, BOTH] as const;
  return { to: contract(config, "conditionalTokens"), data: encodeFunctionData({ abi: TOKENS, functionName: "redeemPositions", args }) };
}

/** Return the call that converts No shares of an exclusive event; the index set has a bit for each question given. */
export function convert(config: Config, eventId: Hex, indexSet: bigint, units: bigint): Call {
  return { to: contract(config, "negRiskAdapter"), data: encodeFunctionData({ abi: NEG_RISK, functionName: "convertPositions", args: [eventId, indexSet, units] }) };
}

/** Return the call that claims what an exchange keeps for the caller. */
export function claim(kept: { exchange: string; asset: string }, receiver: Address): Call {
  return { to: kept.exchange as Address, data: encodeFunctionData({ abi: EXCHANGE, functionName: "claimTokens", args: [BigInt(kept.asset), receiver] }) };
}

/** Return how many tokens of both outcomes an owner holds on the chain, in units. */
export async function readTokens(config: Config, provider: Provider, owner: Address, tokens: readonly [string, string]): Promise<[bigint, bigint]> {
  const read = async (token: string): Promise<bigint> => BigInt(await readChain(provider, tokensOf(config, owner, token)));
  return [await read(tokens[0]), await read(tokens[1])];
}
