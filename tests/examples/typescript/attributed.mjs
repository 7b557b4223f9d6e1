// Orders with a builder or metadata, signed where an exchange accepts both versions of the struct, and version 1 alone:
// URL SIGNER_KEY TOKEN. Prints what was signed, or the refusal, as JSON.

import { BuilderNotSigned, Trader } from "foretell-client";
import { privateKeyToAccount } from "viem/accounts";

const [, , url, key, tokenId] = process.argv;
const WORD = `0x${"ab".repeat(32)}`;
const FIELDS = { builder: { builder: WORD }, metadata: { metadata: WORD }, both: { builder: WORD, metadata: WORD }, none: {} };

/** Return the builder and metadata that a trader signs for each of the drafts, or the message of its refusal. */
async function signed(trader) {
  const seen = {};
  for (const [name, fields] of Object.entries(FIELDS)) {
    seen[name] = await trader.sign({ tokenId, side: "BUY", price: "0.05", size: "10", ...fields }).then(
      ({ body }) => ({ builder: body.order.builder ?? null, metadata: body.order.metadata ?? null }),
      (error) => {
        if (!(error instanceof BuilderNotSigned)) throw error;
        return error.message;
      },
    );
  }
  return seen;
}

const trader = await Trader.connect(url, privateKeyToAccount(key));
const versions = trader.account.exchanges.map((exchange) => exchange.domains.map((each) => each.structVersion));
const both = await signed(trader);
for (const exchange of trader.account.exchanges) exchange.domains = exchange.domains.filter((each) => each.structVersion === 1);
console.log(JSON.stringify({ versions, both, first: await signed(trader) }));
