export { type Options, REQUEST_MS, Refusal, patiently, pause, query, request } from "foretell-client";
