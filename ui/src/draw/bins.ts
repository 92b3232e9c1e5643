// Histograms of different ranges put onto one axis, so that they can be seen side by side.
import type { PowerHistograms, SignedHistograms } from "../answers";

export interface Bins {
  low: number;
  high: number;
  shares: number[]; // of bins of equal width from low to high
}

/** The range that all of them together need; a few far outliers are counted at its ends. */
export function commonRange(all: Bins[], keep = 0.998): [number, number] {
  const used = all.map((bins) => innerRange(bins, keep));
  const low = Math.min(...used.map(([a]) => a));
  const high = Math.max(...used.map(([, b]) => b));
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [-1, 1];
  if (low === high) return [low - (Math.abs(low) || 1) * 0.5, high + (Math.abs(high) || 1) * 0.5];
  return [low, high];
}

/** Where the middle `keep` of a histogram lies. */
function innerRange({ low, high, shares }: Bins, keep: number): [number, number] {
  const total = shares.reduce((a, b) => a + b, 0);
  const width = (high - low) / shares.length;
  const spare = ((1 - keep) / 2) * total;
  let [first, last, left, right] = [0, shares.length - 1, 0, 0];
  while (first < last && left + shares[first]! <= spare) left += shares[first++]!;
  while (last > first && right + shares[last]! <= spare) right += shares[last--]!;
  return [low + first * width, low + (last + 1) * width];
}

/** The same mass in `count` bins from `low` to `high`; what lies outside goes into the end bins. */
export function rebinned(bins: Bins, low: number, high: number, count: number): number[] {
  const result = new Array<number>(count).fill(0);
  const width = (high - low) / count;
  const place = (value: number) => Math.min(Math.max((value - low) / width, 0), count);
  const step = (bins.high - bins.low) / bins.shares.length;
  bins.shares.forEach((share, k) => {
    if (!share) return;
    const from = place(bins.low + k * step);
    const to = place(bins.low + (k + 1) * step);
    if (to - from < 1e-9) {
      result[Math.min(Math.floor(from), count - 1)]! += share;
      return;
    }
    for (let bin = Math.floor(from); bin < to; bin += 1) {
      const part = Math.min(bin + 1, to) - Math.max(bin, from);
      result[Math.min(bin, count - 1)]! += (share * part) / (to - from);
    }
  });
  return result;
}

/** Histograms of either kind, or why there are none. */
export type HistogramAnswer = Partial<Omit<PowerHistograms, "kind"> & Omit<SignedHistograms, "kind">> & { kind?: "log2" | "linear"; missing?: string };

/** What is drawn: rows of shares on one axis. */
export interface Drawn {
  steps: number[];
  rows: number[][];
  low: number;
  high: number;
  log2: boolean;
}

export function drawn(data: HistogramAnswer, bins = 96): Drawn {
  const steps = data.steps ?? [];
  const counts = (data.counts ?? []).map((shares) => shares.map((share) => share ?? 0));
  if (data.kind === "linear") {
    const all: Bins[] = counts.map((shares, i) => ({ low: data.lo?.[i] ?? 0, high: data.hi?.[i] ?? 0, shares }));
    const [low, high] = commonRange(all);
    return { steps, rows: all.map((b) => rebinned(b, low, high, bins)), low, high, log2: false };
  }
  const edges = data.edges ?? [];
  const used = usedBins(counts);
  const rows = counts.map((row) => row.slice(used[0], used[1] + 1));
  const first = edges[0] ?? 0;
  return { steps, rows, low: first - 1 + used[0], high: first + used[1], log2: true };
}

function usedBins(counts: number[][]): [number, number] {
  const size = counts[0]?.length ?? 1;
  const some = (bin: number) => counts.some((row) => (row[bin] ?? 0) > 0);
  let [first, last] = [0, size - 1];
  while (first < last && !some(first)) first += 1;
  while (last > first && !some(last)) last -= 1;
  return [Math.max(0, first - 1), Math.min(size - 1, last + 1)];
}
