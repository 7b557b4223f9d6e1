export { type Answer, type Body, type PathOf, type Query, get, post } from "foretell-client";
