// The documentation at /docs: its pages are found by the navigation and by the search.

import { check, end, open, play } from "./rig.mjs";

await play("documentation", async (page) => {
  await open(page, "/docs", { withToken: false });
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await page.getByRole("main").getByRole("link", { name: "Glossary" }).click();
  await page.getByRole("heading", { level: 1, name: "Glossary" }).waitFor();
  await page.getByRole("navigation").first().getByText("Tutorial").first().click();
  await page.getByPlaceholder("Search").first().fill("retry-after identity");
  await page.getByRole("link", { name: "SDK: Retries" }).click();
  await page.getByRole("heading", { level: 2, name: "Retries" }).waitFor();
  check(page.url().endsWith("/docs/reference/sdk.html#retries"), `the search leads to a section, not to ${page.url()}`);
  await page.getByPlaceholder("Search").first().fill("qqqqqq");
  await page.getByText("nothing found").waitFor();
});
end();
