// A browser wallet (EIP-1193) whose keys stay out of the page; stories change its behaviour while it is used.

import { createWalletClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import { ready } from "./rig.mjs";

const REFUSED = { error: { code: 4001, message: "User rejected the request." } };
const NOTHING = { refuses: false, chainId: ready.chainId };

/** Give the page a wallet with this key. */
export async function injectWallet(page, privateKey, behaviour = NOTHING) {
  const account = privateKeyToAccount(privateKey);
  const chain = { id: ready.chainId, name: "sandbox", nativeCurrency: { name: "Gas", symbol: "GAS", decimals: 18 }, rpcUrls: { default: { http: [ready.rpc] } } };
  const client = createWalletClient({ account, chain, transport: http(ready.rpc) });
  const answer = async (method, params) => {
    if (behaviour.refuses && /^(eth_(sign|send)|personal_sign)/.test(method)) return REFUSED;
    if (method === "eth_requestAccounts" || method === "eth_accounts") return { result: [account.address] };
    if (method === "eth_chainId") return { result: `0x${behaviour.chainId.toString(16)}` };
    if (method === "wallet_switchEthereumChain") return REFUSED;
    if (method === "eth_signTypedData_v4") return { result: await account.signTypedData(JSON.parse(params[1])) };
    if (method === "personal_sign") return { result: await account.signMessage({ message: { raw: params[0] } }) };
    if (method === "eth_sendTransaction") return { result: await client.sendTransaction({ to: params[0].to, data: params[0].data, value: BigInt(params[0].value) }) };
    const sent = await fetch(ready.rpc, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
    return sent.json();
  };
  await page.exposeFunction("askWallet", answer);
  await page.addInitScript(() => {
    const listeners = {};
    window.ethereum = {
      request: async ({ method, params }) => {
        const { result, error } = await window.askWallet(method, params ?? []);
        if (error) throw Object.assign(new Error(error.message), { code: error.code });
        return result;
      },
      on: (event, listener) => { (listeners[event] ??= new Set()).add(listener); },
      removeListener: (event, listener) => { listeners[event]?.delete(listener); },
    };
    window.emitWallet = (event, value) => { for (const listener of listeners[event] ?? []) listener(value); };
  });
}

/** Connect the page to the browser's wallet. */
export async function connect(page) {
  await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).click();
  await page.getByRole("button", { name: /Browser wallet/ }).click();
}
