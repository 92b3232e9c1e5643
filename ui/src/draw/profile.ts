// A recorded profile, made safe to draw: whatever the file contains, numbers are numbers and lists are lists.
import type { Finding } from "../types";
import type { Frame } from "./flame";

export interface Part {
  name: string;
  median: number;
  p95: number | null;
  share: number;
}

/** What the parts are called; the others by their own names. */
export const PART_NAMES: Record<string, string> = { data: "data wait", rest: "everything else", clew: "Clew itself" };

export interface ModuleTime {
  module: string;
  class: string;
  calls: number | null;
  total: number;
  forward: number | null;
  backward: number | null;
  spread: number | null;
  self: number | null;
  rate: number | null; // FLOP a second
  roof: number | null; // share of the machine's best
  memory: number | null;
  flops: number | null;
}

export interface OpTime {
  op: string;
  module: string;
  shapes: string;
  calls: number | null;
  forward: number | null;
  backward: number | null;
  total: number;
  roof: number | null;
}

export interface LineTime {
  where: string;
  code: string;
  kind: string;
  self: number | null;
  total: number | null;
}

export interface SyncTime {
  op: string;
  where: string;
  code: string;
  calls: number | null;
  seconds: number | null;
}

export interface Process {
  role: string;
  pid: number | null;
  rss: number | null;
  pss: number | null;
  uss: number | null;
  slope: number | null;
  readings: [number, number][];
}

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
  flame: Frame | null;
  python: Frame | null;
  held: Frame | null;
  peak: number | null;
  kinds: { name: string; size: number }[];
  timeline: [number, number][];
  processes: Process[];
  growth: string;
  notes: string[];
}

type Row = Record<string, unknown>;

export function readProfile(raw: unknown): Profile {
  const data = row(raw);
  const memory = row(data["memory"]);
  const flame = row(data["flame"]);
  return {
    steps: pair(data["steps"]),
    detailed: number(data["detailed"]),
    median: positive(data["step_median"]),
    p95: positive(data["step_p95"]),
    speed: positive(data["samples_per_second"]),
    unattributed: positive(data["unattributed"]),
    about: aboutOf(data),
    parts: rows(data["parts"]).map(partOf),
    modules: rows(data["modules"]).map(moduleOf),
    ops: rows(data["ops"]).map(opOf),
    lines: rows(data["lines"]).map(lineOf),
    syncs: rows(data["syncs"]).map(syncOf),
    flame: frame(flame["root"] ?? data["flame"]),
    python: frame(data["python"]),
    held: frame(memory["root"]),
    peak: positive(memory["peak"]),
    kinds: Object.entries(row(memory["kinds"])).flatMap(([name, size]) => (typeof size === "number" && size > 0 ? [{ name, size }] : [])).sort((a, b) => b.size - a.size),
    timeline: pairs(memory["timeline"]),
    processes: rows(memory["processes"]).map(processOf),
    growth: growthOf(row(memory["growth"])),
    notes: list(data["notes"]).filter((note): note is string => typeof note === "string"),
  };
}

/** The findings about costs, with their place in the verdict. */
export function adviceOf(findings: Finding[]): { finding: Finding; index: number }[] {
  return findings.map((finding, index) => ({ finding, index })).filter(({ finding }) => finding.id.startsWith("PERF"));
}

function partOf(data: Row): Part {
  return { name: text(data["name"]), median: number(data["median"]) ?? 0, p95: number(data["p95"]), share: number(data["share"]) ?? 0 };
}

function moduleOf(data: Row): ModuleTime {
  const [forward, backward, flops] = [number(data["forward"]), number(data["backward"]), number(data["flops"])];
  const total = (forward ?? 0) + (backward ?? 0);
  return {
    module: text(data["module"]),
    class: text(data["class"] ?? data["type"]),
    calls: number(data["calls"]),
    total,
    forward,
    backward,
    spread: positive(data["spread"]),
    self: number(data["self"]),
    rate: flops && total > 0 ? flops / total : null,
    roof: number(data["roof"]),
    memory: positive(data["memory"]),
    flops: positive(flops),
  };
}

function opOf(data: Row): OpTime {
  const [forward, backward] = [number(data["forward"]), number(data["backward"])];
  return {
    op: text(data["op"]).replace(/^aten::/, ""),
    module: text(data["module"]),
    shapes: text(data["shapes"]),
    calls: number(data["calls"]),
    forward,
    backward,
    total: (forward ?? 0) + (backward ?? 0),
    roof: number(data["roof"]),
  };
}

function lineOf(data: Row): LineTime {
  return { where: whereOf(data), code: text(data["code"]).trim() || text(data["function"]), kind: text(data["kind"]), self: number(data["self"]), total: number(data["total"]) };
}

function syncOf(data: Row): SyncTime {
  return { op: text(data["op"]), where: whereOf(data), code: text(data["code"]).trim(), calls: number(data["calls"]), seconds: number(data["seconds"]) };
}

function processOf(data: Row): Process {
  return {
    role: text(data["role"]),
    pid: number(data["pid"]),
    rss: number(data["rss"]),
    pss: number(data["pss"]),
    uss: number(data["uss"]),
    slope: number(data["slope"]) || null,
    readings: pairs(data["readings"]),
  };
}

function growthOf(data: Row): string {
  return (number(data["slope"]) ?? 0) > 0 ? text(data["owner"]) || "owner unknown" : "";
}

function aboutOf(data: Row): string {
  const [threads, cores] = [number(data["threads"]), number(data["cores"])];
  const parts = [text(data["device"]), threads !== null && cores !== null ? `${threads} of ${cores} threads` : ""];
  return parts.filter(Boolean).join(", ");
}

function whereOf(data: Row): string {
  const line = number(data["line"]);
  const file = text(data["file"]);
  return file && line !== null ? `${file}:${line}` : file;
}

/** A tree of frames, without recursion: stacks may be deep. Null if it is none, or empty. */
export function frame(raw: unknown): Frame | null {
  const top = frameAlone(raw);
  const waiting: { made: Frame; from: Row }[] = top ? [{ made: top, from: row(raw) }] : [];
  for (const { made, from } of waiting) {
    for (const child of rows(from["children"])) {
      const inner = frameAlone(child);
      if (!inner) continue;
      made.children!.push(inner);
      waiting.push({ made: inner, from: child });
    }
  }
  return top && top.value > 0 ? top : null;
}

function frameAlone(raw: unknown): Frame | null {
  const data = row(raw);
  const value = number(data["value"]);
  if (value === null || typeof data["name"] !== "string") return null;
  const made: Frame = { name: data["name"], value, file: text(data["file"]) || null, line: number(data["line"]), module: text(data["module"]) || null, children: [] };
  const own = number(data["own"]); // where frames too small to see were left out, what is left does not tell it
  return own === null ? made : { ...made, self: own };
}

function row(value: unknown): Row {
  return isRow(value) ? value : {};
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function rows(value: unknown): Row[] {
  return list(value).filter(isRow);
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
