// The URL is the state: everything a person chose is in the part after '#', so that an address is a view.
//   #/                                   the runs
//   #/run/<id>/<tab>?key=value           one run
//   #/compare?runs=a,b                   several
import { useEffect, useState } from "preact/hooks";

export const TABS = ["verdict", "charts", "layers", "graph", "profile", "data"] as const;
export type Tab = (typeof TABS)[number];
export type Params = Readonly<Record<string, string>>;
export type Place =
  | { at: "runs"; params: Params }
  | { at: "run"; run: string; tab: Tab; params: Params }
  | { at: "compare"; params: Params };

export function parse(hash: string): Place {
  const text = hash.replace(/^#\/?/, "");
  const cut = text.indexOf("?");
  const path = cut < 0 ? text : text.slice(0, cut);
  const params = Object.fromEntries(new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1)));
  const [at, id, tab] = path.split("/").map(decode);
  if (at === "run" && id) return { at: "run", run: id, tab: TABS.find((t) => t === tab) ?? "verdict", params };
  if (at === "compare") return { at: "compare", params };
  return { at: "runs", params };
}

export function format(place: Place): string {
  const path = place.at === "run" ? `run/${encodeURIComponent(place.run)}/${place.tab}` : place.at === "compare" ? "compare" : "";
  const kept = Object.entries(place.params).filter(([, value]) => value !== "");
  const query = new URLSearchParams(kept).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // an address typed by hand
  }
}

/** The address of a tab of a run, for links. */
export function hrefTo(run: string, tab: Tab, params: Params = {}): string {
  return format({ at: "run", run, tab, params });
}

const listeners = new Set<(place: Place) => void>();
let kept: string | null = null; // the place, where the address may not be changed: in a frame of a notebook

function address(): string {
  return kept ?? window.location.hash;
}

export function here(): Place {
  return parse(address());
}

export function go(place: Place, options: { replace?: boolean } = {}): void {
  const hash = format(place);
  if (hash === address()) return;
  try {
    if (options.replace) window.history.replaceState(null, "", hash);
    else window.history.pushState(null, "", hash);
  } catch {
    kept = hash;
  }
  tell();
}

/** Change some parameters of the current place; an empty string removes one. */
export function setParams(changes: Record<string, string>, options: { replace?: boolean } = { replace: true }): void {
  const place = here();
  go({ ...place, params: { ...place.params, ...changes } }, options);
}

function tell(): void {
  const place = here();
  for (const listener of [...listeners]) listener(place);
}

export function listenToAddress(): void {
  window.addEventListener("hashchange", tell);
  window.addEventListener("popstate", tell);
}

export function usePlace(): Place {
  const [place, set] = useState(here);
  useEffect(() => {
    listeners.add(set);
    return () => void listeners.delete(set);
  }, []);
  return place;
}

/** One parameter of the address, with what it is when absent; the setter keeps the default out of the address. */
export function useParam(name: string, fallback = ""): [string, (value: string) => void] {
  const place = usePlace();
  return [place.params[name] ?? fallback, (value) => setParams({ [name]: value === fallback ? "" : value })];
}
