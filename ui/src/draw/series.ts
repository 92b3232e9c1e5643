// From the API's series to what a chart draws: no drawing here.
import type { SeriesPart } from "../types";

export type Values = (number | null | undefined)[];

/** Per series four lines over one shared x: minimum, maximum, the values themselves, and those smoothed. */
export interface Table {
  x: number[];
  lines: { low: Values; high: Values; raw: Values; smooth: Values }[];
  hidden: number; // values that a logarithmic axis can't show
}

/**
 * Each value averaged with its neighbours, the nearer the more; no lag, and a gap stays a gap.
 * `strength` (0–100) is how far a neighbour counts, relative to what is on screen.
 */
export function smoothed(values: Values, strength: number): Values {
  const reach = ((strength / 100) ** 2 * values.length) / 8;
  if (reach <= 0) return values;
  const keep = Math.exp(-1 / reach);
  const sums = new Float64Array(values.length);
  const weights = new Float64Array(values.length);
  const pass = (start: number, end: number, by: number) => {
    let sum = 0;
    let weight = 0;
    for (let i = start; i !== end; i += by) {
      const value = values[i];
      sums[i]! += sum * keep; // without the value itself, which is added once below
      weights[i]! += weight * keep;
      const there = typeof value === "number";
      sum = sum * keep + (there ? value : 0);
      weight = weight * keep + (there ? 1 : 0);
    }
  };
  pass(0, values.length, 1);
  pass(values.length - 1, -1, -1);
  return values.map((value, i) => {
    if (typeof value !== "number") return value;
    const mean = (sums[i]! + value) / (weights[i]! + 1);
    return Math.abs(mean - value) <= 1e-9 * Math.abs(value) ? value : mean; // a level line must not flicker by rounding
  });
}

/** Several series, each with its own x, on one shared axis: `undefined` where a series has no point of its own. */
export function tabled(parts: SeriesPart[], strength: number, log: boolean): Table {
  const x = sharedX(parts);
  const place = new Map(x.map((value, i) => [value, i]));
  let hidden = 0;
  const lines = parts.map((part) => {
    const drawable = (value: number | null | undefined) => {
      if (value === null || value === undefined || (log && value <= 0)) {
        if (typeof value === "number") hidden += 1;
        return null;
      }
      return value;
    };
    const raw = part.mean.map(drawable);
    const low = (part.min ?? []).map((value, i) => (log && value !== null && value <= 0 ? raw[i]! : value));
    const high = part.max ?? [];
    const spread = (values: Values) => (parts.length === 1 ? values : spreadOut(values, part, place, x.length));
    return { low: spread(low), high: spread(high.map((v, i) => (raw[i] === null && log ? null : v))), raw: spread(raw), smooth: spread(smoothed(raw, strength)) };
  });
  return { x, lines, hidden };
}

function sharedX(parts: SeriesPart[]): number[] {
  if (parts.length === 1) return parts[0]!.x.map((value, i) => value ?? i);
  const all = new Set<number>();
  for (const part of parts) for (const value of part.x) if (value !== null) all.add(value);
  return [...all].sort((a, b) => a - b);
}

function spreadOut(values: Values, part: SeriesPart, place: Map<number, number>, length: number): Values {
  if (values.length === 0) return values;
  const result: Values = new Array<number | null | undefined>(length).fill(undefined);
  part.x.forEach((at, i) => {
    const where = at === null ? undefined : place.get(at);
    if (where !== undefined) result[where] = values[i];
  });
  return result;
}

/** The place of the largest entry that is not beyond `wanted`; -1 before the first. */
export function lastUpTo(sorted: ArrayLike<number | null>, wanted: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? -Infinity) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function nearest(sorted: ArrayLike<number | null>, wanted: number): number {
  const left = lastUpTo(sorted, wanted);
  if (left < 0) return sorted.length ? 0 : -1;
  if (left + 1 >= sorted.length) return left;
  return wanted - (sorted[left] ?? 0) <= (sorted[left + 1] ?? Infinity) - wanted ? left : left + 1;
}

/** Where a step lies on the axis that the series is drawn over; between two points in proportion. */
export function placeOfStep(part: SeriesPart, step: number): number | null {
  const i = lastUpTo(part.steps, step);
  if (part.steps.length === 0) return null;
  if (i < 0) return part.steps[0]! - step > spacing(part) ? null : (part.x[0] ?? null);
  const [x, s] = [part.x[i] ?? null, part.steps[i]!];
  if (i + 1 >= part.steps.length || x === null) return step - s > spacing(part) ? null : x;
  const next = part.x[i + 1];
  const share = (step - s) / (part.steps[i + 1]! - s);
  return next === null || next === undefined ? x : x + share * (next - x);
}

function spacing(part: SeriesPart): number {
  const count = part.steps.length;
  return count < 2 ? 1 : Math.max(1, (2 * (part.steps[count - 1]! - part.steps[0]!)) / (count - 1));
}

/** Points whose value is not a number: where, and what is known of them. */
export function badPlaces(part: SeriesPart): { x: number; what: string }[] {
  const named = new Map((part.marks ?? []).map(([i, what]) => [i, what]));
  const found: { x: number; what: string }[] = [];
  part.x.forEach((x, i) => {
    const count = part.bad?.[i] ?? 0;
    if (x !== null && (count || named.has(i))) found.push({ x, what: named.get(i) ?? `${count} non-finite` });
  });
  return found;
}

/** The largest value, unless a few are far above all others: then the largest of those others. */
export function usualTop(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const most = sorted[sorted.length - 1] ?? -Infinity;
  const usual = sorted[Math.floor((sorted.length - 1) * 0.97)] ?? most;
  return sorted.length >= 40 && usual > 0 && most > 4 * usual ? usual * 1.5 : most;
}
