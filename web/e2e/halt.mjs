// A market whose creation a reorganization of the chain undoes: the operator sees the halt, the event page says so, and
// the ticket's order is refused with the cause and what to do; what was typed stays, and is accepted once the chain has
// the market again.

import { RULES, finish } from "./creating.mjs";
import { CHAIN_MS, actAs, check, chooseLimit, end, open, placeLimit, play, rpc, shot } from "./rig.mjs";

const QUESTION = "Will the harbour of Bergen freeze?";
const BLOCKS = 20;

async function create(page) {
  await open(page, "/create");
  await actAs(page, "Creator");
  await page.getByLabel("Question").fill(QUESTION);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("More tags").fill("Norway, Harbour, Ice, Bergen");
  await finish(page, RULES);
  await page.getByText("Nobody quotes this outcome yet").waitFor();
}

/** Return the transactions of the blocks after one, as they were sent, in their order. */
async function transactionsAfter(block) {
  const found = [];
  for (let number = block + 1, head = Number(await rpc("eth_blockNumber")); number <= head; number += 1) {
    const { transactions } = await rpc("eth_getBlockByNumber", [`0x${number.toString(16)}`, false]);
    for (const hash of transactions) found.push(await rpc("eth_getRawTransactionByHash", [hash]));
  }
  return found;
}

/** Send transactions again; an account of the exchange may have done so itself. */
async function resend(transactions) {
  for (const each of transactions) await rpc("eth_sendRawTransaction", [each]).catch(() => undefined);
}

await play("halt", async (page, context) => {
  const before = Number(await rpc("eth_blockNumber"));
  const snapshot = await rpc("evm_snapshot");
  await create(page);
  const market = page.url();
  await actAs(page, "Trader 1");
  await placeLimit(page, { cents: 30, shares: 10 });
  const transactions = await transactionsAfter(before);
  check(transactions.length > 0, "the market was created by transactions");

  check(await rpc("evm_revert", [snapshot]), "the chain goes back to before the market");
  await rpc("anvil_mine", [`0x${BLOCKS.toString(16)}`]);
  const operator = await context.newPage();
  await open(operator, "/operator");
  await operator.getByRole("heading", { name: "Halted markets" }).waitFor({ timeout: CHAIN_MS });
  await operator.getByRole("link", { name: QUESTION }).waitFor();
  await operator.getByText("Something does not keep up").waitFor();
  await shot(operator, "halt-operator");

  const ticket = page.getByRole("region", { name: "Trade" });
  await ticket.getByText("This market is halted").waitFor();
  const submit = await chooseLimit(page, { cents: 31, shares: 12 });
  await submit.click();
  await ticket.getByRole("alert").waitFor();
  const words = await ticket.getByRole("alert").innerText();
  check(/is halted, because the chain lost its question/.test(words), `the refusal has its cause: ${words}`);
  check(/Wait until the chain has the market again/.test(words), `the refusal has its cure: ${words}`);
  check((await ticket.getByRole("textbox", { name: "Shares" }).inputValue()) === "12", "what was typed stays");
  await shot(page, "halt");

  await resend(transactions);
  await operator.getByRole("heading", { name: "Halted markets" }).waitFor({ state: "detached", timeout: CHAIN_MS });
  await operator.close();
  check(page.url() === market, "the page is the same");
  await ticket.getByText("This market is halted").waitFor({ state: "detached" });
  check((await ticket.getByRole("textbox", { name: "Shares" }).inputValue()) === "12", "what was typed is still there");
  await submit.click();
  await page.getByText("The order is in the book.").waitFor();
});
await end();
