// Findings that share a cause, gathered under it; the same folding as in the terminal.
import type { Finding } from "../types";

export interface Group {
  root: number; // places in the verdict's list
  effects: number[];
}

export function groupsOf(findings: Finding[]): Group[] {
  const byId = new Map<string, number>();
  findings.forEach((finding, i) => byId.has(finding.id) || byId.set(finding.id, i));
  const roots = findings.map((_, i) => rootOf(findings, i, byId));
  const groups = new Map<number, Group>();
  roots.forEach((root, i) => root === i && groups.set(i, { root: i, effects: [] }));
  roots.forEach((root, i) => root !== i && groups.get(root)?.effects.push(i));
  return [...groups.values()];
}

function rootOf(findings: Finding[], start: number, byId: Map<string, number>): number {
  const passed = new Set([findings[start]!.id]);
  let current = start;
  for (;;) {
    const cause = findings[current]!.because.map((id) => byId.get(id)).find((i) => i !== undefined);
    if (cause === undefined) return current;
    if (passed.has(findings[cause]!.id)) return start; // a circle has no root: each stands for itself
    passed.add(findings[cause]!.id);
    current = cause;
  }
}
