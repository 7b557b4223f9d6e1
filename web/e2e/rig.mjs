// A browser with the web app of a running sandbox, and what the stories need of it.

import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import { chromium } from "playwright-core";

export const STEP_MS = 180_000; // on a machine that other tests keep busy
export const CHAIN_MS = 600_000; // what waits for many blocks
const [SHOWN_MS, SHOWN_MAX] = [5000, 4000]; // of a page where a story failed: how long its text is waited for, and how much of it is printed

const [, , readyFile, folder, program] = process.argv;
export const ready = JSON.parse(await readFile(readyFile, "utf8"));
export const link = new URL(ready.web);
export const shotFolder = folder;

const problems = [];
let browser = null; // one for all stories of a file; each has a context of its own, with its own storage

export function check(condition, words) {
  if (!condition) throw new Error(words);
}

/** Run a story in a page of its own; end with code 1 and a picture when it fails. */
export async function play(name, story, { size = { width: 1280, height: 900 }, prepare, expected = /^$/ } = {}) {
  await mkdir(folder, { recursive: true });
  browser ??= await chromium.launch({ executablePath: program, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const context = await browser.newContext({ viewport: size, locale: "en-US", colorScheme: "dark" });
  context.setDefaultTimeout(STEP_MS);
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => { if (!expected.test(error.message)) faults.push(error.message); });
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource|WebSocket/.test(message.text()) && !expected.test(message.text())) faults.push(message.text());
  });
  try {
    await prepare?.(page, context);
    await story(page, context);
    check(faults.length === 0, `the page reports: ${faults.join(" | ")}`);
    console.log(`${name}: done`);
  } catch (error) {
    problems.push(name);
    const shown = await page.locator("body").innerText({ timeout: SHOWN_MS }).catch(() => "");
    console.log(`${name}: ${error.stack}\nthe page reports: ${faults.join(" | ")}\nthe page shows:\n${shown.slice(0, SHOWN_MAX)}`);
    await page.screenshot({ path: join(folder, `${name}-failed.png`), fullPage: true }).catch(() => undefined);
  } finally {
    await context.close();
  }
}

/** Return what the sandbox's node answers; raise what it refuses. */
export async function rpc(method, params = []) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const { result, error } = await (await fetch(ready.rpc, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
  check(error === undefined, `${method}: ${JSON.stringify(error)}`);
  return result;
}

export async function end() {
  await browser?.close();
  process.exit(problems.length === 0 ? 0 : 1);
}

export function shot(page, name, fullPage = false) {
  return page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}

export async function open(page, path, { withToken = true } = {}) {
  await page.goto(`${link.origin}${path}${withToken ? link.hash : ""}`);
}

/** Act as a wallet of the sandbox, by its label. */
export async function actAs(page, label) {
  const current = page.locator("[data-wallet]");
  const head = page.getByRole("banner");
  await current.or(head.locator("button:enabled", { hasText: "Connect wallet" })).waitFor();
  if ((await current.count()) > 0) {
    if ((await current.getAttribute("data-wallet")) === label) return;
    await current.click();
    await page.getByRole("button", { name: "Switch wallet" }).click();
  } else {
    await head.getByRole("button", { name: "Connect wallet" }).click();
  }
  await page.getByRole("dialog").getByRole("button", { name: label }).click();
  await page.locator(`[data-wallet="${label}"]`).waitFor();
}

export async function chooseLimit(page, { side = "Buy", outcome = "Yes", cents, shares }) {
  const ticket = page.getByRole("region", { name: "Trade" });
  await ticket.getByRole("group", { name: "Buy or sell" }).getByRole("button", { name: side }).click();
  await ticket.getByRole("group", { name: "Outcome" }).getByRole("button", { name: outcome }).click();
  await ticket.getByRole("button", { name: "Limit", exact: true }).click();
  await ticket.getByLabel("Limit price").fill(String(cents));
  await ticket.getByRole("textbox", { name: "Shares" }).fill(String(shares));
  return ticket.getByRole("button", { name: `${side} ${outcome}`, exact: true });
}

export async function placeLimit(page, order) {
  const submit = await chooseLimit(page, order);
  await submit.click();
  await page.getByText(order.says ?? "The order is in the book.").first().waitFor();
}
