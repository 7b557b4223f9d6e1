// What stories that create events share: the rest of the wizard, and pictures.

import { deflateSync } from "node:zlib";

import { CHAIN_MS } from "./rig.mjs";

export const RULES = "Resolves by the official result that the organizer publishes on its own pages, and by nothing else.";

/** Return a PNG of one colour, darker on its right side. */
function png(side, [red, green, blue]) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    let crc = 0xffffffff;
    for (const byte of body) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    sum.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(side * 1.5, Buffer.from([red, green, blue])), Buffer.alloc(side * 1.5, Buffer.from([red, green, blue].map((part) => part >> 1)))]);
  const rows = Buffer.concat(Array.from({ length: side }, () => row));
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

export const picture = (name, colour) => ({ name: `${name}.png`, mimeType: "image/png", buffer: png(96, colour) });

/** Fill in the rest of a draft, sign it, and reload while it is under way. */
export async function finish(page, rules, kind) {
  await page.getByRole("textbox", { name: "Rules" }).fill(rules);
  if (kind !== undefined) await page.getByRole("group", { name: "Resolution" }).getByRole("button", { name: kind }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: "Sign and create as Creator" }).click();
  await page.getByText("Creating “").waitFor();
  await page.reload();
  await page.getByText("The market is open").waitFor({ timeout: CHAIN_MS });
  await page.getByRole("link", { name: "Open the market" }).click();
}
