// Uses of a client in TypeScript: argument 1 is a JSON object with its package, the host, the key, the
// signature type, the funder and the token. The result is one line of JSON.
import { Wallet } from "@ethersproject/wallet";

const given = JSON.parse(process.argv[2]);
const { ClobClient } = await import(given.package);
const signer = new Wallet(given.key);
const isNew = given.package.endsWith("-v2");

function clientWith(creds) {
  const { host, type, funder } = given;
  return isNew
    ? new ClobClient({ host, chain: 80002, signer, creds, signatureType: type, funderAddress: funder, throwOnError: true })
    : new ClobClient(host, 80002, signer, creds, type, funder, undefined, false, undefined, undefined, false, 0, true);
}

const creds = await clientWith().createOrDeriveApiKey();
const client = clientWith(creds);
const order = { tokenID: given.token, price: 0.4, size: 10, side: "BUY" };
const placed = await client.createAndPostOrder(order);
const found = await client.getOrder(placed.orderID);
const book = await client.getOrderBook(given.token);
const canceled = await client.cancelOrder({ orderID: placed.orderID });
console.log("\n" + JSON.stringify({ placed, found, bids: book.bids, canceled: canceled.canceled }));
