// A market from its creation to its redemption, with the mouse alone, reloaded in the middle.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { CHAIN_MS, actAs, check, end, open, placeLimit, play, shot, shotFolder } from "./rig.mjs";

const QUESTION = "Will the ferry to Nesodden run in January?";
const RULES = "Resolves to Yes if the operator's public timetable shows a departure in January, else to No.";

async function create(page) {
  await open(page, "/create");
  await actAs(page, "Trader 1");
  await page.getByLabel("Question").fill(QUESTION);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("must have at least 5 unique entries").waitFor();
  await page.getByLabel("More tags").fill("Norway, Ferry, Transport, Oslo");
  await page.getByRole("textbox", { name: "Rules" }).fill(RULES);
  await page.getByText(`${RULES.length} of at least 60 characters`).waitFor();
  const advance = page.getByRole("button", { name: "Continue" });
  await page.getByText("must have").waitFor({ state: "detached" });
  await advance.click();
  await page.getByText("This wallet may not create markets").waitFor();
  await page.getByRole("button", { name: "Use the Creator" }).click();
  await page.getByRole("button", { name: "Sign and create as Creator" }).click();
  await page.getByText("Creating “").waitFor();
  await shot(page, "create");
  await page.reload();
  await page.getByText("The market is open").waitFor({ timeout: CHAIN_MS });
  await page.getByRole("link", { name: "Open the market" }).click();
}

async function trade(page) {
  await page.getByText("Nobody quotes this outcome yet").waitFor();
  await actAs(page, "Trader 1");
  await placeLimit(page, { outcome: "Yes", cents: 40, shares: 100 });
  await page.locator('[data-side="bid"]').getByText("40¢").waitFor();
  await placeLimit(page, { outcome: "Yes", cents: 38, shares: 60 });
  await actAs(page, "Trader 2");
  await placeLimit(page, { outcome: "No", cents: 55, shares: 80 });
  await placeLimit(page, { outcome: "No", cents: 52, shares: 20 });
  await page.getByRole("region", { name: "Order book" }).getByRole("button", { name: "Yes" }).click();
  const asks = page.locator('[data-side="ask"]');
  await asks.getByText("45¢").waitFor();
  const ticket = page.getByRole("region", { name: "Trade" });
  await ticket.getByRole("group", { name: "Outcome" }).getByRole("button", { name: "Yes" }).click();
  await ticket.getByRole("button", { name: "Market", exact: true }).click();
  await actAs(page, "Trader 3");
  await ticket.getByLabel("Amount ($)").fill("18");
  const quote = (await ticket.locator("[data-quote]").innerText()).replace(/\s+/g, " ");
  check(quote.includes("$40.00 (+$22.00)") && quote.includes("Worst price 47¢"), `the ticket shows what it pays: ${quote}`);
  await ticket.getByLabel("Amount ($)").fill("17");
  const odd = (await ticket.locator("[data-quote]").innerText()).replace(/\s+/g, " ");
  check(odd.includes("Shares 37.78") && odd.includes("Worst price 47¢"), `what rounding leaves takes no worse price: ${odd}`);
  await ticket.getByLabel("Amount ($)").fill("18");
  await page.reload();
  await asks.getByText("45¢").waitFor();
  check((await ticket.getByLabel("Amount ($)").inputValue()) === "18", "what was typed is there after a reload");
  await page.locator(".chart canvas").first().waitFor();
  await page.locator('[role="status"][aria-label="Loading"]').first().waitFor({ state: "detached" });
  await shot(page, "event", true);
  await ticket.getByRole("button", { name: "Buy Yes", exact: true }).click();
  await page.getByText("Matched: 40 shares").waitFor();
  await asks.getByText("40", { exact: true }).first().waitFor();
  await page.getByText("Settled").first().waitFor();
}

async function sellAndCancel(page) {
  const ticket = page.getByRole("region", { name: "Trade" });
  await ticket.getByRole("group", { name: "Buy or sell" }).getByRole("button", { name: "Sell" }).click();
  await ticket.getByRole("textbox", { name: "Shares" }).fill("10");
  await page.reload();
  await ticket.getByRole("button", { name: "Sell Yes", exact: true }).click();
  await page.getByText("Matched: 10 shares").waitFor();
  await actAs(page, "Trader 1");
  const orders = page.getByRole("region", { name: "Your orders" });
  await orders.getByRole("row", { name: /38¢/ }).getByRole("button", { name: "Cancel" }).click();
  await page.getByText("The order is canceled.").waitFor();
  await orders.getByRole("row", { name: /38¢/ }).waitFor({ state: "detached" });
}

async function resolve(page) {
  await open(page, "/resolve");
  const group = page.getByRole("group", { name: `Answer: ${QUESTION}` });
  await group.getByRole("button", { name: "Yes" }).click();
  await group.getByRole("button", { disabled: true }).first().or(page.getByText("The answer is on the chain.")).first().waitFor();
  await page.reload();
  await page.getByRole("heading", { level: 2 }).first().waitFor();
  for (let tries = 0; tries < 5; tries += 1) {
    const isGone = await group.waitFor({ state: "detached", timeout: 6_000 }).then(() => true, () => false);
    if (isGone) return;
    await group.getByRole("button", { name: "Yes" }).click({ timeout: 5_000 }).catch(() => undefined); // the reload was before it was sent
  }
  await group.waitFor({ state: "detached" });
}

async function redeem(page) {
  await open(page, "/portfolio");
  await actAs(page, "Trader 3");
  await page.getByText("$30.00 to redeem").waitFor();
  await page.reload();
  await page.getByText("$30.00 to redeem").waitFor();
  await shot(page, "portfolio");
  await page.getByRole("button", { name: "Redeem all" }).click();
  await page.getByText("$30.00 were redeemed.").waitFor();
  await page.getByRole("tab", { name: "Closed" }).click();
  await page.getByText(QUESTION).waitFor();
  await page.getByRole("tab", { name: "History" }).click();
  await page.getByRole("cell", { name: "Redeem" }).first().waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
  await file.saveAs(join(shotFolder, "history.csv"));
}

await play("story", async (page) => {
  await create(page);
  await trade(page);
  await sellAndCancel(page);
  await resolve(page);
  await redeem(page);
  const kept = await page.evaluate(() => ({ local: { ...localStorage }, session: { ...sessionStorage } }));
  await writeFile(join(shotFolder, "storage.json"), JSON.stringify(kept));
});
await end();
