// Requests to the relayer, which sends what an owner signed and pays the gas.

import { get } from "../client/api";
import type { Config } from "../lib/config";
import { pause } from "../lib/http";
import { t } from "../strings";
import { type Signer, signed } from "./credentials";
import { type Hex, WalletProblem, hexOf } from "./provider";

const DONE = new Set(["STATE_MINED", "STATE_CONFIRMED"]);
const FAILED = new Set(["STATE_FAILED", "STATE_INVALID"]);
const DEADLINE_MS = 120_000;
const POLL_MS = 700;

/** Submit a request, and return its transaction's hash once it is in a block. */
export async function submit(config: Config, signer: Signer, body: unknown): Promise<Hex> {
  const accepted = await signed(config, signer, { api: "relayer", method: "POST", path: "/submit", body });
  for (const end = Date.now() + DEADLINE_MS; Date.now() < end; await pause(POLL_MS)) {
    const [found] = await get(config, "relayer", "/transaction", { id: accepted.transactionID });
    if (found === undefined) continue;
    if (FAILED.has(found.state)) throw new WalletProblem(t.wallet.relayerFailed(found.failureReason ?? found.state));
    if (DONE.has(found.state) && found.transactionHash !== null) return hexOf(found.transactionHash);
  }
  throw new WalletProblem(t.wallet.notMined(accepted.transactionID));
}
