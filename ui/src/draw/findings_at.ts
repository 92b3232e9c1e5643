// Which findings are about which module: every view marks them where it draws the module.
import type { RunDetail, Severity } from "../types";

export interface FindingHere {
  index: number; // in the verdict
  severity: Severity;
  message: string;
  check: string;
  step: number | null;
}

const ORDER: Severity[] = ["error", "warning", "advice"];

/** By module path; evidence counts too, as it names the layers that a finding was seen at. */
export function findingsByModule(run: Pick<RunDetail, "verdict" | "links">): Map<string, FindingHere[]> {
  const found = new Map<string, FindingHere[]>();
  (run.verdict?.findings ?? []).forEach((finding, index) => {
    const here = { index, severity: finding.severity, message: finding.message, check: finding.check, step: finding.step };
    const own = run.links[index]?.module ?? finding.site.module;
    const modules = new Set([own, ...finding.evidence.map((e) => e.site?.module)]);
    for (const module of modules) {
      if (module === null || module === undefined) continue;
      found.set(module, [...(found.get(module) ?? []), here]);
    }
  });
  return found;
}

export function worst(findings: readonly { severity: Severity }[]): Severity | null {
  return ORDER.find((severity) => findings.some((f) => f.severity === severity)) ?? null;
}
