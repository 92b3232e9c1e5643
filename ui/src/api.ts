// The only door to the data: the HTTP API (docs/api.md), or, in a report, what was inlined into the file.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { answerInlined, type Inlined } from "./inlined";

export type Query = Record<string, string | number | undefined>;

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A report carries its data; a served page has none. */
export const inlined: Inlined | null = readInlined();
export const isReport = inlined !== null;

function readInlined(): Inlined | null {
  const holder = typeof document === "undefined" ? null : document.getElementById("clew-data");
  return holder?.textContent ? (JSON.parse(holder.textContent) as Inlined) : null;
}

/** Where the API is, relative to the page: works under any path prefix. */
function address(path: string): string {
  return new URL(`api/v1/${path}`, document.baseURI.replace(/[?#].*$/, "")).toString();
}

/** `runs/abc/series` and its query, in one canonical spelling. */
export function request(path: string, query: Query = {}): string {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = kept.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join("&");
  return text ? `${path}?${text}` : path;
}

/** The path of a run's resource; the id is untrusted text. */
export function ofRun(id: string, rest = ""): string {
  return `runs/${encodeURIComponent(id)}${rest ? `/${rest}` : ""}`;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  if (inlined) return answerInlined<T>(inlined, path, query);
  return send<T>("GET", request(path, query), undefined, signal);
}

export async function put<T>(path: string, body: unknown): Promise<T> {
  if (inlined) throw new ApiError(405, "a report can't be changed");
  return send<T>("PUT", path, JSON.stringify(body));
}

async function send<T>(method: string, path: string, body?: string, signal?: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
    answer = await fetch(address(path), { method, body, headers, signal, credentials: "same-origin" });
  } catch (e) {
    if (e instanceof DOMException && e.name === "AbortError") throw e;
    throw new ApiError(0, "the server does not respond: is `clew ui` still running?");
  }
  if (!answer.ok) throw new ApiError(answer.status, await reason(answer));
  return (await answer.json()) as T;
}

async function reason(answer: Response): Promise<string> {
  if (answer.status === 401 || answer.status === 403)
    return "requests without a valid token are refused: open the address that `clew ui` printed";
  try {
    const body = (await answer.json()) as { error?: { message?: unknown } };
    if (typeof body.error?.message === "string") return body.error.message;
  } catch {
    // not JSON: the status says enough
  }
  return `the server answered ${answer.status} ${answer.statusText}`.trim();
}

/** What a view shows: data as soon as there is any, even while newer data is loading. */
export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  loading: boolean;
  fresh: boolean; // `data` is the answer to the current request
  reload: () => void;
}

const LATER = 40; // milliseconds by which a less urgent request is delayed

/**
 * Request, and request again when path, query or `version` change. `path` null: nothing to request yet.
 * `later`: other requests go first, since the server answers one after the other.
 */
export function useApi<T>(path: string | null, query: Query = {}, version: number | string = 0, later = false): Loaded<T> {
  const wanted = path === null ? null : request(path, query);
  const [again, setAgain] = useState(0);
  const [state, set] = useState<{ of: string | null; data?: T; error?: ApiError; loading: boolean }>({ of: null, loading: true });
  const latest = useRef(query);
  latest.current = query;
  const flight = useRef<{ of: string | null; stop: AbortController; stale: boolean } | null>(null);
  // Before the page is painted: so the request is already under way.
  useLayoutEffect(() => {
    const old = flight.current;
    // A live run may change faster than a slow connection answers: wait for the answer, then request once more.
    if (old && old.of === wanted) return void (old.stale = true);
    old?.stop.abort();
    flight.current = null;
    if (path === null) return;
    const stop = new AbortController();
    const own = (flight.current = { of: wanted, stop, stale: false });
    set((old) => ({ ...old, loading: true }));
    const landed = () => {
      if (flight.current !== own) return;
      flight.current = null;
      if (own.stale) setAgain((n) => n + 1);
    };
    const ask = () => get<T>(path, latest.current, stop.signal);
    (later && !isReport ? new Promise((go) => setTimeout(go, LATER)).then(ask) : ask())
      .then(
        (data) => stop.signal.aborted || set({ of: wanted, data, loading: false }),
        (e: unknown) => stop.signal.aborted || set((old) => ({ ...(old.of === wanted ? old : {}), of: wanted, error: asError(e), loading: false })),
      )
      .finally(landed);
  }, [wanted, version, again]);
  useEffect(() => () => flight.current?.stop.abort(), []);
  return { data: state.data, error: state.error, loading: state.loading, fresh: state.of === wanted, reload: () => setAgain((n) => n + 1) };
}

export function asError(e: unknown): ApiError {
  return e instanceof ApiError ? e : new ApiError(0, e instanceof Error ? e.message : String(e));
}

/** Call back for every event of the stream, by its name; returns how to stop. Does nothing in a report. */
export function listen(path: string, heard: (event: string, data: unknown) => void, state?: (connected: boolean) => void): () => void {
  if (inlined) return () => undefined;
  const source = new EventSource(address(path), { withCredentials: true });
  source.onopen = () => state?.(true);
  source.onerror = () => state?.(false); // the browser connects again by itself
  for (const name of ["runs", "run", "gone"])
    source.addEventListener(name, (event: MessageEvent<string>) => {
      if (name === "gone") source.close(); // nothing will come any more
      heard(name, parsed(event.data));
    });
  return () => source.close();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a broken message counts as none
  }
}
