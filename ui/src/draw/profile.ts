// A recorded profile, made safe to draw: whatever the file contains, numbers are numbers and lists are lists.
import type { FlameFrame, Growth, LineCost, ModuleCostJson, OpCost, PartCost, ProcessMemory, ProfileJson, StepFlame, StepMemoryJson, Sync } from "../answers";
import type { Finding } from "../types";

/** JSON that should have these fields, but may have any others instead. */
type Raw<T> = { [K in keyof T]?: unknown };

/** Fields as they are read: an unknown number is null, an unknown text empty. */
type Known<T, K extends keyof T> = { [F in K]-?: NonNullable<T[F]> extends number ? number | null : NonNullable<T[F]> };

export type Part = Known<PartCost, "name" | "p95"> & { median: number; share: number };

/** What the parts are called; the others by their own names. */
export const PART_NAMES: Record<string, string> = { data: "data wait", rest: "everything else", clew: "Clew itself" };

export type ModuleTime = Known<ModuleCostJson, "module" | "class" | "calls" | "forward" | "backward" | "spread" | "self" | "roof" | "memory" | "flops"> & {
  total: number;
  rate: number | null; // FLOP a second
};

export type OpTime = Known<OpCost, "op" | "module" | "shapes" | "calls" | "forward" | "backward" | "roof"> & { total: number };

export type LineTime = Known<LineCost, "code" | "kind" | "self" | "total"> & { where: string };

export type SyncTime = Known<Sync, "op" | "code" | "calls" | "seconds"> & { where: string };

export type Process = Known<ProcessMemory, "role" | "pid" | "rss" | "pss" | "uss" | "slope" | "readings">;

export interface Profile {
  steps: [number, number] | null;
  detailed: number | null;
  median: number | null;
  p95: number | null;
  speed: number | null;
  unattributed: number | null;
  about: string;
  parts: Part[];
  modules: ModuleTime[];
  ops: OpTime[];
  lines: LineTime[];
  syncs: SyncTime[];
  flame: FlameFrame | null;
  python: FlameFrame | null;
  held: FlameFrame | null;
  peak: number | null;
  kinds: { name: string; size: number }[];
  timeline: [number, number][];
  processes: Process[];
  growth: string;
  notes: string[];
}

export function readProfile(raw: unknown): Profile {
  const data = row<ProfileJson>(raw);
  const memory = row<StepMemoryJson>(data.memory);
  const flame = row<StepFlame>(data.flame);
  return {
    steps: pair(data.steps),
    detailed: number(data.detailed),
    median: positive(data.step_median),
    p95: positive(data.step_p95),
    speed: positive(data.samples_per_second),
    unattributed: positive(data.unattributed),
    about: aboutOf(data),
    parts: rows(data.parts).map(partOf),
    modules: rows(data.modules).map(moduleOf),
    ops: rows(data.ops).map(opOf),
    lines: rows(data.lines).map(lineOf),
    syncs: rows(data.syncs).map(syncOf),
    flame: frame(flame.root ?? data.flame),
    python: frame(data.python),
    held: frame(memory.root),
    peak: positive(memory.peak),
    kinds: Object.entries(row<Record<string, number>>(memory.kinds)).flatMap(([name, size]) => (typeof size === "number" && size > 0 ? [{ name, size }] : [])).sort((a, b) => b.size - a.size),
    timeline: pairs(memory.timeline),
    processes: rows(memory.processes).map(processOf),
    growth: growthOf(row<Growth>(memory.growth)),
    notes: list(data.notes).filter((note): note is string => typeof note === "string"),
  };
}

/** The findings about costs, with their place in the verdict. */
export function adviceOf(findings: Finding[]): { finding: Finding; index: number }[] {
  return findings.map((finding, index) => ({ finding, index })).filter(({ finding }) => finding.id.startsWith("PERF"));
}

function partOf(data: Raw<PartCost>): Part {
  return { name: text(data.name), median: number(data.median) ?? 0, p95: number(data.p95), share: number(data.share) ?? 0 };
}

function moduleOf(data: Raw<ModuleCostJson>): ModuleTime {
  const [forward, backward, flops] = [number(data.forward), number(data.backward), number(data.flops)];
  const total = (forward ?? 0) + (backward ?? 0);
  return {
    module: text(data.module),
    class: text(data.class ?? data.type),
    calls: number(data.calls),
    total,
    forward,
    backward,
    spread: positive(data.spread),
    self: number(data.self),
    rate: flops && total > 0 ? flops / total : null,
    roof: number(data.roof),
    memory: positive(data.memory),
    flops: positive(flops),
  };
}

function opOf(data: Raw<OpCost>): OpTime {
  const [forward, backward] = [number(data.forward), number(data.backward)];
  return {
    op: text(data.op).replace(/^aten::/, ""),
    module: text(data.module),
    shapes: text(data.shapes),
    calls: number(data.calls),
    forward,
    backward,
    total: (forward ?? 0) + (backward ?? 0),
    roof: number(data.roof),
  };
}

function lineOf(data: Raw<LineCost>): LineTime {
  return { where: whereOf(data), code: text(data.code).trim() || text(data.function), kind: text(data.kind), self: number(data.self), total: number(data.total) };
}

function syncOf(data: Raw<Sync>): SyncTime {
  return { op: text(data.op), where: whereOf(data), code: text(data.code).trim(), calls: number(data.calls), seconds: number(data.seconds) };
}

function processOf(data: Raw<ProcessMemory>): Process {
  return {
    role: text(data.role),
    pid: number(data.pid),
    rss: number(data.rss),
    pss: number(data.pss),
    uss: number(data.uss),
    slope: number(data.slope) || null,
    readings: pairs(data.readings),
  };
}

function growthOf(data: Raw<Growth>): string {
  return (number(data.slope) ?? 0) > 0 ? text(data.owner) || "owner unknown" : "";
}

function aboutOf(data: Raw<ProfileJson>): string {
  const [threads, cores] = [number(data.threads), number(data.cores)];
  const parts = [text(data.device), threads !== null && cores !== null ? `${threads} of ${cores} threads` : ""];
  return parts.filter(Boolean).join(", ");
}

function whereOf(data: Raw<LineCost>): string {
  const line = number(data.line);
  const file = text(data.file);
  return file && line !== null ? `${file}:${line}` : file;
}

/** A tree of frames, without recursion: stacks may be deep. Null if it is none, or empty. */
export function frame(raw: unknown): FlameFrame | null {
  const top = frameAlone(raw);
  const waiting: { made: FlameFrame; from: Raw<FlameFrame> }[] = top ? [{ made: top, from: row<FlameFrame>(raw) }] : [];
  for (const { made, from } of waiting) {
    for (const child of rows<FlameFrame>(from.children)) {
      const inner = frameAlone(child);
      if (!inner) continue;
      made.children!.push(inner);
      waiting.push({ made: inner, from: child });
    }
  }
  return top && top.value > 0 ? top : null;
}

function frameAlone(raw: unknown): FlameFrame | null {
  const data = row<FlameFrame & { own: number }>(raw);
  const value = number(data.value);
  if (value === null || typeof data.name !== "string") return null;
  const made: FlameFrame = { name: data.name, value, file: text(data.file) || null, line: number(data.line), module: text(data.module) || null, children: [] };
  const own = number(data.own); // where frames too small to see were left out, the difference does not show it
  return own === null ? made : { ...made, self: own };
}

function row<T>(value: unknown): Raw<T> {
  return isRow<T>(value) ? value : {};
}

function isRow<T>(value: unknown): value is Raw<T> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function rows<T>(value: unknown): Raw<T>[] {
  return list(value).filter((one): one is Raw<T> => isRow<T>(one));
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function positive(value: unknown): number | null {
  const found = number(value);
  return found !== null && found > 0 ? found : null;
}

function pair(value: unknown): [number, number] | null {
  const [a, b] = list(value).map(number);
  return a !== undefined && a !== null && b !== undefined && b !== null ? [a, b] : null;
}

function pairs(value: unknown): [number, number][] {
  return list(value).map(pair).filter((one): one is [number, number] => one !== null);
}
