// Calls from the user's Safe: the owner signs them, and the relayer sends them and pays the gas.

import { concat, encodeFunctionData, encodePacked, parseAbi, size, zeroAddress } from "viem";

import { get } from "../client/api";
import { type Config, contract } from "../lib/config";
import type { Signer } from "./credentials";
import { type Address, type Call, type Hex, ensureChain, signTyped } from "./provider";
import { submit } from "./relayer";

const MULTI_SEND = parseAbi(["function multiSend(bytes transactions)"]);
/** Have the relayer deploy the owner's Safe. */
export async function createSafe(config: Config, signer: Signer, safe: Address): Promise<Hex> {
  await ensureChain(signer.provider, config);
  const factory = contract(config, "safeFactory");
  const signature = await signTyped(signer.provider, signer.address, {
    domain: { name: config.safeFactoryName, chainId: config.chainId, verifyingContract: factory },
    types: {
      CreateProxy: [
        { name: "paymentToken", type: "address" },
        { name: "payment", type: "uint256" },
        { name: "paymentReceiver", type: "address" },
      ],
    },
    primaryType: "CreateProxy",
    message: { paymentToken: zeroAddress, payment: 0, paymentReceiver: zeroAddress },
  });
  return submit(config, signer, {
    type: "SAFE-CREATE", from: signer.address, to: factory, proxyWallet: safe, data: "0x", signature,
    signatureParams: { paymentToken: zeroAddress, payment: "0", paymentReceiver: zeroAddress },
  });
}

function bundle(config: Config, calls: Call[]): Call & { operation: number } {
  const [only] = calls;
  if (calls.length === 1 && only !== undefined) return { ...only, operation: 0 };
  const packed = calls.map((call) =>
    encodePacked(["uint8", "address", "uint256", "uint256", "bytes"], [0, call.to, 0n, BigInt(size(call.data)), call.data]),
  );
  const data = encodeFunctionData({ abi: MULTI_SEND, functionName: "multiSend", args: [concat(packed)] });
  return { to: contract(config, "multiSend"), data, operation: 1 };
}

/** Make calls from the Safe in one transaction, and return its hash once it is in a block. */
export async function executeFromSafe(config: Config, signer: Signer, safe: Address, calls: Call[]): Promise<Hex> {
  await ensureChain(signer.provider, config);
  const { to, data, operation } = bundle(config, calls);
  const { nonce } = await get(config, "relayer", "/nonce", { address: signer.address, type: "SAFE" });
  const words = ["safeTxGas", "baseGas", "gasPrice"].map((name) => ({ name, type: "uint256" }));
  const signature = await signTyped(signer.provider, signer.address, {
    domain: { chainId: config.chainId, verifyingContract: safe },
    types: {
      SafeTx: [
        { name: "to", type: "address" }, { name: "value", type: "uint256" }, { name: "data", type: "bytes" },
        { name: "operation", type: "uint8" }, ...words, { name: "gasToken", type: "address" },
        { name: "refundReceiver", type: "address" }, { name: "nonce", type: "uint256" },
      ],
    },
    primaryType: "SafeTx",
    message: { to, value: 0, data, operation, safeTxGas: 0, baseGas: 0, gasPrice: 0, gasToken: zeroAddress, refundReceiver: zeroAddress, nonce },
  });
  return submit(config, signer, {
    type: "SAFE", from: signer.address, to, proxyWallet: safe, data, nonce, signature, metadata: "",
    signatureParams: {
      operation: String(operation), safeTxnGas: "0", baseGas: "0", gasPrice: "0", gasToken: zeroAddress, refundReceiver: zeroAddress,
    },
  });
}
