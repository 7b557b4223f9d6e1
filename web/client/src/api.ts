// Requests to the APIs, with the types of their OpenAPI documents: `make client-types` writes them.

import { query, request } from "./http.js";
import type { paths as Creation } from "../types/creation.js";
import type { paths as Data } from "../types/data.js";
import type { paths as Discovery } from "../types/discovery.js";
import type { paths as Relayer } from "../types/relayer.js";
import type { paths as Trading } from "../types/trading.js";

export interface Apis {
  trading: Trading;
  createMarket: Creation;
  relayer: Relayer;
  data: Data;
  discovery: Discovery;
}

/** The URLs of an installation's APIs. */
export interface Installation {
  apis: Record<keyof Apis, string>;
}

/** Return the URLs of an installation from its address, such as `http://127.0.0.1:8000`. */
export async function fetchInstallation(url: string): Promise<Installation> {
  const base = url.endsWith("/") ? url : `${url}/`;
  const { apis } = await request<Installation>(new URL("config.json", base).href);
  const absolute = Object.entries(apis).map(([name, path]) => [name, new URL(path, base).href]);
  return { apis: Object.fromEntries(absolute) as Installation["apis"] };
}

type Json<Content> = Content extends { content: { "application/json": infer Value } } ? Value : never;
type Operation<Api extends keyof Apis, Path, Method extends string> = Path extends keyof Apis[Api]
  ? Apis[Api][Path] extends Record<Method, infer Found> ? Found : never
  : never;
type QueryOf<Found> = Found extends { parameters: { query?: infer Query } } ? NonNullable<Query> : never;

/** The paths of an API that have a method. */
export type PathOf<Api extends keyof Apis, Method extends string> = {
  [Path in keyof Apis[Api] & string]: Operation<Api, Path, Method> extends { responses: unknown } ? Path : never;
}[keyof Apis[Api] & string];

/** What an operation answers. */
export type Answer<Api extends keyof Apis, Method extends string, Path> = Operation<Api, Path, Method> extends { responses: { 200: infer Found } }
  ? Json<Found>
  : never;

/** What an operation is sent. */
export type Body<Api extends keyof Apis, Method extends string, Path> = Operation<Api, Path, Method> extends { requestBody?: infer Found }
  ? Json<NonNullable<Found>>
  : never;

/** The parameters of a GET; what is undefined is left out. */
export type Query<Api extends keyof Apis, Path> = {
  [Name in keyof QueryOf<Operation<Api, Path, "get">>]: QueryOf<Operation<Api, Path, "get">>[Name] | undefined;
};

function urlOf(installation: Installation, api: keyof Apis, path: string, places: Record<string, string>): string {
  return installation.apis[api] + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(places[name] ?? ""));
}

/** Return the answer of a GET. A path names its places in braces, as the document does. */
export function get<Api extends keyof Apis, Path extends PathOf<Api, "get">>(
  installation: Installation, api: Api, path: Path, parameters: Partial<Query<Api, Path>> = {}, places: Record<string, string> = {},
): Promise<Answer<Api, "get", Path>> {
  return request(urlOf(installation, api, path, places) + query(parameters as Parameters<typeof query>[0]));
}

/** Return the answer of a POST with a JSON body; the documents do not say which fields may be left out. */
export function post<Api extends keyof Apis, Path extends PathOf<Api, "post">>(
  installation: Installation, api: Api, path: Path, body: Partial<Body<Api, "post", Path>>,
): Promise<Answer<Api, "post", Path>> {
  return request(urlOf(installation, api, path, {}), { method: "POST", body: JSON.stringify(body) });
}
