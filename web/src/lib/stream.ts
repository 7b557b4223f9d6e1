export { Stream, type StreamEvents, type StreamState } from "foretell-client";
