// The published vectors by the packed client: AMOUNTS SIGNINGS. Prints each difference as a line.

import { readFileSync } from "node:fs";

import { budgetAmounts, limitAmounts, orderId, orderTyped, signOrder } from "foretell-client";
import { privateKeyToAccount } from "viem/accounts";

const [, , amountFile, signingFile] = process.argv;
const amounts = JSON.parse(readFileSync(amountFile, "utf8"));
const signings = JSON.parse(readFileSync(signingFile, "utf8"));
let compared = 0;

function compare(name, found, wanted) {
  compared += 1;
  if (found !== wanted) console.log(`${name}: ${found}, and ${wanted} is wanted`);
}

function amountsOf(call) {
  try {
    const { makerAmount, takerAmount } = call();
    return `${makerAmount} ${takerAmount}`;
  } catch (error) {
    return error.name === "Error" ? "refused" : `${error}`;
  }
}

for (const each of amounts.limit) {
  const wanted = each.makerAmount === undefined ? "refused" : `${each.makerAmount} ${each.takerAmount}`;
  compare(`limit ${each.side} ${each.price} ${each.size}`, amountsOf(() => limitAmounts(each.side, each.price, each.size)), wanted);
}
for (const each of amounts.budget) {
  const wanted = each.makerAmount === undefined ? "refused" : `${each.makerAmount} ${each.takerAmount}`;
  compare(`budget ${each.price} ${each.budget}`, amountsOf(() => budgetAmounts(each.price, each.budget)), wanted);
}
const signer = privateKeyToAccount(signings.privateKey);
for (const each of signings.orders) {
  const typed = orderTyped({ ...each.domain, structVersion: each.structVersion }, each.message);
  compare(`${each.wallet} ${each.structVersion}: id`, orderId(typed), each.orderHash);
  const wallet = each.message.signatureType === 3 ? each.message.maker : null;
  compare(`${each.wallet} ${each.structVersion}: signature`, await signOrder(signer, typed, wallet), each.signature);
}
console.log(`${compared} compared`);
