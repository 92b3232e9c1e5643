// Makes room in a level for what is open in it. The layout itself, the row and column of each box, is computed once
// by Python (src/clew/render/network/box_places.py, where `fit` is the same for SVG): here columns and rows only
// become as wide and high as the boxes in them, as in a table.

import type { LayoutGrid } from "../answers";

export interface Places {
  x: number[]; // middles
  row: number[]; // of each place
  tops: number[]; // of the rows
  bottoms: number[];
  width: number;
  height: number;
}

const [GAP_X, BESIDE] = [20, 12]; // between boxes; between a passage and what stands beside it
const [GAP_Y, HIGHEST_GAP] = [28, 72];
const STEEPNESS = 0.08; // a gap grows with the sideways extent of its lines: flat lines can't be distinguished

export function fit(grid: LayoutGrid, widths: number[], heights: number[]): Places {
  const wide = grid.x.map((_, place) => widths[place] ?? 0);
  const columns = widened(grid, wide, widths.length);
  const left = grid.x.reduce((least, _, p) => Math.min(least, columns[p]! - wide[p]! / 2), Infinity);
  const x = columns.map((at) => at - left);
  const row = new Array<number>(x.length).fill(0);
  grid.rows.forEach((places, number) => places.forEach((place) => (row[place] = number)));
  const { tops, bottoms } = down(grid, heights, x, row);
  const width = x.reduce((most, at, p) => Math.max(most, at + wide[p]! / 2), 0);
  return { x, row, tops, bottoms, width, height: bottoms[bottoms.length - 1] ?? 0 };
}

/** Columns pushed apart from the left, and from the right; halfway between the two all have room. */
function widened(grid: LayoutGrid, wide: number[], boxes: number): number[] {
  const columns = [...new Set(grid.x)].sort((a, b) => a - b);
  const number = new Map(columns.map((at, n) => [at, n]));
  const needs: [number, number, number][] = []; // of two columns: how far apart they must be
  for (const row of grid.rows)
    row.slice(1).forEach((b, i) => {
      const a = row[i]!;
      const gap = a < boxes && b < boxes ? GAP_X : BESIDE;
      needs.push([number.get(grid.x[a]!)!, number.get(grid.x[b]!)!, wide[a]! / 2 + gap + wide[b]! / 2]);
    });
  columns.slice(1).forEach((at, n) => needs.push([n, n + 1, at - columns[n]!]));
  const pushed = columns.map((at, n) => (n ? -Infinity : at));
  for (const [a, b, need] of needs.sort((p, q) => p[0] - q[0])) pushed[b] = Math.max(pushed[b]!, pushed[a]! + need);
  const pulled = columns.map((_, n) => (n < columns.length - 1 ? Infinity : pushed[n]!));
  for (const [a, b, need] of needs.sort((p, q) => q[1] - p[1])) pulled[a] = Math.min(pulled[a]!, pulled[b]! - need);
  return grid.x.map((at) => (pushed[number.get(at)!]! + pulled[number.get(at)!]!) / 2);
}

function down(grid: LayoutGrid, heights: number[], x: number[], row: number[]): { tops: number[]; bottoms: number[] } {
  const sideways = grid.rows.map(() => 0);
  for (const [a, b, end] of grid.lines) {
    const upper = Math.min(row[a]!, row[b]!);
    sideways[upper] = Math.max(sideways[upper]!, Math.abs(x[a]! - x[b]! - end));
  }
  const [tops, bottoms]: [number[], number[]] = [[], []];
  let y = 0;
  grid.rows.forEach((places, number) => {
    tops.push(y);
    y += places.reduce((most, p) => Math.max(most, heights[p] ?? 0), 0);
    bottoms.push(y);
    y += Math.min(GAP_Y + STEEPNESS * sideways[number]!, HIGHEST_GAP);
  });
  return { tops, bottoms };
}
