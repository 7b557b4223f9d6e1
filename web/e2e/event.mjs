// An exclusive event: created, converted, answered by the optimistic oracle after a dispute, and redeemed, with
// reloads in the middle.

import { toEventSelector } from "viem";

import { RULES, finish, picture } from "./creating.mjs";
import { actAs, check, end, link, open, play, rpc, shot } from "./rig.mjs";

const OPTIONS = ["Anna", "Ben", "Cleo"];
const TITLE = "Who wins the regatta?";
const LIVENESS_S = 7200;
const ANSWERS = [
  "event ProposePrice(address indexed, address indexed, bytes32, uint256, bytes, int256, uint256, address)",
  "event DisputePrice(address indexed, address indexed, address indexed, bytes32, uint256, bytes, int256)",
].map((each) => toEventSelector(each));

async function createEvent(page) {
  await open(page, "/create");
  await actAs(page, "Creator");
  await page.getByRole("button", { name: "One winner" }).click();
  await page.getByLabel("Title of the event").fill(TITLE);
  await page.getByRole("button", { name: "Add an option" }).click();
  for (const [index, name] of OPTIONS.entries()) await page.getByLabel(`Option ${index + 1}`, { exact: true }).fill(name);
  await page.getByLabel("Its picture (optional)", { exact: true }).first().setInputFiles(picture("anna", [40, 120, 220]));
  await page.getByRole("button", { name: "Without a file" }).waitFor();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("More tags").fill("Norway, Sailing, Boats, Summer");
  await finish(page, RULES, "By an optimistic oracle");
  await page.getByText("All outcomes add up to").waitFor();
  check((await page.getByRole("region", { name: "Outcomes" }).locator("img").count()) === 1, "the option with a picture shows it");
}

/** Split a dollar into sets of two options, and convert both No shares into a dollar and the Yes of the third. */
async function convert(page) {
  await actAs(page, "Trader 7");
  await page.getByRole("button", { name: "Allow trading" }).or(page.getByRole("button", { name: "Limit", exact: true })).first().waitFor();
  const sets = page.locator("details", { hasText: "Split or merge sets" });
  for (const name of OPTIONS.slice(0, 2)) {
    await page.getByRole("button", { name: new RegExp(`^${name}: Yes`) }).click();
    if ((await sets.getAttribute("open")) === null) await sets.locator("summary").click();
    await sets.getByRole("textbox", { name: "Sets" }).fill("20");
    await sets.getByRole("button", { name: "Split" }).click();
    await sets.getByText("Sending …").first().waitFor();
    await sets.getByRole("button", { name: "Split" }).waitFor();
    await page.getByText("$20.00 were split into complete sets.").first().waitFor();
  }
  await open(page, "/portfolio");
  const card = page.locator("details", { hasText: "Convert No shares" });
  await card.locator("summary").click();
  await page.reload();
  await card.locator("summary").click();
  await card.getByText("You get $20.00, and 20 Yes of Cleo.").waitFor();
  await shot(page, "convert");
  await card.getByRole("button", { name: "Convert" }).click();
  await page.getByText("The shares were converted.").waitFor();
  await page.getByRole("row", { name: /Cleo/ }).waitFor();
  await card.waitFor({ state: "detached" });
}

async function answer(page) {
  await open(page, "/resolve");
  const group = page.getByRole("group", { name: /^Answer: .*Anna/ });
  await group.getByRole("button", { name: "Propose No" }).click();
  await page.getByText("Proposed: No.").waitFor();
  await page.reload();
  await actAs(page, "Trader 6");
  await group.getByRole("button", { name: "Dispute" }).click();
  await page.getByText("the question is asked again").waitFor();
  await shot(page, "resolve");
  await group.getByRole("button", { name: "Propose Yes" }).click();
  await page.getByText("Proposed: Yes.").waitFor();
  await rpc("evm_increaseTime", [LIVENESS_S + 1]);
  await rpc("evm_mine");
  await page.getByText("The answer stands: Yes.").waitFor();
  await page.reload();
  await group.getByRole("button", { name: "Report the answer" }).click();
  await page.getByText("The answer is on the chain.").waitFor();
  await page.getByText("The oracle owes you").waitFor();
  await page.getByRole("button", { name: "Withdraw" }).click();
  await page.getByText("were withdrawn.").waitFor();
}

/** Return when the answers of the event were proposed and disputed, as a page shows times, by the chain's own logs. */
async function chainTimes() {
  const { contracts } = await (await fetch(`${link.origin}/config.json`)).json();
  const logs = await rpc("eth_getLogs", [{ fromBlock: "0x0", toBlock: "latest", address: contracts.optimisticOracle, topics: [ANSWERS] }]);
  const format = new Intl.DateTimeFormat("en-US", { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
  const times = [];
  for (const log of logs) times.push(format.format(new Date(Number((await rpc("eth_getBlockByNumber", [log.blockNumber, false])).timestamp) * 1000)));
  return times;
}

await play("event", async (page) => {
  await createEvent(page);
  const url = page.url();
  await convert(page);
  await answer(page);
  await page.goto(url);
  const timeline = page.getByRole("list", { name: "Resolution" });
  await timeline.getByText("Proposed: No").waitFor();
  await timeline.getByText("Disputed: No").waitFor();
  await timeline.getByText("Proposed: Yes").waitFor();
  const times = await chainTimes();
  const shown = await timeline.getByRole("listitem").filter({ hasText: /^.?(Proposed|Disputed)/ }).allInnerTexts();
  check(shown.length === 3 && times.length === 3, `the timeline has three steps: ${shown.join(" | ")}`);
  for (const [index, time] of times.entries()) check(shown[index].replace(/\s+/g, " ").includes(time), `step ${index + 1} was at ${time}: ${shown[index]}`);
  await timeline.getByText(/^Resolved: Yes/).waitFor();
  await shot(page, "resolved", true);
  await open(page, "/portfolio");
  await actAs(page, "Trader 7");
  await page.getByText("$20.00 to redeem").waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Redeem all" }).click();
  await page.getByText("$20.00 were redeemed.").waitFor();
});
await end();
