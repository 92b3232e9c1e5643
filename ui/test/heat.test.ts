import assert from "node:assert/strict";
import { test } from "node:test";
import { commonRange, rebinned } from "../src/draw/bins";
import { AXIS, cellAt, clipped, type HeatShape, labelledColumns, labelledRows, pixels, rowHeightFor, visibleRows } from "../src/draw/heat";
import { fromHex, scaleOver } from "../src/draw/scale";

const shape = (more: Partial<HeatShape> = {}): HeatShape => ({
  rows: 1000, columns: 50, rowHeight: 4, gutter: 200, width: 700, scroll: 0, height: 400 + AXIS, ...more,
});

test("few layers get tall rows, many get thin ones that can still be seen", () => {
  assert.equal(rowHeightFor(6, 600), 20);
  assert.equal(rowHeightFor(60, 600), 10);
  assert.equal(rowHeightFor(5000, 600), 4);
});

test("only rows in sight are drawn, however many there are", () => {
  assert.deepEqual(visibleRows(shape()), [0, 100]);
  assert.deepEqual(visibleRows(shape({ scroll: 3600 })), [900, 1000]);
  assert.deepEqual(visibleRows(shape({ rows: 5 })), [0, 5]);
});

test("a place on the map is a layer and a column, also when scrolled", () => {
  assert.deepEqual(cellAt(shape(), 205, 5), [1, 0]);
  assert.deepEqual(cellAt(shape({ scroll: 400 }), 699, 0), [100, 49]);
  assert.deepEqual(cellAt(shape(), 10, 9), [2, -1]);
  assert.equal(cellAt(shape({ rows: 3 }), 300, 50), null);
  assert.equal(cellAt(shape(), 300, 410), null);
});

test("each cell is a pixel: coloured, empty where nothing was recorded, and of its own colour where it is no number", () => {
  const values = [[1, null], [NaN, 100]];
  const scale = scaleOver("log", [1, 100]);
  const data = pixels(2, 2, (r, c) => values[r]![c], scale, (r, c) => r === 1 && c === 0, [179, 52, 26]);
  const at = (cell: number) => [...data.slice(4 * cell, 4 * cell + 4)];
  assert.deepEqual(at(0), [...scale.rgb(1)!, 255]);
  assert.deepEqual(at(1), [0, 0, 0, 0]);
  assert.deepEqual(at(2), [179, 52, 26, 255]);
  assert.deepEqual(at(3), [...scale.rgb(100)!, 255]);
});

test("a colour of the theme is read as three numbers", () => {
  assert.deepEqual(fromHex("#b3341a"), [179, 52, 26]);
});

test("labels never overlap", () => {
  const rows = labelledRows(shape());
  assert.ok(rows.length > 10);
  rows.slice(1).forEach((row, i) => assert.ok((row - rows[i]!) * 4 >= 13));
  const columns = labelledColumns(shape());
  columns.slice(1).forEach((column, i) => assert.ok((column - columns[i]!) * 10 >= 70));
});

test("a part of the steps keeps values and marks where they belong", () => {
  const cells = { columns: [0, 4, 8, 12], mean: [[1, 2, 3, 4], [5, 6, 7, 8]], bad: [[0, 0, 1], [1, 2, 9]] as [number, number, number][] };
  const part = clipped(cells, 4, 8);
  assert.deepEqual([part.columns, part.mean, part.bad], [[4, 8], [[2, 3], [6, 7]], [[1, 1, 9]]]);
  assert.equal(clipped(cells, null, 12), cells);
  assert.equal(clipped(cells, 100, 200), cells);
});

const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);

test("putting a histogram onto another axis keeps its mass", () => {
  const bins = { low: -1, high: 3, shares: [0.1, 0.2, 0.3, 0.4] };
  for (const [low, high, count] of [[-1, 3, 4], [-2, 5, 9], [0, 1, 3], [-10, 10, 7]] as const)
    assert.ok(Math.abs(sum(rebinned(bins, low, high, count)) - 1) < 1e-9);
  assert.deepEqual(rebinned(bins, -1, 3, 4).map((v) => Number(v.toFixed(9))), bins.shares);
});

test("a histogram of one value is a bar in the bin that holds the value", () => {
  const bins = { low: 0.5, high: 0.5, shares: [1, 0, 0] };
  assert.deepEqual(rebinned(bins, 0, 1, 4), [0, 0, 1, 0]);
});

test("the common axis spans all histograms but for far outliers", () => {
  const wide = { low: -1, high: 1000, shares: [0.9995, ...new Array<number>(38).fill(0), 0.0005] };
  const narrow = { low: -2, high: 2, shares: [0.5, 0.5] };
  const [low, high] = commonRange([wide, narrow]);
  assert.equal(low, -2);
  assert.ok(high < 30, String(high));
});

test("equal values and no histograms at all still make an axis", () => {
  assert.ok(commonRange([{ low: 0, high: 0, shares: [1] }])[0] < 0);
  const [low, high] = commonRange([]);
  assert.ok(low < high);
});
