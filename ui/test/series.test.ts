import assert from "node:assert/strict";
import { test } from "node:test";
import { badPlaces, lastUpTo, nearest, placeOfStep, smoothed, tabled, usualTop } from "../src/draw/series";
import type { SeriesPart } from "../src/types";

function part(key: string, steps: number[], mean: (number | null)[], more: Partial<SeriesPart> = {}): SeriesPart {
  return { key, signal: key, site: {}, label: key, unit: "", exact: true, total: steps.length, x: steps, steps, mean, marks: [], ...more };
}

test("smoothing keeps a level line level, from the first point to the last", () => {
  for (const value of smoothed(new Array(50).fill(0.05), 80)) assert.equal(value, 0.05);
});

test("smoothing has no lag: a symmetric peak stays where it is", () => {
  const values = Array.from({ length: 101 }, (_, i) => Math.exp(-((i - 50) ** 2) / 50));
  const smooth = smoothed(values, 40) as number[];
  assert.equal(smooth.indexOf(Math.max(...smooth)), 50);
  assert.ok(smooth[50]! < values[50]!);
});

test("smoothing leaves gaps as gaps and is not misled by them", () => {
  const smooth = smoothed([1, null, 1, undefined, 1], 90);
  assert.equal(smooth[1], null);
  assert.equal(smooth[3], undefined);
  assert.ok(Math.abs(smooth[2]! - 1) < 1e-12);
});

test("no smoothing gives back the values themselves", () => {
  const values = [1, 5, 2];
  assert.deepEqual(smoothed(values, 0), values);
});

test("series with different steps share one axis without inventing values", () => {
  const table = tabled([part("a", [0, 2, 4], [1, 2, 3]), part("b", [1, 2], [7, 8])], 0, false);
  assert.deepEqual(table.x, [0, 1, 2, 4]);
  assert.deepEqual(table.lines[0]!.raw, [1, undefined, 2, 3]);
  assert.deepEqual(table.lines[1]!.raw, [undefined, 7, 8, undefined]);
});

test("a logarithmic axis hides what it can't show, and counts it", () => {
  const table = tabled([part("a", [0, 1, 2], [1, 0, -2])], 0, true);
  assert.deepEqual(table.lines[0]!.raw, [1, null, null]);
  assert.equal(table.hidden, 2);
});

test("the band of a bucket is its extremes, and the line its mean", () => {
  const table = tabled([part("a", [0, 10], [1, 2], { exact: false, min: [0, 1], max: [9, 3] })], 0, false);
  assert.deepEqual(table.lines[0]!.low, [0, 1]);
  assert.deepEqual(table.lines[0]!.high, [9, 3]);
});

test("places are found by bisection", () => {
  assert.equal(lastUpTo([0, 5, 10], 7), 1);
  assert.equal(lastUpTo([0, 5, 10], -1), -1);
  assert.equal(nearest([0, 5, 10], 8), 2);
  assert.equal(nearest([0, 5, 10], 99), 2);
  assert.equal(nearest([], 1), -1);
});

test("a step between two points lies between them on any axis", () => {
  const wall = part("a", [0, 10, 20], [1, 1, 1], { x: [0, 1, 3] });
  assert.equal(placeOfStep(wall, 15), 2);
  assert.equal(placeOfStep(wall, 10), 1);
  assert.equal(placeOfStep(wall, 500), null);
});

test("values that are not finite keep their place and their name", () => {
  const bad = badPlaces(part("a", [3, 4], [null, 1], { bad: [1, 0], marks: [[0, "nan"]] }));
  assert.deepEqual(bad, [{ x: 3, what: "nan" }]);
});

test("a few values far above all others don't flatten the picture, many do set it", () => {
  const usual = Array.from({ length: 100 }, (_, i) => 1 + (i % 10) / 10);
  assert.ok(usualTop([...usual, 500]) < 4);
  assert.equal(usualTop(usual), 1.9);
  assert.equal(usualTop([...usual, ...new Array(50).fill(500)]), 500);
  assert.equal(usualTop([1, 500]), 500);
});
