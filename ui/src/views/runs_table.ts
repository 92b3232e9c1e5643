// Which runs, in which order: no drawing here.
import { hasWords } from "../draw/search";
import type { RunRow } from "../types";

export interface Column {
  name: string;
  title: string;
  class?: string;
  falling?: boolean; // the first click sorts from large to small
  value: (run: RunRow) => number | string | null;
}

const SEVERITY = { error: 3, warning: 2, advice: 1 } as const;

export const COLUMNS: Column[] = [
  { name: "name", title: "Run", value: (run) => run.name || run.script || run.id },
  { name: "state", title: "State", value: (run) => run.state },
  { name: "cause", title: "Problem", falling: true, value: (run) => (run.worst ? SEVERITY[run.worst] : run.verdict === "ready" ? 0 : null) },
  { name: "steps", title: "Steps", class: "right", falling: true, value: (run) => run.steps },
  { name: "loss", title: "Last loss", class: "right", value: (run) => run.last_loss },
  { name: "metric", title: "Metrics", class: "right wide-only", falling: true, value: (run) => Object.values(run.metrics ?? {})[0] ?? null },
  { name: "duration", title: "Duration", class: "right wide-only", falling: true, value: (run) => run.duration },
  { name: "started", title: "Started", class: "wide-only", falling: true, value: (run) => run.started },
];

/** By one column, `-` for falling; what has no value comes last either way. */
export function sorted(runs: RunRow[], order: string): RunRow[] {
  const column = COLUMNS.find((c) => c.name === order.replace(/^-/, "")) ?? COLUMNS[COLUMNS.length - 1]!;
  const sign = order.startsWith("-") ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return sign * (typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : x - y);
  });
}

/** Every word must occur somewhere: in name, script, state, finding, or as `lr=0.1` in the settings. */
export function matches(run: RunRow, search: string): boolean {
  const settings = Object.entries(run.hparams ?? {}).map(([name, value]) => `${name}=${String(value)}`);
  const told = [run.id, run.name, run.script, run.command, run.state, run.error, run.root_cause?.check, run.root_cause?.message, run.worst];
  return hasWords([...told, ...settings].filter(Boolean).join("\n"), search);
}

/** Up to four settings in which the runs of the list differ. */
export function differing(run: RunRow, all: RunRow[]): [string, unknown][] {
  const mine = Object.entries(run.hparams ?? {});
  const differs = ([name, value]: [string, unknown]) => all.some((other) => other.hparams && name in other.hparams && other.hparams[name] !== value);
  return mine.filter(differs).slice(0, 4);
}
