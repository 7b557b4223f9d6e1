// The answers of the app's own server, as its OpenAPI document has them: `make client-types` writes the types.

import type { paths as Paths } from "../../client/types/web";

type Found<Method extends string, Path extends keyof Paths> = Paths[Path] extends Record<Method, infer Operation> ? Operation : never;

/** What a route of the app's own server answers. */
export type OwnAnswer<Method extends string, Path extends keyof Paths> =
  Found<Method, Path> extends { responses: { 200: { content: { "application/json": infer Value } } } } ? Value : never;
