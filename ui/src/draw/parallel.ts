// Parallel coordinates: an axis for each setting and result, a line for each run, ranges that keep some of them.

import { digits } from "../format";

export type Value = number | string | boolean | null;

export interface Axis {
  name: string;
  kind: "number" | "log" | "word";
  low: number; // in places: of a word axis 0 … words - 1
  high: number;
  words: string[];
}

export type Brush = [number, number]; // both in 0 … 1 from below
export type Brushes = Readonly<Record<string, Brush>>;

/** The axis over what all runs have there; numbers that span decades get a log one. */
export function axisOver(name: string, values: Value[]): Axis {
  const given = values.filter((v): v is number | string | boolean => v !== null && v !== undefined);
  if (given.length && given.every((v) => typeof v === "number" && Number.isFinite(v))) {
    const numbers = given as number[];
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    return { name, kind: low > 0 && high / low >= 30 ? "log" : "number", low, high, words: [] };
  }
  const words = [...new Set(given.map(String))].sort();
  return { name, kind: "word", low: 0, high: Math.max(words.length - 1, 0), words };
}

/** Where a value is on its axis, 0 at the bottom; null if the run has none. */
export function placeOn(axis: Axis, value: Value | undefined): number | null {
  if (value === null || value === undefined) return null;
  if (axis.kind === "word") {
    const at = axis.words.indexOf(String(value));
    return at < 0 ? null : axis.words.length === 1 ? 0.5 : at / axis.high;
  }
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  if (axis.low === axis.high) return 0.5;
  if (axis.kind === "log") return Math.log(value / axis.low) / Math.log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

/** The number at a place, for the label of a brush. */
export function valueAt(axis: Axis, place: number): number | string {
  if (axis.kind === "word") return axis.words[Math.round(place * axis.high)] ?? "";
  if (axis.kind === "log") return axis.low * (axis.high / axis.low) ** place;
  return axis.low + place * (axis.high - axis.low);
}

/** As a cell or a label shows it. */
export function valueText(value: Value | undefined): string {
  if (value === null || value === undefined) return "\u2013";
  return typeof value === "number" ? digits(value) : String(value);
}

/** Which runs pass all brushes. A run without a value on a brushed axis does not. */
export function passing(axes: Axis[], rows: Record<string, Value>[], brushes: Brushes): boolean[] {
  const used = axes.filter((axis) => brushes[axis.name]);
  return rows.map((row) =>
    used.every((axis) => {
      const place = placeOn(axis, row[axis.name]);
      const [low, high] = brushes[axis.name]!;
      return place !== null && place >= low - 1e-9 && place <= high + 1e-9;
    }),
  );
}

/** `lr:0.1-0.5,depth:0-1` in the address. */
export function writeBrushes(brushes: Brushes): string {
  return Object.entries(brushes).map(([name, [low, high]]) => `${encodeURIComponent(name)}:${low.toFixed(3)}-${high.toFixed(3)}`).join(",");
}

export function readBrushes(text: string): Brushes {
  const found: Record<string, Brush> = {};
  for (const part of text.split(",")) {
    const match = /^([^:]+):([\d.]+)-([\d.]+)$/.exec(part);
    if (!match) continue;
    const [low, high] = [Number(match[2]), Number(match[3])];
    if (low <= high) found[decode(match[1]!)] = [low, high];
  }
  return found;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
