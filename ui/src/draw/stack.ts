// Parts of a step, stacked: what each took, at the same steps.
import type { SeriesPart } from "../types";

export interface Stack {
  x: number[]; // steps
  parts: { name: string; values: number[] }[]; // of each part at each step; 0 where it is not known
  total: number[];
}

/** On the steps of the part that has most of them; the others are read at the nearest step before. */
export function stacked(series: { name: string; part: SeriesPart | undefined }[]): Stack {
  const there = series.filter((s) => s.part && s.part.steps.length > 0);
  const longest = there.reduce<number[]>((best, s) => (s.part!.steps.length > best.length ? s.part!.steps : best), []);
  const parts = there.map(({ name, part }) => ({ name, values: sampled(part!, longest) }));
  const total = longest.map((_, i) => parts.reduce((sum, p) => sum + p.values[i]!, 0));
  return { x: longest, parts, total };
}

function sampled(part: SeriesPart, steps: number[]): number[] {
  let at = 0;
  return steps.map((step) => {
    while (at + 1 < part.steps.length && part.steps[at + 1]! <= step) at += 1;
    const value = part.mean[at];
    return typeof value === "number" && Number.isFinite(value) ? Math.max(value, 0) : 0;
  });
}

/** What each part took of all the time, as a share. */
export function shares(stack: Stack): { name: string; share: number; mean: number }[] {
  const all = stack.total.reduce((a, b) => a + b, 0);
  return stack.parts.map(({ name, values }) => {
    const sum = values.reduce((a, b) => a + b, 0);
    return { name, share: all > 0 ? sum / all : 0, mean: values.length ? sum / values.length : 0 };
  });
}

/** A top for the axis that a few slow steps (such as the first) do not determine; they are cut off there. */
export function robustTop(values: number[]): number {
  if (!values.length) return 1;
  const sorted = [...values].sort((a, b) => a - b);
  const high = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.98))]!;
  const most = sorted[sorted.length - 1]!;
  return (most > 3 * high && high > 0 ? high * 1.4 : most) || 1;
}
