import assert from "node:assert/strict";
import { test } from "node:test";
import type { FlameFrame } from "../src/answers";
import { bars, beside, frameAt, hueOf, selfOf, type Way } from "../src/draw/flame";
import { robustTop, shares, stacked } from "../src/draw/stack";
import type { SeriesPart } from "../src/types";

const root: FlameFrame = {
  name: "step",
  value: 10,
  children: [
    { name: "forward", value: 4, children: [{ name: "fc1", value: 3 }, { name: "fc2", value: 1 }] },
    { name: "backward", value: 5 },
  ],
};

test("a frame is as wide as its share and its children lie within it", () => {
  const by = new Map(bars(root).map((b) => [b.frame.name, b]));
  assert.deepEqual(["step", "forward", "fc1"].map((name) => Number(by.get(name)!.width.toFixed(9))), [1, 0.4, 0.3]);
  assert.equal(by.get("backward")!.left, 0.4);
  assert.ok(Math.abs(by.get("fc2")!.left - 0.3) < 1e-12);
  assert.equal(by.get("fc2")!.depth, 2);
});

test("zoomed to a frame, it and its callers take the whole width", () => {
  const zoomed = bars(root, [0]);
  assert.deepEqual(zoomed.filter((b) => b.depth < 2).map((b) => [b.frame.name, b.width]), [["step", 1], ["forward", 1]]);
  assert.equal(zoomed.find((b) => b.frame.name === "fc1")!.width, 0.75);
  assert.deepEqual(frameAt(root, [0, 1, 7]).map((f) => f.name), ["step", "forward", "fc2"]);
});

test("parts that add up to more than the whole still fit, and nothing is drawn of what is too thin to see", () => {
  const odd: FlameFrame = { name: "a", value: 1, children: [{ name: "b", value: 2 }, { name: "c", value: 2 }, { name: "d", value: 1e-9 }, { name: "e", value: -3 }] };
  const drawn = bars(odd);
  assert.deepEqual(drawn.map((b) => b.frame.name).sort(), ["a", "b", "c"]);
  assert.ok(drawn.every((b) => b.left + b.width <= 1 + 1e-9));
  assert.equal(bars({ name: "nothing", value: 0 }).length, 1);
});

test("own time is what the children leave", () => {
  assert.equal(selfOf(root), 1);
  assert.equal(selfOf({ name: "x", value: 3, self: 0.5 }), 0.5);
});

test("what rounding leaves is no own time", () => {
  assert.equal(selfOf({ name: "x", value: 0.3, children: [{ name: "a", value: 0.1 }, { name: "b", value: 0.2 - 1e-17 }] }), 0);
});

test("arrow keys lead to the caller, to the widest that is called, and to the neighbours", () => {
  const shown = bars(root);
  const named = (name: string) => shown.find((b) => b.frame.name === name)!;
  const led = (name: string, way: Way) => beside(shown, named(name), way)?.frame.name;
  assert.deepEqual([led("step", "ArrowDown"), led("backward", "ArrowLeft"), led("forward", "ArrowDown"), led("fc1", "ArrowRight"), led("fc2", "ArrowUp")], ["backward", "forward", "fc1", "fc2", "forward"]);
  assert.deepEqual([led("step", "ArrowUp"), led("backward", "ArrowRight"), led("fc1", "ArrowDown")], [undefined, undefined, undefined]);
});

test("a name keeps its colour", () => {
  assert.equal(hueOf("forward"), hueOf("forward"));
  assert.notEqual(hueOf("forward"), hueOf("backward"));
});

const part = (steps: number[], mean: (number | null)[]): SeriesPart => ({
  key: "k", signal: "s", site: {}, label: "s", unit: "s", exact: true, total: steps.length, x: steps, steps, mean, marks: [],
});

test("parts of a step are stacked at the same steps, unknown ones as nothing", () => {
  const stack = stacked([
    { name: "data", part: part([0, 1, 2, 3], [1, 1, null, 3]) },
    { name: "forward", part: part([0, 2], [2, 4]) },
    { name: "gone", part: undefined },
  ]);
  assert.deepEqual(stack.x, [0, 1, 2, 3]);
  assert.deepEqual(stack.parts.map((p) => p.values), [[1, 1, 0, 3], [2, 2, 4, 4]]);
  assert.deepEqual(stack.total, [3, 3, 4, 7]);
  const [data, forward] = shares(stack);
  assert.equal(data!.share + forward!.share, 1);
  assert.equal(forward!.mean, 3);
});

test("one slow first step does not flatten all others", () => {
  assert.ok(robustTop([50, ...new Array<number>(99).fill(1)]) < 2);
  assert.equal(robustTop([1, 2, 3]), 3);
  assert.equal(robustTop([]), 1);
});
