// The configuration that the server gives at run time: nothing of it is built in.

import type { OwnAnswer } from "./own_routes";

export type Config = OwnAnswer<"get", "/config.json">;

export async function loadConfig(): Promise<Config> {
  const answer = await fetch("/config.json", { signal: AbortSignal.timeout(15_000) });
  if (!answer.ok) throw new Error(`GET /config.json: ${answer.status}`);
  return (await answer.json()) as Config;
}

/** Return the address of a contract; a name that the deployment lacks is a bug. */
export function contract(config: Config, name: string): `0x${string}` {
  const address = config.contracts[name];
  if (address === undefined) throw new Error(`the deployment has no contract ${name}`);
  return address as `0x${string}`;
}

/** Return whether the page may show a picture: those of other hosts would show them who looks. */
export function isShown(config: Config, picture: string): boolean {
  return picture.startsWith(`${config.imagesUrl}/`) || picture.startsWith(`${window.location.origin}/`);
}

/** Return the URL of a stream of the trading API. */
export function streamUrl(config: Config, channel: "market" | "user"): string {
  const base = new URL(config.apis.trading, window.location.origin);
  base.protocol = base.protocol.replace("http", "ws");
  return `${base.href.replace(/\/$/, "")}/ws/${channel}`;
}
