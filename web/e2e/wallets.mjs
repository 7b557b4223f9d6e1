// An owner with a browser wallet trades from its Safe and from its proxy wallet: the relayer makes both with the first
// calls and pays their gas.

import { connect, injectWallet } from "./injected.mjs";
import { actAs, check, end, open, placeLimit, play, ready, shot } from "./rig.mjs";

const MARKET = `/event/${ready.market.slug}`;
const TRADERS = ready.accounts.filter((account) => account.role === "trader");
const PAYERS = [["Safe", 0, 31], ["Proxy wallet", 1, 33]];

/** Switch the wallet that pays, and move collateral to it. */
async function payFrom(page, payer, amount) {
  await page.locator("[data-wallet]").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("group", { name: "Trade from" }).getByRole("button", { name: payer, exact: true }).click();
  await dialog.getByLabel(`Move to your ${payer} ($)`).fill(amount);
  await dialog.getByRole("button", { name: "Move", exact: true }).click();
  await page.getByText(`$${amount}.00 are in your ${payer}.`).waitFor();
  await shot(page, `pay-from-${payer.split(" ")[0].toLowerCase()}`);
  await dialog.getByRole("button", { name: "Close" }).click();
}

for (const [payer, index, cents] of PAYERS) {
  const owner = TRADERS[index];
  await play(
    payer,
    async (page, context) => {
      await open(page, MARKET, { withToken: false });
      await connect(page);
      await page.locator("[data-wallet]").waitFor();
      await payFrom(page, payer, "60");
      const ticket = page.getByRole("region", { name: "Trade" });
      await ticket.getByRole("button", { name: "Allow trading" }).click();
      await ticket.getByText(`Paid from your ${payer === "Safe" ? payer : payer.toLowerCase()}; the relayer pays the gas.`).waitFor();
      await page.reload();
      await placeLimit(page, { cents, shares: 20 });
      const other = await context.newPage();
      await open(other, MARKET);
      await actAs(other, "Trader 4");
      await placeLimit(other, { outcome: "No", cents: 100 - cents, shares: 20, says: "Matched: 20 shares" });
      await other.close();
      await page.getByText("Settled").first().waitFor();
      const sets = page.locator("details", { hasText: "Split or merge sets" });
      await sets.locator("summary").click();
      await sets.getByRole("textbox", { name: "Sets" }).fill("7");
      await sets.getByRole("button", { name: "Split" }).click();
      await page.getByText("$7.00 were split into complete sets.").waitFor();
      await page.getByRole("link", { name: "Portfolio" }).click();
      await page.getByRole("row", { name: /27/ }).first().waitFor();
      const held = await page.getByRole("row", { name: /27/ }).first().innerText();
      check(/rain within a year/.test(held), `the ${payer} holds what it bought and split: ${held}`);
    },
    { prepare: (page) => injectWallet(page, owner.privateKey) },
  );
}
await end();
