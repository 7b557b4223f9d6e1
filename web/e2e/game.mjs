// A game with logos and a market of its own, created with a reload in the middle, and shown as a game.

import { RULES, finish, picture } from "./creating.mjs";
import { actAs, check, end, open, play, shot } from "./rig.mjs";

await play("game", async (page) => {
  await open(page, "/create");
  await actAs(page, "Creator");
  await page.getByRole("button", { name: "Game" }).click();
  await page.getByLabel("Home team", { exact: true }).fill("Brann");
  await page.getByLabel("Away team", { exact: true }).fill("Molde");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText(/leagueSlug|is required|must/).first().waitFor();
  await page.getByLabel("Sport", { exact: true }).fill("Soccer");
  await page.getByLabel("League", { exact: true }).fill("Eliteserien");
  await page.getByRole("textbox", { name: /^Start/ }).fill("2035-06-01T18:00");
  await page.getByRole("textbox", { name: /^Totals/ }).fill("2.5");
  await page.getByLabel("Home logo", { exact: true }).setInputFiles(picture("brann", [200, 30, 40]));
  await page.getByRole("button", { name: "Without a file" }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Without a file" }).waitFor();
  check((await page.getByLabel("League", { exact: true }).inputValue()) === "Eliteserien", "what was typed is there after a reload");
  await page.getByRole("button", { name: "Add a market" }).click();
  await page.getByLabel("Title of the market").fill("Olsen scores first");
  await page.getByLabel("Its question").fill("Will Olsen score the first goal?");
  await shot(page, "create-game", true);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("More tags").fill("Norway");
  await finish(page, RULES);
  const game = page.getByRole("group", { name: "Game" });
  await game.getByText("Eliteserien").waitFor();
  await page.getByRole("heading", { name: "Winner" }).waitFor();
  await page.getByRole("heading", { name: "Total", exact: true }).waitFor();
  await shot(page, "game");
  check((await game.locator("img").count()) === 2, "both teams have logos");
  await open(page, "/");
  await page.getByRole("link", { name: /Brann – Molde/ }).getByText("Eliteserien").waitFor();
  await shot(page, "markets");
});
await end();
