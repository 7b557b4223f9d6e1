// Requests to the APIs, and their refusals in one form.

export const REQUEST_MS = 25_000;
const RETRIES_MAX = 4;
const RETRY_AFTER_S_MAX = 10;
const TEMPORARY = new Set([425, 429, 503]);

/** A refusal of the server, or no answer at all (status 0). */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: unknown = null,
    readonly retryAfterS: number | null = null,
    readonly cure: string | null = null,
  ) {
    super(message);
  }

  get isTemporary(): boolean {
    return this.status === 0 || TEMPORARY.has(this.status);
  }
}

interface ErrorBody {
  error?: unknown;
  code?: unknown;
  message?: unknown;
  details?: unknown;
  type?: unknown;
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** Return the refusal in an answer; each API has its own form of errors. */
function refusalOf(status: number, body: unknown, retryAfter: string | null): Refusal {
  const retryAfterS = retryAfter === null ? null : Number(retryAfter);
  const fields = (typeof body === "object" && body !== null ? body : {}) as ErrorBody;
  if (typeof fields.error === "object" && fields.error !== null) {
    const inner = fields.error as ErrorBody;
    const message = text(inner.message) ?? `HTTP ${status}`;
    return new Refusal(status, text(inner.code) ?? `${status}`, message, inner.details, retryAfterS);
  }
  const words = text(fields.error) ?? `HTTP ${status}`;
  if (text(fields.code) !== null) {
    return new Refusal(status, text(fields.code) ?? "", text(fields.message) ?? words, fields.details, retryAfterS);
  }
  const [code, ...rest] = words.split(": ");
  if (text(fields.type) === null && rest.length > 0) {
    return new Refusal(status, code ?? "", rest.join(": "), null, retryAfterS);
  }
  return new Refusal(status, text(fields.type) ?? `${status}`, words, null, retryAfterS);
}

export interface Options {
  method?: "GET" | "POST" | "DELETE";
  body?: string | FormData;
  headers?: Record<string, string>;
}

/** Return the JSON of an answer; raise a Refusal for every other end. */
export async function request<Answer>(url: string, options: Options = {}): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(url, {
      method: options.method ?? "GET",
      body: options.body ?? null,
      headers: options.headers ?? {},
      signal: AbortSignal.timeout(REQUEST_MS),
      credentials: "omit",
    });
  } catch (error) {
    throw new Refusal(0, "no_answer", error instanceof Error ? error.message : String(error));
  }
  const raw = await response.text();
  let body: unknown = null;
  try {
    body = raw === "" ? null : JSON.parse(raw);
  } catch {
    body = null;
  }
  if (!response.ok) throw refusalOf(response.status, body, response.headers.get("retry-after"));
  return body as Answer;
}

/** Call again what was refused for now (425, 429, 503), as often and as late as the server says. */
export async function patiently<Answer>(
  call: () => Promise<Answer>,
  onWait: (refusal: Refusal, seconds: number) => void,
): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Refusal) || !TEMPORARY.has(error.status) || attempt > RETRIES_MAX) throw error;
      const seconds = Math.min(error.retryAfterS ?? attempt, RETRY_AFTER_S_MAX);
      onWait(error, seconds);
      await pause(seconds * 1000);
    }
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function query(parameters: Record<string, string | number | boolean | readonly string[] | undefined>): string {
  const pairs = Object.entries(parameters).filter((pair) => pair[1] !== undefined && pair[1] !== "");
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([k, v]) => [k, String(v)]))}`;
}
