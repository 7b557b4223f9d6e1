// Every page for people who use a keyboard, a screen reader or a small screen: no serious finding of axe, no
// scrolling sideways, and a first link that skips to the content.

import axe from "axe-core";

import { actAs, check, end, open, play, ready, shot } from "./rig.mjs";

const PAGES = ["/", `/event/${ready.market.slug}`, "/portfolio", "/leaderboard", "/create", "/resolve", "/operator", "/nowhere"];
const SERIOUS = new Set(["serious", "critical"]);

async function findings(page) {
  // The content security policy of the page admits no script but its own; the debugger's is not the page's.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter((each) => SERIOUS.has(each.impact)).map((each) => `${each.id}: ${each.nodes.map((node) => node.target).join(", ")}`);
}

/** Return the colours in which a page is examined: both on wide screens, where a page differs from others. */
function themes(name, path) {
  const isRich = path.startsWith("/event");
  if (name === "phone") return isRich ? ["dark"] : [];
  return isRich || path === "/create" ? ["dark", "light"] : ["dark"];
}

for (const [name, size] of [["wide", { width: 1280, height: 900 }], ["phone", { width: 360, height: 740 }]]) {
  await play(
    `access-${name}`,
    async (page) => {
      await open(page, "/");
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.keyboard.press("Tab");
      check((await page.locator(":focus").innerText()) === "Skip to content", "the first stop skips to the content");
      await actAs(page, "Trader 1");
      for (const path of PAGES) {
        if (path === "/nowhere") await page.evaluate(() => { history.pushState(null, "", "/nowhere"); dispatchEvent(new PopStateEvent("popstate")); });
        else await open(page, path);
        await page.locator("h1, h2").first().waitFor();
        if (path === "/create") await page.getByRole("button", { name: "Game", exact: true }).click();
        await page.locator('[role="status"][aria-label="Loading"]').first().waitFor({ state: "detached" });
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        check(wider <= 0, `${path} scrolls sideways by ${wider} px`);
        for (const theme of themes(name, path)) {
          await page.evaluate((value) => { document.documentElement.dataset.theme = value; }, theme);
          const found = await findings(page);
          check(found.length === 0, `${path} (${theme}): ${found.join("; ")}`);
        }
        for (const theme of ["light", "dark"]) {
          await page.evaluate((value) => { document.documentElement.dataset.theme = value; }, theme);
          await shot(page, `${path.split("/")[1] || "markets"}-${name}-${theme}`, path.startsWith("/event"));
        }
      }
      await page.goto("about:blank");
    },
    { size },
  );
}
await end();
