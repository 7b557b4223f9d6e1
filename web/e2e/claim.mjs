// Shares that a wallet refused: the portfolio shows them, and claims them once the wallet takes them.

import { actAs, check, end, open, placeLimit, play, ready, rpc, shot } from "./rig.mjs";

const EVENT = `/event/${ready.market.slug}`;
const REFUSING = "0x5f5ffd";

await play("claim", async (page) => {
  await open(page, EVENT);
  await actAs(page, "Trader 8");
  await placeLimit(page, { outcome: "No", cents: 45, shares: 12 });
  const { address } = ready.accounts.filter((each) => each.role === "trader")[7];
  await rpc("anvil_setCode", [address, REFUSING]);
  await actAs(page, "Trader 7");
  await placeLimit(page, { outcome: "Yes", cents: 55, shares: 12, says: "Matched: 12 shares" });
  await page.getByText("Settled").first().waitFor();
  await rpc("anvil_setCode", [address, "0x"]);
  await open(page, "/portfolio");
  await actAs(page, "Trader 8");
  const kept = page.getByRole("region", { name: "Shares that your wallet refused" });
  await kept.getByText(/^12 No of /).waitFor();
  check((await page.getByRole("row", { name: /rain within a year/ }).count()) === 0, "what is owed is no position");
  await shot(page, "claim");
  await page.reload();
  await kept.getByRole("button", { name: "Claim", exact: true }).click();
  await page.getByText("The shares were claimed.").waitFor();
  await kept.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /rain within a year/ }).waitFor();
});
await end();
