// From values to colours. Magnitudes in viridis, signed values from blue over grey to orange: both can be
// told apart without red and green, and both darken and lighten evenly.
import type { ScaleWord } from "../answers";

export type Rgb = readonly [number, number, number];

const VIRIDIS: Rgb[] = [
  [68, 1, 84], [72, 36, 117], [65, 68, 135], [53, 95, 141], [42, 120, 142], [33, 145, 140],
  [34, 168, 132], [68, 191, 112], [122, 209, 81], [189, 223, 38], [253, 231, 37],
];
const SIGNED: Rgb[] = [
  [5, 48, 97], [33, 102, 172], [67, 147, 195], [146, 197, 222], [224, 228, 232],
  [248, 200, 150], [236, 140, 60], [193, 92, 16], [120, 50, 5],
];

function blend(stops: Rgb[], t: number): Rgb {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const [a, b, part] = [stops[low]!, stops[low + 1]!, at - low];
  const mix = (k: 0 | 1 | 2) => Math.round(a[k] + (b[k] - a[k]) * part);
  return [mix(0), mix(1), mix(2)];
}

function table(stops: Rgb[]): Rgb[] {
  return Array.from({ length: 256 }, (_, i) => blend(stops, i / 255));
}

const TABLES = { magnitude: table(VIRIDIS), signed: table(SIGNED) };

/** A colour scale over values: where a value is between the ends, and in which colour. */
export interface Scale {
  kind: ScaleWord;
  low: number; // the value at the dark end
  high: number;
  place: (value: number) => number; // 0 … 1, clipped; NaN for values that have no place
  rgb: (value: number) => Rgb | null;
}

export function rgbAt(kind: ScaleWord, t: number): Rgb {
  const colours = kind === "diverging" ? TABLES.signed : TABLES.magnitude;
  return colours[Math.round(Math.min(Math.max(t, 0), 1) * 255)]!;
}

/** A colour of the theme, `#rrggbb`. */
export function fromHex(hex: string): Rgb {
  const number = Number.parseInt(hex.replace("#", ""), 16) || 0;
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

export function css(rgb: Rgb): string {
  return `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]})`;
}

/** Black or white, whichever is easier to read on that colour. */
export function inkOn(rgb: Rgb): string {
  return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? "#16181b" : "#ffffff";
}

/** The scale over these values. A log scale spans at most `decades`: below, everything is equally tiny. */
export function scaleOver(kind: ScaleWord, values: Iterable<number | null>, decades = 12): Scale {
  const [low, high] = kind === "share" ? [0, 1] : ends(kind, values, decades);
  const place = placing(kind, low, high);
  const rgb = (value: number) => {
    const t = place(value);
    return Number.isNaN(t) ? null : rgbAt(kind, t);
  };
  return { kind, low, high, place, rgb };
}

function placing(kind: ScaleWord, low: number, high: number): (value: number) => number {
  const clip = (t: number) => Math.min(Math.max(t, 0), 1);
  if (kind === "log") {
    const [from, span] = [Math.log10(low), Math.log10(high) - Math.log10(low) || 1];
    // Zero (or less: rounding) has a place too, the lowest: a gradient that vanished entirely.
    return (value) => (Number.isFinite(value) ? (value <= 0 ? 0 : clip((Math.log10(value) - from) / span)) : NaN);
  }
  const span = high - low || 1;
  return (value) => (Number.isFinite(value) ? clip((value - low) / span) : NaN);
}

function ends(kind: ScaleWord, values: Iterable<number | null>, decades: number): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null || !Number.isFinite(value) || (kind === "log" && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return kind === "log" ? [1e-8, 1] : [0, 1];
  if (kind === "log") {
    const least = high / 10 ** decades;
    if (low < least) low = least;
    return high / low < 10 ? [high / 10, high] : [low, high];
  }
  if (kind === "diverging") {
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    return [-most, most];
  }
  return low === high ? [low, low + (Math.abs(low) || 1)] : [low, high];
}

/** Round places for labels between two ends: powers of ten on a log scale, 1-2-5 steps on others. */
export function ticks(kind: ScaleWord, low: number, high: number, most: number): number[] {
  return kind === "log" ? powers(low, high, most) : steps(low, high, most);
}

function powers(low: number, high: number, most: number): number[] {
  const [from, to] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const step = Math.max(1, Math.ceil((to - from + 1) / most));
  const found: number[] = [];
  for (let power = from; power <= to; power += step) found.push(Number(`1e${power}`)); // 10 ** -4 is not quite 0.0001
  return found.length ? found : [low, high];
}

function steps(low: number, high: number, most: number): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(most, 1);
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * size).find((s) => s >= rough * 0.999) ?? rough;
  const found: number[] = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) found.push(Number((n * step).toPrecision(12)));
  return found;
}
