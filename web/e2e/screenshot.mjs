// The picture of the README: an event with a chart, outcomes, a book and a ticket, as a trader sees it.

import { actAs, end, open, play, shot } from "./rig.mjs";

const SLUG = "who-wins-the-regatta-of-nesodden";

await play("screenshot", async (page) => {
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await open(page, `/event/${SLUG}`);
  await actAs(page, "Trader 6");
  await page.getByRole("button", { name: /^Astrid: Yes/ }).click();
  const ticket = page.getByRole("region", { name: "Trade" });
  await ticket.getByRole("button", { name: "Market", exact: true }).click();
  await ticket.getByLabel("Amount ($)").fill("25");
  await ticket.getByText("Payout if right").waitFor();
  await page.getByRole("button", { name: "1H" }).click();
  await page.locator('[data-side="ask"]').getByText("44¢").waitFor();
  await page.getByRole("button", { name: "Buy Yes", exact: true }).focus();
  await page.evaluate(() => { document.activeElement?.blur(); window.scrollTo(0, 0); });
  await page.mouse.move(0, 0);
  await page.waitForLoadState("networkidle").catch(() => undefined); // its streams stay open
  await shot(page, "readme");
}, { size: { width: 1240, height: 1080 } });
end();
