// Calls from the user's proxy wallet: the owner signs them for the relay hub, and the relayer sends them and pays
// the gas. The first calls make the wallet.

import { concat, encodeFunctionData, keccak256, numberToHex, parseAbi, stringToHex } from "viem";

import { get } from "../client/api";
import { type Config, contract } from "../lib/config";
import type { Signer } from "./credentials";
import { type Address, type Call, type Hex, ensureChain, hexOf, signBytes } from "./provider";
import { submit } from "./relayer";

const FACTORY = parseAbi([
  "struct ProxyCall { uint8 typeCode; address to; uint256 value; bytes data; }",
  "function proxy(ProxyCall[] calls)",
]);
const PLAIN_CALL = 1;
const WORD = { size: 32 };
/** What the calls may use: more than any of them needs, since the relayer pays for what is used. */
const GAS = { wallet: 300_000, call: 400_000 };

/** The most calls that one transaction of a proxy wallet has. */
export const PROXY_CALLS_MAX = 16;

/** Make calls from the proxy wallet in one transaction, and return its hash once it is in a block. */
export async function executeFromProxy(config: Config, signer: Signer, proxyWallet: Address, calls: Call[]): Promise<Hex> {
  await ensureChain(signer.provider, config);
  const [to, hub] = [contract(config, "proxyWalletFactory"), contract(config, "relayHub")];
  const { address: relay, nonce } = await get(config, "relayer", "/relay-payload", { address: signer.address, type: "PROXY" });
  const data = encodeFunctionData({
    abi: FACTORY, functionName: "proxy",
    args: [calls.map((call) => ({ typeCode: PLAIN_CALL, to: call.to, value: 0n, data: call.data }))],
  });
  const gasLimit = String(GAS.wallet + GAS.call * calls.length);
  const words = ["0", "0", gasLimit, nonce].map((each) => numberToHex(BigInt(each), WORD)); // fee, gas price, gas, nonce
  const message = concat([stringToHex("rlx:"), signer.address, to, data, ...words, hub, hexOf(relay)]);
  const signature = await signBytes(signer.provider, signer.address, keccak256(message));
  return submit(config, signer, {
    type: "PROXY", from: signer.address, to, proxyWallet, data, nonce, signature, metadata: "",
    signatureParams: { gasPrice: "0", gasLimit, relayerFee: "0", relayHub: hub, relay },
  });
}
