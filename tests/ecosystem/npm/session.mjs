// A process that runs unmodified clients in TypeScript: it reads requests of the tests, one a line of JSON. Its
// requests and answers are those of driver.py; argument 1 is the package.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Wallet } from "@ethersproject/wallet";
import { BuilderConfig } from "@polymarket/builder-signing-sdk";
import { createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const CHAIN_ID = 80002;
const name = process.argv[2];
const package_ = await import(name);
const clients = new Map();
console.log = console.error;

function relayerWith({ host, rpc, builder, key, proxy_chain: proxyChain }) {
  const chain = defineChain({
    id: proxyChain ?? CHAIN_ID,
    name: "chain",
    nativeCurrency: { name: "coin", symbol: "COIN", decimals: 18 },
    rpcUrls: { default: { http: [rpc] } },
  });
  const config = new BuilderConfig({ localBuilderCreds: builder });
  const signer = createWalletClient({ account: privateKeyToAccount(key), chain, transport: http(rpc) });
  const type = proxyChain && package_.RelayerTxType.PROXY;
  return new package_.RelayClient(host, chain.id, signer, config, type, { chain });
}

function clobWith({ host, key, signature_type: type, funder, builder }, creds) {
  const signer = new Wallet(key);
  const funderAddress = funder ?? undefined;
  if (name.endsWith("-v2")) {
    return new package_.ClobClient({ host, chain: CHAIN_ID, signer, creds, signatureType: type, funderAddress, throwOnError: true });
  }
  const config = builder && new BuilderConfig({ localBuilderCreds: builder });
  return new package_.ClobClient(host, CHAIN_ID, signer, creds, type, funderAddress, undefined, false, config, undefined, false, 0, true);
}

// The declarations say which methods are public: in JavaScript all are.
function methods(client) {
  const folder = new URL(".", import.meta.resolve(name));
  const parts = [["client.d.ts", ""]];
  if (client.rfq) parts.push(["rfq-client.d.ts", "rfq."]);
  return parts.flatMap(([file, before]) =>
    [...readFileSync(new URL(file, folder), "utf8").matchAll(/^ +([a-z]\w*)(?:<[^(]*>)?\(/gm)]
      .map((found) => found[1])
      .filter((each) => each !== "constructor")
      .map((each) => before + each),
  );
}

function fieldOf(value, names) {
  return names.reduce((each, field) => each[field], value);
}

function valueOf(given, kept) {
  if (Array.isArray(given)) return given.map((each) => valueOf(each, kept));
  if (given === null || typeof given !== "object") return given;
  if ("__kept" in given) {
    const [first, ...names] = given.__kept.split(".");
    return fieldOf(kept.get(first), names);
  }
  return Object.fromEntries(Object.entries(given).map(([field, each]) => [field, valueOf(each, kept)]));
}

async function answer(request) {
  if (request.make) {
    const client = name.includes("relayer") ? relayerWith(request) : clobWith(request);
    clients.set(request.make, { client, request, kept: new Map() });
    return null;
  }
  if (request.end) return clients.delete(request.end);
  const running = clients.get(request.client);
  if (request.methods) return methods(running.client);
  if (request.call === "set_api_creds") {
    running.client = clobWith(running.request, valueOf(request.args[0], running.kept));
    return null;
  }
  const names = request.call.split(".");
  const owner = fieldOf(running.client, names.slice(0, -1));
  const args = request.args.map((each) => valueOf(each, running.kept));
  const result = await owner[names.at(-1)](...args);
  if (request.keep) running.kept.set(request.keep, result);
  return JSON.parse(JSON.stringify(result ?? null, (key, each) => (each === running.client ? undefined : each)));
}

// A client of relayers puts the answer of the server into the message of its error.
function refusal(error) {
  if (error?.name === "ApiError" && error.status) return { status: error.status, error: error.data };
  try {
    const { status, data } = JSON.parse(error.message);
    if (status) return { status, error: data };
  } catch {
    // The client's own words.
  }
  return { raised: `${error?.name}: ${error?.message}` };
}

for await (const line of createInterface({ input: process.stdin })) {
  const result = await answer(JSON.parse(line)).then((result) => ({ result: result ?? null }), refusal);
  process.stdout.write(JSON.stringify(result) + "\n");
}
