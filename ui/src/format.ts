// Numbers as people read them: three digits, and always the unit.

/** Three significant digits; `1,234` up to a million; non-finite values by name. */
export function digits(value: number | null | undefined): string {
  if (value === null || value === undefined) return "\u2013";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-3) return minus(value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e"));
  if (size >= 1000 || (Number.isInteger(value) && size >= 100)) return minus(Math.round(value).toLocaleString("en-US"));
  return minus(String(Number(value.toPrecision(3))));
}

function minus(text: string): string {
  return text.replace(/-/g, "\u2212");
}

/** A value in the unit's own words: `1.2 ms`, `34.1 MiB`, `12%`. */
export function withUnit(value: number | null | undefined, unit: string | null | undefined = ""): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return digits(value);
  switch (unit) {
    case "s":
    case "seconds":
      return seconds(value);
    case "bytes":
    case "B":
      return bytes(value);
    case "share":
    case "fraction":
      return `${digits(value * 100)}%`;
    case "":
    case null:
    case undefined:
    case "1":
      return digits(value);
    case "count":
      return whole(value);
    case "FLOPs":
    case "FLOP/s":
      return prefixed(value, unit);
    default:
      return `${digits(value)}\u00a0${unit}`;
  }
}

export function whole(value: number | null | undefined): string {
  return value === null || value === undefined ? "\u2013" : minus(Math.round(value).toLocaleString("en-US"));
}

export function seconds(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0\u00a0s";
  if (size < 1e-6) return `${digits(value * 1e9)}\u00a0ns`;
  if (size < 1e-3) return `${digits(value * 1e6)}\u00a0\u00b5s`;
  if (size < 1) return `${digits(value * 1e3)}\u00a0ms`;
  if (size < 120) return `${digits(value)}\u00a0s`;
  if (size < 7200) return `${digits(value / 60)}\u00a0min`;
  return size < 172800 ? `${digits(value / 3600)}\u00a0h` : `${digits(value / 86400)}\u00a0d`;
}

/** `9.81 GFLOP/s` */
function prefixed(value: number, unit: string): string {
  const step = Math.min(Math.floor(Math.log10(Math.max(Math.abs(value), 1)) / 3), 5);
  return `${digits(value / 1000 ** step)}\u00a0${["", "k", "M", "G", "T", "P"][step]}${unit}`;
}

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value: number): string {
  let size = value;
  let step = 0;
  while (Math.abs(size) >= 1024 && step < BINARY.length - 1) {
    size /= 1024;
    step += 1;
  }
  return `${digits(size)}\u00a0${BINARY[step]}`;
}

/** `3 minutes ago`, or the date when it is long ago. */
export function ago(then: number | null | undefined, now = Date.now() / 1000): string {
  if (then === null || then === undefined) return "";
  const gone = now - then;
  if (gone < 60) return "just now";
  if (gone < 3600) return `${Math.floor(gone / 60)}\u00a0min ago`;
  if (gone < 86400) return `${Math.floor(gone / 3600)}\u00a0h ago`;
  if (gone < 7 * 86400) return `${Math.floor(gone / 86400)}\u00a0d ago`;
  return new Date(then * 1000).toISOString().slice(0, 10);
}

export function moment(then: number | null | undefined): string {
  if (then === null || then === undefined) return "";
  const date = new Date(then * 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** The number in JSON, where NaN and infinities travel as null or as words. */
export function fromJson(value: unknown): number | null {
  if (typeof value === "number") return value;
  if (value === "nan") return NaN;
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return null;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** `3×32×32` */
export function shapeText(shape: number[]): string {
  return shape.length ? shape.join("\u00d7") : "scalar";
}

/** A path as it is seen from the folder that the run was started in. */
export function shortPath(path: string, home: string): string {
  if (home && path.startsWith(`${home}/`)) return path.slice(home.length + 1);
  return path.replace(/^.*\/(site|dist)-packages\//, ""); // a library is known by its own name
}

/** Lines of code without the indentation that all of them share. */
export function dedented(lines: string[]): string[] {
  const indents = lines.filter((line) => line.trim()).map((line) => /^[ \t]*/.exec(line)![0].length);
  const shared = indents.length ? Math.min(...indents) : 0;
  return lines.map((line) => line.slice(shared));
}
