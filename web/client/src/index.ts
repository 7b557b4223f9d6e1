// The client of an exchange: requests with the types of its documents, orders, keys, books and streams.

export * from "./amounts.js";
export * from "./api.js";
export * from "./book.js";
export * from "./http.js";
export * from "./order_amounts.js";
export * from "./signing.js";
export * from "./stream.js";
export * from "./trader.js";
export * from "./watching.js";
