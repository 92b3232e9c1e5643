// Runs side by side as tables: what they are called, what differs, how they are sorted and placed.
import { digits } from "../format";
import type { CompareAnswer, MetricRow, RunRow } from "../answers";
import type { Value } from "./parallel";
import { sortedBy } from "./sorting";

export type Compared = CompareAnswer;
export type Metric = MetricRow;

/** How to call a run among these: by its name, and by the end of its id where that is not enough. */
export function namesOf(runs: Pick<RunRow, "id" | "name">[]): string[] {
  const count = new Map<string, number>();
  for (const run of runs) count.set(run.name ?? run.id, (count.get(run.name ?? run.id) ?? 0) + 1);
  return runs.map((run) => {
    const name = run.name ?? run.id;
    return (count.get(name) ?? 0) > 1 ? `${name} ${run.id.split("-").pop() ?? run.id}` : name;
  });
}

/** Settings that differ and results, by run: the axes of the parallel coordinates and the columns of the table. */
export function tableOf(data: Compared): { columns: string[]; results: Set<string>; rows: Record<string, Value>[] } {
  const settings = data.config.filter((c) => !c.same);
  const shown = data.metrics.filter((m) => m.values.some((v) => typeof v?.last === "number"));
  const results = new Set(shown.map((m) => m.name));
  const columns = [...settings.map((c) => c.name), ...shown.map((m) => m.name).filter((n) => !settings.some((c) => c.name === n))];
  const rows = data.runs.map((_, i) => {
    const row: Record<string, Value> = {};
    for (const m of shown) row[m.name] = m.values[i]?.last ?? null;
    for (const c of settings) row[c.name] = plain(c.values[i]);
    return row;
  });
  return { columns, results, rows };
}

export function plain(value: unknown): Value {
  if (value === null || value === undefined) return null;
  return typeof value === "number" || typeof value === "string" || typeof value === "boolean" ? value : JSON.stringify(value);
}

/** The order of the runs by a column; those without a value come last in either direction. */
export function sortedRuns(rows: Record<string, Value>[], by: string): number[] {
  const column = by.replace(/^-/, "");
  const order = rows.map((row, run) => ({ run, value: row[column] ?? null }));
  return sortedBy(order, "value", by.startsWith("-")).map(({ run }) => run);
}

const FIRST = 4; // charts shown by default

/** The charts with which runs are compared, in the server's order; the others are shown on request. */
export function firstSignals(signals: Compared["signals"], most = FIRST): Compared["signals"] {
  const place = (s: { place: number | null }) => s.place ?? Infinity;
  return [...signals].sort((a, b) => place(a) - place(b)).filter((s) => s.place !== null).slice(0, most);
}

/** A number with its noise; for a single point the noise is unknown. */
export function noisy(cell: { mean_tail: number | null; std_tail: number | null; tail: number }): string {
  return cell.tail > 1 ? `${digits(cell.mean_tail)} ± ${digits(cell.std_tail)}` : digits(cell.mean_tail);
}

/** Where each run is between the lowest and the highest, with its noise as a bar. */
export function placesOf(metric: Metric): ({ at: number; from: number; to: number } | null)[] {
  const ends = metric.values.flatMap((v) => (v && v.mean_tail !== null ? [v.mean_tail - (v.std_tail ?? 0), v.mean_tail + (v.std_tail ?? 0)] : []));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const place = (value: number) => (high > low ? (value - low) / (high - low) : 0.5);
  return metric.values.map((v) => {
    if (!v || v.mean_tail === null) return null;
    const noise = v.std_tail ?? 0;
    return { at: place(v.mean_tail), from: place(v.mean_tail - noise), to: place(v.mean_tail + noise) };
  });
}
