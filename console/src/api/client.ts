/**
 * The one place that asks the server. Paths, bodies and answers have the types of the server's own description.
 *
 * The session is a cookie that scripts cannot read. What scripts hold is the code that proves a request to be the
 * console's own; it is useless without the cookie, so it may be shared between tabs.
 */
import type { Operations, Schemas } from "./generated/openapi";

export type Schema<Name extends keyof Schemas> = Schemas[Name];
export type Operation = keyof Operations;

type PathOf<O extends Operation> = O extends `${string} ${infer Path}` ? Path : never;
type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
type Segments<O extends Operation> = { [Name in Names<PathOf<O>>]: string };

interface Options<O extends Operation> {
  path?: Segments<O>;
  query?: Operations[O]["query"];
  body?: Operations[O]["body"];
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

const CSRF_HEADER = "x-nimbus-csrf";
const CSRF_PLACE = "nimbus.csrf";
/** Browsers let requests outlive their page up to 64 KiB of them all. */
const SMALL_BYTES = 4096;

/** What the server refused, in its own words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly reference: string,
    readonly traceId: string,
    readonly details: Schema<"Detail">[],
  ) {
    super(message);
    this.name = "ApiError";
  }

  get isSignedOut(): boolean {
    return this.status === 401;
  }

  /** What is wrong with one field of a form. */
  field(name: string): string | undefined {
    return this.details.find((detail) => detail.field === name)?.message;
  }
}

/** The server did not answer at all. */
export class OfflineError extends Error {
  constructor() {
    super("The server does not answer. What you see is from before; nothing you enter is lost.");
    this.name = "OfflineError";
  }
}

type Listener = () => void;
const signedOutListeners = new Set<Listener>();

/** Called when the session is over and cannot be renewed. */
export function onSignedOut(listener: Listener): Listener {
  signedOutListeners.add(listener);
  return () => signedOutListeners.delete(listener);
}

export function rememberCsrf(code: string | null | undefined): void {
  if (code) localStorage.setItem(CSRF_PLACE, code);
  else localStorage.removeItem(CSRF_PLACE);
}

export function mayBeSignedIn(): boolean {
  return localStorage.getItem(CSRF_PLACE) !== null;
}

export function address(operation: Operation, path: Record<string, string> = {}, query: object = {}): string {
  const template = operation.slice(operation.indexOf(" ") + 1);
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name];
    if (value === undefined) throw new Error(`${operation} needs ${name}`);
    return encodeURIComponent(value);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `${filled}?${text}` : filled;
}

/** Asks, renews the session once if it has run out, and throws `ApiError` for what is refused. */
export async function call<O extends Operation>(
  operation: O,
  options: Options<O> = {},
): Promise<Operations[O]["reply"]> {
  const response = await ask(operation, options);
  if (response.status === 204) return undefined as Operations[O]["reply"];
  return (await response.json()) as Operations[O]["reply"];
}

/** The same for answers that are not JSON, such as exports. */
export async function download<O extends Operation>(operation: O, options: Options<O> = {}): Promise<Blob> {
  return (await ask(operation, options)).blob();
}

/** For paths that the description does not have yet. */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await checked(await renewing(() => send("GET", path, undefined, {}, signal), path));
  return (await response.json()) as T;
}

async function ask<O extends Operation>(operation: O, options: Options<O>): Promise<Response> {
  const method = operation.slice(0, operation.indexOf(" "));
  const url = address(operation, options.path as Record<string, string>, options.query as object);
  const once = () => send(method, url, options.body, options.headers ?? {}, options.signal);
  return checked(await renewing(once, url));
}

async function renewing(once: () => Promise<Response>, url: string): Promise<Response> {
  const response = await once();
  if (response.status !== 401 || url.startsWith("/api/v1/auth/login")) return response;
  // Another tab or a socket may have found out first, and have forgotten the code: this page has to hear of it all the same.
  if (mayBeSignedIn() && (await renew())) return once();
  for (const listener of signedOutListeners) listener();
  return response;
}

let renewal: Promise<boolean> | null = null;

/** A token that is used twice ends the session, so only one tab renews at a time. */
export function renew(): Promise<boolean> {
  renewal ??= (async () => {
    const before = localStorage.getItem(CSRF_PLACE);
    const ours = async () => {
      const response = await send("POST", "/api/v1/auth/refresh", {}, {});
      if (!response.ok) {
        if (localStorage.getItem(CSRF_PLACE) === before) rememberCsrf(null);
        return false;
      }
      const body = (await response.json()) as Schema<"SignedIn">;
      rememberCsrf(body.csrf_token);
      return true;
    };
    return "locks" in navigator ? navigator.locks.request("nimbus.renew", ours) : ours();
  })().finally(() => {
    renewal = null;
  });
  return renewal;
}

async function send(
  method: string,
  url: string,
  body: unknown,
  extra: Record<string, string>,
  signal?: AbortSignal,
): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", ...extra };
  const code = localStorage.getItem(CSRF_PLACE);
  if (method !== "GET" && code) headers[CSRF_HEADER] = code;
  if (body !== undefined) headers["content-type"] = "application/json";
  try {
    return await fetch(url, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "same-origin",
      // Whoever closes the tab right after a click has still clicked.
      keepalive: method !== "GET" && body !== undefined && JSON.stringify(body).length < SMALL_BYTES,
      signal: signal ?? null,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new OfflineError();
  }
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as Schema<"Body"> | null;
  const problem = body?.error;
  throw new ApiError(
    response.status,
    problem?.code ?? "UNKNOWN",
    problem?.message ?? `The server answered ${response.status}.`,
    problem?.reference ?? "",
    problem?.trace_id ?? "",
    problem?.details ?? [],
  );
}
