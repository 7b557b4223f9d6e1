// An event of several outcomes with a long title: created with a picture that is cropped, found by search, tag and sort,
// and traded by every type of order; its book, depth, trades, activity and holders.

import { RULES, finish, picture } from "./creating.mjs";
import { CHAIN_MS, actAs, check, chooseLimit, end, link, open, play, shot } from "./rig.mjs";

const TITLE = "Which of the harvests of the northern valleys, of which each may be good or not, does the board of agriculture call a good one in its yearly report?";
const OPTIONS = ["Barley from the fields of Gudbrandsdalen and of its tributaries", "Rye"];
const PHONE = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 900 };

async function create(page) {
  await open(page, "/create");
  await actAs(page, "Creator");
  await page.getByRole("button", { name: "Several outcomes" }).click();
  await page.getByLabel("Title of the event").fill(TITLE);
  for (const [index, name] of OPTIONS.entries()) await page.getByLabel(`Option ${index + 1}`, { exact: true }).fill(name);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("must be shorter").waitFor();
  await page.getByLabel("Address of the page").fill("good-harvests");
  await page.getByText("must be shorter").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("Picture", { exact: true }).setInputFiles(picture("barley", [220, 180, 60]));
  const canvas = page.getByRole("img", { name: /^Picture, square/ });
  const drawn = () => canvas.evaluate((element) => element.toDataURL());
  await page.getByLabel("Zoom").press("End");
  const centered = await drawn();
  for (let step = 0; step < 10; step += 1) await canvas.press("ArrowRight");
  check((await drawn()) !== centered, "the arrow keys move the picture");
  await page.getByLabel("More tags").fill("Norway, Harvest, Barley, Farming");
  await finish(page, RULES);
  await page.getByRole("heading", { level: 1, name: TITLE }).waitFor();
}

async function fits(page, name) {
  await page.setViewportSize(PHONE);
  await page.locator("h1").waitFor();
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  await shot(page, name);
  await page.setViewportSize(WIDE);
  check(wider <= 0, `a long title makes the page ${wider} px too wide`);
}

async function find(page) {
  await open(page, "/");
  const cards = page.locator(".market-card");
  await cards.first().waitFor();
  await page.getByRole("searchbox").fill("harvests valleys");
  await page.waitForFunction(() => location.search.includes("q=harvests"));
  await cards.getByText("Will it rain within a year?").waitFor({ state: "detached" });
  check((await cards.count()) === 1, "a search finds the event alone");
  await cards.getByText(TITLE).waitFor();
  await page.reload();
  check((await page.getByRole("searchbox").inputValue()) === "harvests valleys", "a search survives a reload");
  await page.getByRole("searchbox").fill("no such words");
  await page.getByText("Nothing matches “no such words”.").waitFor();
  await page.getByRole("searchbox").fill("");
  await page.getByRole("group", { name: "Tags" }).getByRole("button", { name: "Barley" }).click();
  await cards.getByText("Will it rain within a year?").waitFor({ state: "detached" });
  await cards.getByText(TITLE).waitFor();
  await page.getByRole("group", { name: "Tags" }).getByRole("button", { name: "All" }).click();
  await cards.getByText("Will it rain within a year?").waitFor();
  await page.getByLabel("Sort by").selectOption("ending");
  await page.waitForFunction((title) => document.querySelector(".market-card h2")?.textContent === title, TITLE); // the other ends later
  await fits(page, "long-title-card");
  await cards.getByText(TITLE).click();
}

async function trade(page) {
  await actAs(page, "Trader 4");
  const ticket = page.getByRole("region", { name: "Trade" });
  const resting = await chooseLimit(page, { cents: 20, shares: 30 });
  await ticket.getByLabel("Good until").selectOption("GTD");
  await ticket.getByLabel("Minutes").fill("1");
  await ticket.getByText("At least 2 minutes.").waitFor();
  await ticket.getByLabel("Minutes").fill("60");
  await resting.click();
  await page.getByText("The order is in the book.").waitFor();
  await page.getByRole("region", { name: "Your orders" }).getByRole("row", { name: /20¢.*until/ }).waitFor();
  await actAs(page, "Trader 5");
  await chooseLimit(page, { outcome: "No", cents: 85, shares: 10 });
  await ticket.getByLabel("Only rest in the book").check();
  await ticket.getByText("A post-only order must not match").waitFor();
  await ticket.getByLabel("Only rest in the book").uncheck();
  await ticket.getByRole("button", { name: "Market", exact: true }).click();
  await ticket.getByLabel("Fill").selectOption("FOK");
  await ticket.getByLabel("Amount ($)").fill("100");
  await ticket.getByText("The book fills $24.00 only.").waitFor();
  await ticket.getByLabel("Amount ($)").fill("8");
  await ticket.getByRole("button", { name: "Buy No", exact: true }).click();
  await page.getByText("Matched: 10 shares").waitFor();
}

/** Wait until the page has an event in which the trade has made the other market the likelier one. */
async function untilRyeIsLikelier(page) {
  const path = "/discovery/events/slug/good-harvests";
  for (let chances = [1, 0]; chances[0] >= chances[1];) {
    const { markets } = await (await fetch(link.origin + path)).json();
    chances = markets.map((each) => Number(JSON.parse(each.outcomePrices)[0]));
    await page.waitForTimeout(100);
  }
  const asked = page.waitForResponse((answer) => new URL(answer.url()).pathname === path);
  await page.evaluate(() => window.dispatchEvent(new Event("visibilitychange"))); // it asks soon, or now
  await asked;
}

async function look(page) {
  const book = page.getByRole("region", { name: "Order book" });
  await book.getByRole("tab", { name: "Trades" }).click();
  await book.getByRole("row", { name: /Buy No.*80¢.*10/ }).waitFor();
  await book.getByRole("tab", { name: "Depth" }).click();
  await book.getByRole("img", { name: "0 shares bid for, 20 offered" }).waitFor();
  await page.getByText("Settled").first().waitFor({ timeout: CHAIN_MS });
  await untilRyeIsLikelier(page); // a finding: the page then changed to that market, and the ticket with it
  await page.getByRole("tab", { name: "Activity" }).click();
  await page.getByRole("row", { name: /Buy No.*80¢.*\$8\.00/ }).waitFor();
  await page.getByRole("tab", { name: "Holders" }).click();
  await page.getByRole("listitem").filter({ hasText: /^0x.*10$/ }).first().waitFor();
  const sets = page.locator("details", { hasText: "Split or merge sets" });
  await sets.locator("summary").click();
  for (const [action, says] of [["Split", "$6.00 were split into complete sets."], ["Merge", "Complete sets were merged into $6.00."]]) {
    await sets.getByRole("textbox", { name: "Sets" }).fill("6");
    await sets.getByRole("button", { name: action }).click();
    await page.getByText(says).waitFor();
  }
}

await play("browse", async (page) => {
  await create(page);
  await fits(page, "long-title");
  await find(page);
  await page.getByRole("button", { name: /^Barley.*No/ }).click();
  await trade(page);
  await look(page);
});
await end();
