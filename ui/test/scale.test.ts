import assert from "node:assert/strict";
import { test } from "node:test";
import { inkOn, rgbAt, scaleOver, ticks } from "../src/draw/scale";

test("a log scale gives each decade the same room, and zero the dark end", () => {
  const scale = scaleOver("log", [1e-6, 1e-3, 1]);
  assert.deepEqual([scale.place(1e-6), scale.place(1), scale.place(0)], [0, 1, 0]);
  assert.ok(Math.abs(scale.place(1e-3) - 0.5) < 1e-9);
});

test("values without a place have no colour", () => {
  const scale = scaleOver("log", [1, 10]);
  assert.equal(scale.rgb(NaN), null);
  assert.equal(scale.rgb(Infinity), null);
  assert.notEqual(scale.rgb(5), null);
});

test("one value far below all others does not eat up the scale", () => {
  const scale = scaleOver("log", [1e-40, 1e-2, 1], 12);
  assert.equal(scale.low, 1e-12);
});

test("equal values still make a scale, on which they are at the bright end", () => {
  const scale = scaleOver("log", [0.5, 0.5]);
  assert.equal(scale.place(0.5), 1);
  assert.ok(scale.low < scale.high);
});

test("a scale of signed values has zero in its middle", () => {
  const scale = scaleOver("diverging", [-1, 4]);
  assert.equal(scale.place(0), 0.5);
  assert.deepEqual([scale.low, scale.high], [-4, 4]);
});

test("shares always span zero to one", () => {
  const scale = scaleOver("share", [0.4, 0.5]);
  assert.deepEqual([scale.low, scale.high], [0, 1]);
});

test("nothing recorded gives a scale that does not break", () => {
  for (const kind of ["log", "linear", "share", "diverging"] as const) {
    const scale = scaleOver(kind, [null, NaN]);
    assert.ok(scale.low < scale.high, kind);
    assert.ok(scale.place(0.5) >= 0 && scale.place(0.5) <= 1, kind);
  }
});

test("magnitudes get brighter all the way, so that they are read without colour too", () => {
  const light = (t: number) => {
    const [r, g, b] = rgbAt("log", t);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (let i = 1; i <= 20; i += 1) assert.ok(light(i / 20) > light((i - 1) / 20), String(i));
});

test("text is dark on bright colours and white on dark ones", () => {
  assert.equal(inkOn(rgbAt("log", 0)), "#ffffff");
  assert.equal(inkOn(rgbAt("log", 1)), "#16181b");
});

test("ticks are powers of ten or round steps, and never more than asked for", () => {
  assert.deepEqual(ticks("log", 1e-6, 1, 4), [1e-6, 1e-4, 1e-2, 1]);
  assert.deepEqual(ticks("linear", 0, 100, 5), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ticks("linear", 3, 3, 5), [3]);
  for (const most of [2, 3, 5, 9]) assert.ok(ticks("linear", 0.013, 7.7, most).length <= most + 1);
});
