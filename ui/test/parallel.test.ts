import assert from "node:assert/strict";
import { test } from "node:test";
import { axisOver, passing, placeOn, readBrushes, valueAt, writeBrushes } from "../src/draw/parallel";

test("numbers that span decades get a log axis, others a plain one, words one of their own", () => {
  assert.equal(axisOver("lr", [1e-4, 0.1]).kind, "log");
  assert.equal(axisOver("depth", [2, 8]).kind, "number");
  assert.equal(axisOver("optimizer", ["sgd", "adam", null]).kind, "word");
  assert.equal(axisOver("mixed", [1, "auto"]).kind, "word");
});

test("a value has its place between the ends, and none where it is not given", () => {
  const lr = axisOver("lr", [1e-4, 1e-2, 1]);
  assert.ok(Math.abs(placeOn(lr, 1e-2)! - 0.5) < 1e-12);
  assert.ok(Math.abs((valueAt(lr, 0.5) as number) - 1e-2) < 1e-12);
  assert.equal(placeOn(lr, null), null);
  assert.equal(placeOn(lr, NaN), null);
  const words = axisOver("o", ["b", "a", "c"]);
  assert.deepEqual(["a", "b", "c"].map((w) => placeOn(words, w)), [0, 0.5, 1]);
  assert.equal(valueAt(words, 0.9), "c");
  assert.equal(placeOn(axisOver("same", [3, 3]), 3), 0.5);
});

test("brushes keep the runs inside all of them", () => {
  const rows = [{ lr: 0.1, acc: 0.9 }, { lr: 0.2, acc: 0.5 }, { lr: 0.3, acc: null }];
  const axes = [axisOver("lr", rows.map((r) => r.lr)), axisOver("acc", rows.map((r) => r.acc))];
  assert.deepEqual(passing(axes, rows, {}), [true, true, true]);
  assert.deepEqual(passing(axes, rows, { lr: [0, 0.6] }), [true, true, false]);
  assert.deepEqual(passing(axes, rows, { lr: [0, 0.6], acc: [0.5, 1] }), [true, false, false]);
});

test("brushes survive the address, and nonsense in it is left out", () => {
  const brushes = { "model.depth": [0.25, 1] as const, "a,b": [0, 0.5] as const };
  assert.deepEqual(readBrushes(writeBrushes(brushes as never)), { "model.depth": [0.25, 1], "a,b": [0, 0.5] });
  assert.deepEqual(readBrushes("lr:0.9-0.1,x:y-z,%E0%:0-1"), { "%E0%": [0, 1] });
});
