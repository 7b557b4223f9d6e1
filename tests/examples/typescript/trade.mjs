// A trader of any wallet and struct, by the packed client alone: URL SIGNER_KEY WALLET STRUCT OTHER_KEY YES NO.
// Prints what it saw as JSON.

import { Trader, get, limitAmounts, unitsText, watchAccount, watchBooks } from "foretell-client";
import { privateKeyToAccount } from "viem/accounts";

const [, , url, key, wallet, struct, otherKey, yes, no] = process.argv;
const WITHIN_MS = 600_000;
const PRICE = "0.37";
const BUILDER = `0x${"ab".repeat(32)}`;
const options = globalThis.WebSocket === undefined ? { socket: (await import("ws")).WebSocket } : {};

/** Return a wait for the first value that passes, and what notes values. */
function first(passes) {
  let note;
  const found = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not in ${WITHIN_MS} ms: ${passes}`)), WITHIN_MS);
    note = (...value) => {
      if (!passes(...value)) return;
      clearTimeout(timer);
      resolve(value);
    };
  });
  return [found, note];
}

const trader = await Trader.connect(url, privateKeyToAccount(key), { wallet, structVersion: Number(struct) });
const other = await Trader.connect(url, privateKeyToAccount(otherKey));
const sizeAt = (book) => unitsText(book.bids.find((level) => unitsText(level.price) === PRICE)?.size ?? 0n);
const amounts = limitAmounts("BUY", PRICE, "10");

let step = () => undefined;
const books = watchBooks(trader.installation, [yes], (_, book) => step(sizeAt(book)), options);
const [settled, noteTrade] = first((message) => message.event_type === "trade" && message.status === "CONFIRMED");
const [announced, noteOrder] = first((message) => message.event_type === "order" && message.type === "PLACEMENT");
const [isLive, noteState] = first((state) => state === "live");
const account = watchAccount(trader, (message) => { noteOrder(message); noteTrade(message); }, { ...options, onState: noteState });
await isLive;

let resting;
[resting, step] = first((size) => size === "10");
const signed = await trader.sign({ tokenId: yes, side: "BUY", price: PRICE, size: "10" });
const placed = await trader.placeSigned(signed);
await resting;
const again = await trader.placeSigned(signed);
const open = await trader.openOrders({ asset_id: yes });
const read = await get(trader.installation, "trading", "/book", { token_id: yes });

let gone;
[gone, step] = first((size) => size === "0");
const canceled = await trader.cancel(placed.orderID);
await gone;
const repeated = await trader.cancel(placed.orderID);

const second = await trader.place({ tokenId: yes, side: "BUY", price: PRICE, size: "10", postOnly: true });
const taken = await other.place({ tokenId: no, side: "BUY", price: "0.63", budget: "6.3", type: "FOK" });
const [[trade], [order]] = await Promise.all([settled, announced]);
const mine = (await trader.trades()).filter((each) => each.maker_orders.some((maker) => maker.order_id === second.orderID));
const attributed = { tokenId: yes, side: "BUY", price: "0.05", size: "10", builder: BUILDER };
const asked = await trader.sign(attributed).then((made) => made.body.order.builder, (error) => error.name);
const builtOrder = await other.sign(attributed);
const built = await other.placeSigned(builtOrder);
await other.cancel(built.orderID);
const funds = await trader.funds(yes);
books.close();
account.close();

console.log(JSON.stringify({
  maker: trader.wallet.address, id: signed.id, placed, again, open: open.map((each) => each.id), announced: order.id,
  bids: read.bids.filter((level) => level.price === PRICE), cost: amounts.makerAmount.toString(), canceled, repeated,
  asked, builder: builtOrder.body.order.builder, built: built.status, second: second.status, taken: taken.status, trade: trade.status, mine: mine.map((each) => each.status), funds,
}));
process.exit(0);
