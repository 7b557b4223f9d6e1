// What goes wrong: a dropped stream, refusals for now, a wallet that refuses, another chain, another account.
// Each has a sentence and a way on.

import { connect, injectWallet } from "./injected.mjs";
import { STEP_MS, actAs, check, chooseLimit, end, open, placeLimit, play, ready } from "./rig.mjs";

const MARKET = `/event/${ready.market.slug}`;
const TRADERS = ready.accounts.filter((account) => account.role === "trader");

await play("stream", async (page) => {
  let socket = null;
  const hellos = [];
  const received = [];
  await page.routeWebSocket(/ws\/market/, (route) => {
    socket = route;
    const server = route.connectToServer();
    route.onMessage((message) => {
      if (message !== "PING") hellos.push(JSON.parse(message));
      server.send(message);
    });
    server.onMessage((message) => {
      received.push(String(message));
      route.send(message);
    });
  });
  await open(page, MARKET);
  await page.getByText("Live prices", { exact: true }).waitFor();
  await actAs(page, "Trader 4");
  await placeLimit(page, { cents: 21, shares: 50 });
  await page.locator('[data-side="bid"]').getByText("21¢").waitFor();
  await socket.close({ code: 1013, reason: "too slow" });
  await page.getByText("Live prices are interrupted. Connecting again …").first().waitFor();
  await page.getByText("Live prices", { exact: true }).waitFor();
  check(hellos.length === 2 && hellos[0].stream_id === undefined, "the page connects again");
  check(hellos[1].sequence > 0 && received.some((each) => each.includes('"event_type":"resumed"')), "its stream goes on");
  await page.locator('[data-side="bid"]').getByText("21¢").waitFor();
  await placeLimit(page, { cents: 19, shares: 50 });
  await page.locator('[data-side="bid"]').getByText("19¢").waitFor();
});

await play("gap", async (page) => {
  let connections = 0;
  await page.routeWebSocket(/ws\/market/, (route) => {
    connections += 1;
    const first = connections === 1;
    const server = route.connectToServer();
    server.onMessage((message) => {
      if (first && !String(message).startsWith("[") && message !== "PONG") return;
      route.send(message);
      if (first && String(message).startsWith("[")) route.send(JSON.stringify({ event_type: "tick", sequence: 900 }));
    });
  });
  await open(page, MARKET);
  await page.getByText("Live prices", { exact: true }).waitFor();
  for (let tries = 0; connections < 2 && tries < STEP_MS / 100; tries += 1) await page.waitForTimeout(100);
  check(connections >= 2, "a gap in the sequence ends the connection");
});

await play("for-now", async (page) => {
  const refusals = [
    { status: 425, code: "engine_restarting", message: "the matching engine is restarting" },
    { status: 429, code: "too_many_requests", message: "too many requests" },
    { status: 503, code: "engine_busy", message: "too much waits for the disk" },
  ];
  const bodies = [];
  await page.route(/clob\/order$/, async (route) => {
    bodies.push(route.request().postData());
    const refusal = refusals[bodies.length - 1];
    if (refusal === undefined) return route.continue();
    const body = JSON.stringify({ error: refusal.message, code: refusal.code, message: refusal.message });
    return route.fulfill({ status: refusal.status, headers: { "retry-after": "1" }, contentType: "application/json", body });
  });
  await open(page, MARKET);
  await actAs(page, "Trader 5");
  const submit = await chooseLimit(page, { cents: 22, shares: 10 });
  await submit.click();
  for (const refusal of refusals) await page.getByText(`The exchange asks for patience: ${refusal.message}`).waitFor();
  await page.getByText("The order is in the book.").waitFor();
  check(bodies.length === 4 && new Set(bodies).size === 1, "the same signed order is sent again");
});

const BUSY = [[425, "The exchange is restarting"], [429, "Too many requests at once"], [503, "The exchange is busy"]];
await play("busy", async (page) => {
  let status = 0;
  await page.route(/discovery\/events\/slug/, (route) => {
    if (status === 0) return route.continue();
    const body = JSON.stringify({ type: "busy", error: "another time" });
    return route.fulfill({ status, headers: { "retry-after": "0" }, contentType: "application/json", body });
  });
  for (const [refused, words] of BUSY) {
    status = refused;
    await page.goto("about:blank");
    await open(page, MARKET);
    const alert = page.getByRole("alert");
    await alert.getByText(words, { exact: true }).waitFor();
    status = 0;
    await alert.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Live prices", { exact: true }).waitFor();
  }
});

await play("no-answer", async (page) => {
  await open(page, MARKET);
  await actAs(page, "Trader 5");
  let isAway = true;
  await page.route(/clob\/order$/, (route) => (isAway ? route.abort("connectionrefused") : route.continue()));
  const submit = await chooseLimit(page, { cents: 24, shares: 11 });
  await submit.click();
  await page.getByRole("alert").getByText("The server does not answer", { exact: true }).waitFor();
  check((await page.getByRole("textbox", { name: "Shares" }).inputValue()) === "11", "what was typed is still there");
  isAway = false;
  await submit.click();
  await page.getByText("The order is in the book.").waitFor();
});

await play("node-down", async (page) => {
  await open(page, MARKET);
  await actAs(page, "Trader 5");
  const sets = page.locator("details", { hasText: "Split or merge sets" });
  await sets.locator("summary").click();
  await sets.getByRole("textbox", { name: "Sets" }).fill("7");
  let isDown = true;
  await page.route(/sandbox\/(chain|send)$/, (route) => {
    if (!isDown) return route.continue();
    return route.fulfill({ status: 502, contentType: "application/json", body: JSON.stringify({ error: { code: "chain_unavailable", message: "the chain does not answer", details: null } }) });
  });
  await sets.getByRole("button", { name: "Split" }).click();
  await sets.getByRole("alert").getByText("The chain does not answer", { exact: true }).waitFor();
  isDown = false;
  check((await sets.getByRole("textbox", { name: "Sets" }).inputValue()) === "7", "what was typed is still there");
  await page.reload();
  await sets.getByRole("textbox", { name: "Sets" }).waitFor();
  check((await sets.getByRole("textbox", { name: "Sets" }).inputValue()) === "7", "what was typed is there after a reload");
  await sets.getByRole("button", { name: "Split" }).click();
  await page.getByText("$7.00 were split into complete sets.").waitFor();
});

await play("stale-tab", async (page) => {
  await open(page, "/");
  await page.getByRole("heading", { level: 1 }).waitFor();
  let isGone = true;
  await page.route(/assets\/portfolio/, (route) => (isGone ? route.fulfill({ status: 404 }) : route.continue()));
  await page.getByRole("link", { name: "Portfolio" }).click();
  await page.getByText("This tab is older than the exchange").waitFor();
  isGone = false;
  await page.getByRole("button", { name: "Load again" }).click();
  await page.getByRole("heading", { name: "Portfolio" }).waitFor();
}, { expected: /dynamically imported module/ });

await play("refusal", async (page) => {
  await open(page, MARKET);
  await actAs(page, "Trader 5");
  const submit = await chooseLimit(page, { cents: 50, shares: 900000 });
  await submit.click();
  await page.getByText("The exchange refused this").waitFor();
  const words = await page.getByRole("alert").innerText();
  check(words.includes("insufficient_balance"), `the refusal has its code: ${words}`);
  check(words.split("\n").length >= 4, `the refusal has its cure: ${words}`);
});

const behaviour = { refuses: true, chainId: ready.chainId };
await play(
  "wallet",
  async (page) => {
    await open(page, MARKET, { withToken: false });
    await connect(page);
    await page.getByText("You refused this in your wallet.").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    Object.assign(behaviour, { refuses: false, chainId: 1 });
    await connect(page);
    await page.getByText(`Switch it to chain ${ready.chainId}, then try again.`).waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    behaviour.chainId = ready.chainId;
    await connect(page);
    await page.locator("[data-wallet]").waitFor();
    await placeLimit(page, { cents: 23, shares: 10 });
    behaviour.refuses = true;
    const submit = await chooseLimit(page, { cents: 23, shares: 10 });
    await submit.click();
    await page.getByText("Nothing was signed or sent; you can try again.").waitFor();
    await page.evaluate((address) => window.emitWallet("accountsChanged", [address]), TRADERS[6].address);
    await page.getByText("Connect again to use that account.").waitFor();
    await page.getByRole("banner").getByRole("button", { name: "Connect wallet" }).waitFor();
    behaviour.refuses = false;
    await connect(page);
    await page.locator("[data-wallet]").waitFor();
    check((await page.getByRole("textbox", { name: "Shares" }).inputValue()) === "10", "what was typed is there for the next account");
    behaviour.chainId = 1;
    await submit.click();
    await page.getByRole("alert").getByText(`Switch it to chain ${ready.chainId}, then try again.`).waitFor();
    behaviour.chainId = ready.chainId;
    await submit.click();
    await page.getByText("The order is in the book.").waitFor();
  },
  { prepare: (page) => injectWallet(page, TRADERS[5].privateKey, behaviour) },
);
await end();
