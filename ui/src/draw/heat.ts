// A heat map of rows × columns: where things are, and how they are drawn. Only rows in sight are drawn.
import type { Rgb, Scale } from "./scale";
import { hasWords } from "./search";

export interface HeatShape {
  rows: number;
  columns: number;
  rowHeight: number;
  gutter: number; // px left of the cells, for labels
  width: number; // px of everything
  scroll: number; // px scrolled down
  height: number; // px in sight
}

export const AXIS = 22; // px below the cells

/** A row height at which all rows are in sight if possible, but never too thin to see. */
export function rowHeightFor(rows: number, room: number): number {
  return Math.min(20, Math.max(4, Math.floor(room / Math.max(rows, 1))));
}

export function cellWidth(shape: HeatShape): number {
  return (shape.width - shape.gutter) / Math.max(shape.columns, 1);
}

export function visibleRows(shape: HeatShape): [number, number] {
  const first = Math.max(0, Math.floor(shape.scroll / shape.rowHeight));
  const last = Math.min(shape.rows, Math.ceil((shape.scroll + shape.height - AXIS) / shape.rowHeight));
  return [first, Math.max(first, last)];
}

/** The row and column at a place, or null outside of the cells. */
export function cellAt(shape: HeatShape, x: number, y: number): [number, number] | null {
  if (x >= shape.width || y < 0 || y >= shape.height - AXIS) return null;
  const row = Math.floor((y + shape.scroll) / shape.rowHeight);
  if (row < 0 || row >= shape.rows) return null;
  if (x < shape.gutter) return [row, -1];
  return [row, Math.min(shape.columns - 1, Math.floor((x - shape.gutter) / cellWidth(shape)))];
}

export function columnAt(shape: HeatShape, x: number): number {
  const column = Math.floor((x - shape.gutter) / cellWidth(shape));
  return Math.min(Math.max(column, 0), shape.columns - 1);
}

/** Which rows get a label when not all can have one: evenly spaced, the first of those in sight included. */
export function labelledRows(shape: HeatShape, least = 13): number[] {
  const every = Math.max(1, Math.ceil(least / shape.rowHeight));
  const [first, last] = visibleRows(shape);
  const found: number[] = [];
  for (let row = Math.ceil(first / every) * every; row < last; row += every) found.push(row);
  return found;
}

/** Labels for columns: at most one in `room` px, at recorded places only. */
export function labelledColumns(shape: HeatShape, room = 70): number[] {
  const every = Math.max(1, Math.ceil(room / cellWidth(shape)));
  const found: number[] = [];
  for (let column = 0; column < shape.columns; column += every) found.push(column);
  return found;
}

/** One pixel for each cell, to be stretched: a map of a thousand layers is drawn with a single call. */
export function pixels(
  rows: number,
  columns: number,
  value: (row: number, column: number) => number | null | undefined,
  scale: Scale,
  bad: (row: number, column: number) => boolean,
  badColour: Rgb,
): Uint8ClampedArray<ArrayBuffer> {
  const data = new Uint8ClampedArray(4 * rows * columns);
  for (let row = 0; row < rows; row += 1)
    for (let column = 0; column < columns; column += 1) {
      const number = value(row, column);
      const wrong = bad(row, column);
      const rgb = wrong ? badColour : number === null || number === undefined ? null : scale.rgb(number);
      if (rgb) data.set([...rgb, 255], 4 * (row * columns + column));
    }
  return data;
}

/** Layers whose label has all the words; the numbers of their rows. */
export function matching(layers: readonly { label: string; class?: string | null }[], search: string): number[] {
  return layers.flatMap((layer, row) => (hasWords(`${layer.label} ${layer.class ?? ""}`, search) ? [row] : []));
}

export interface Cells {
  columns: number[];
  mean: (number | null)[][];
  min?: (number | null)[][];
  max?: (number | null)[][];
  bad: [number, number, number][];
}

/** The columns between two steps: a report contains the whole map, not only the requested part. */
export function clipped<T extends Cells>(cells: T, from: number | null, to: number | null): T {
  const inside = cells.columns.map((step) => (from === null || step >= from) && (to === null || step <= to));
  if (inside.every(Boolean) || !inside.some(Boolean)) return cells;
  const pick = <V>(row: V[]): V[] => row.filter((_, i) => inside[i]);
  const rows = (matrix: (number | null)[][] | undefined) => matrix?.map(pick);
  const places = new Map<number, number>();
  inside.forEach((kept, i) => kept && places.set(i, places.size));
  const bad = cells.bad.flatMap(([row, column, count]): [number, number, number][] => (places.has(column) ? [[row, places.get(column)!, count]] : []));
  return { ...cells, columns: pick(cells.columns), mean: rows(cells.mean)!, min: rows(cells.min), max: rows(cells.max), bad };
}
