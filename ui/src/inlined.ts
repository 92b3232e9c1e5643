// A report answers by itself: the requests of docs/api.md, from what was written into the file.
import type { StoredSeries } from "./answers";
import type { Query } from "./api";
import { hasWords } from "./draw/search";
import type { Axis, SeriesAnswer, SeriesPart, SignalList, SignalRow } from "./types";

export type Inlined = Record<string, unknown>;

export async function answerInlined<T>(stored: Inlined, path: string, query: Query): Promise<T> {
  const answer = find(stored, `api/v1/${path}`, query);
  if (answer === undefined) throw new Error("this report does not contain that: open the run with `clew ui`");
  return answer as T;
}

function find(stored: Inlined, path: string, query: Query): unknown {
  if (path.endsWith("/series")) return seriesOf(stored[path] as SeriesAnswer | undefined, query);
  if (path.endsWith("/signals")) return signalsOf(stored[path] as SignalList | undefined, query);
  if (path.endsWith("/layers")) return withParameters(stored, path, { stat: query["stat"] });
  if (path.endsWith("/histograms")) {
    const asked = { site: query["site"], stat: query["stat"] };
    return withParameters(stored, path, { ...asked, kind: query["kind"] }) ?? withParameters(stored, path, asked);
  }
  if (path.endsWith("/compare")) return withParameters(stored, path, { runs: query["runs"] });
  return stored[path];
}

/** The stored answer with these parameters; of those not given, the first that is there. */
function withParameters(stored: Inlined, path: string, query: Query): unknown {
  const wanted = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  if (wanted.length === 0 && path in stored) return stored[path];
  for (const key of Object.keys(stored)) {
    if (!key.startsWith(`${path}?`)) continue;
    const given = new URLSearchParams(key.slice(path.length + 1));
    if (wanted.every(([name, value]) => given.get(name) === String(value))) return stored[key];
  }
  return undefined;
}

export function signalsOf(all: SignalList | undefined, query: Query): SignalList | undefined {
  if (!all) return undefined;
  const search = String(query["search"] ?? "");
  const keys = query["keys"] === undefined ? null : new Set(String(query["keys"]).split(","));
  const fits = (row: SignalRow) => hasWords(`${row.signal} ${row.label} ${Object.values(row.site).join(" ")}`, search) && (!keys || keys.has(row.key));
  const found = all.signals.filter(fits);
  const groups = new Map<string, number>();
  for (const row of found) groups.set(row.group, (groups.get(row.group) ?? 0) + 1);
  const kept = query["group"] ? found.filter((row) => row.group === query["group"]) : found;
  const offset = Number(query["offset"] ?? 0);
  const limit = Number(query["limit"] ?? 200);
  return {
    total: kept.length,
    offset,
    groups: [...groups].map(([name, count]) => ({ name, count })),
    signals: kept.slice(offset, offset + limit),
  };
}

export function seriesOf(all: SeriesAnswer | undefined, query: Query): SeriesAnswer | undefined {
  if (!all) return undefined;
  const axis = (query["x"] ?? "step") as Axis;
  const number = (name: string) => (query[name] === undefined || query[name] === "" ? null : Number(query[name]));
  const from = number("from");
  const to = number("to");
  const byKey = new Map(all.series.map((series) => [series.key, series as StoredSeries]));
  const series = String(query["keys"] ?? "").split(",").filter(Boolean).map((key) => {
    const found = byKey.get(key);
    return found ? cutOut(found, axis, from, to) : ({ key, missing: "this series is not in the report" } as SeriesPart);
  });
  return { x: axis, from, to, series };
}

/** The part between two places of the axis, with one bucket more at either end: lines continue beyond the edge. */
function cutOut(series: StoredSeries, axis: Axis, from: number | null, to: number | null): SeriesPart {
  const x = (axis === "step" ? series.steps : axis === "wall" ? series.wall : series.epoch) ?? series.steps;
  const after = from === null ? 0 : x.findIndex((value) => value !== null && value >= from);
  const start = Math.max(0, (after < 0 ? x.length : after) - 1);
  const beyond = to === null ? -1 : x.findIndex((value) => value !== null && value > to);
  const end = beyond < 0 ? x.length : beyond + 1;
  const part = <T>(values: T[] | undefined): T[] | undefined => values?.slice(start, end);
  return {
    ...series,
    x: x.slice(start, end),
    steps: series.steps.slice(start, end),
    mean: series.mean.slice(start, end),
    min: part(series.min),
    max: part(series.max),
    count: part(series.count),
    bad: part(series.bad),
    marks: (series.marks ?? []).filter(([i]) => i >= start && i < end).map(([i, what]) => [i - start, what]),
  };
}
